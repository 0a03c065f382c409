/* SPDX-License-Identifier: MIT */
/* Rounds of runs as a table of values: see outcome.h. */
#include "analysis/outcome.h"
#include "base/memory.h"

#include <math.h>

/* ---- the cells ---- */

/* "size=64, n=2": the next name and value; false at the end.  The caller frees both. */
static bool next_parameter(const char **text, char **ret_name, char **ret_value)
{
    size_t word = strcspn(*text, ","), name = strcspn(*text, "=,");
    if (!word || name == word)
        return false;
    *ret_name = memory_strndup(*text, name);
    *ret_value = memory_strndup(*text + name + 1, word - name - 1);
    *text += word;
    *text += strspn(*text, ", ");
    return true;
}

static void add_factors(struct dataset *d, const char *parameters)
{
    char *name, *value;
    dataset_add_factor(d, "command");
    while (next_parameter(&parameters, &name, &value)) {
        dataset_add_factor(d, name);
        free(name);
        free(value);
    }
}

/* Its level of the factor "command". */
static const char *level_of(const struct participant *p)
{
    return p->variant ? p->variant : p->name;
}

static void add_cell(struct dataset *d, const struct participant *p)
{
    CLEANUP(memory_freep) char **levels = memory_zalloc(d->factor_count + 1, sizeof(*levels));
    bool adds = *p->parameters && !str_has_suffix(p->name, p->parameters);
    CLEANUP(memory_freep)
    char *label = memory_printf("%s%s%s", p->name, adds ? ", " : "", adds ? p->parameters : "");
    const char *rest = p->parameters;
    char *name, *value;
    levels[0] = memory_strdup(level_of(p));
    while (next_parameter(&rest, &name, &value)) {
        size_t factor = dataset_factor(d, name);
        free(name);
        if (factor != DATASET_NONE && !levels[factor])
            levels[factor] = value;
        else
            free(value);
    }
    for (size_t f = 0; f < d->factor_count; f++)
        if (!levels[f])
            levels[f] = memory_strdup("");
    dataset_add_cell(d, label, p->command, (const char *const *)levels);
    for (size_t f = 0; f < d->factor_count; f++)
        free(levels[f]);
}

/* What others are compared with: a command, or where there is one only, values of its parameters.
 */
static char *baseline_of(const struct dataset *d, const struct participant *participants,
                         size_t count, size_t reference)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    const char *level = level_of(&participants[reference]);
    bool is_one = participants[reference].variant;
    for (size_t i = 0; i < count; i++)
        is_one = is_one && str_eq(level_of(&participants[i]), level);
    if (!is_one)
        return memory_printf("command=%s", level);
    for (size_t f = 1; f < d->factor_count; f++)
        strbuf_printf(&text, "%s%s=%s", text.length ? " " : "", d->factors[f],
                      d->cells[reference].levels[f]);
    return memory_strdup(strbuf_text(&text));
}

void outcome_start(struct dataset *d, const struct participant *participants, size_t count)
{
    dataset_start(d, "assay ab");
    add_factors(d, count ? participants[0].parameters : "");
    for (size_t i = 0; i < count; i++)
        add_cell(d, &participants[i]);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count && !participants[i].is_reference; k++)
            if (participants[k].is_reference && participants[k].group == participants[i].group)
                d->cells[i].baseline = k;
    for (size_t k = 0; k < count; k++)
        if (participants[k].is_reference && !*d->experiment.baseline) {
            free(d->experiment.baseline);
            d->experiment.baseline = baseline_of(d, participants, count, k);
        }
}

void outcome_set_headline(struct dataset *d, const char *headline)
{
    CLEANUP(strbuf_done) struct strbuf names = {0};
    strbuf_puts(&names, headline);
    for (size_t m = 0; m < d->metric_count; m++)
        if (str_eq(d->metrics[m].kind, "metric") && !str_eq(d->metrics[m].name, headline))
            strbuf_printf(&names, "\n%s", d->metrics[m].name);
    free(d->experiment.headline);
    d->experiment.headline = memory_strdup(strbuf_text(&names));
}

/* ---- the values ---- */

struct filler {
    struct dataset *d;
    const struct rounds *r;
    const char *only;
};

static bool is_wanted(const struct filler *f, const char *name)
{
    if (f->only && str_has_suffix(f->only, ":"))
        return str_has_prefix(name, f->only);
    return !f->only || str_eq(f->only, name);
}

static double wall_of(const struct run_record *run)
{
    return (double)run->wall_ns;
}

static double user_of(const struct run_record *run)
{
    return (double)run->user_ns;
}

static double sys_of(const struct run_record *run)
{
    return (double)run->sys_ns;
}

static double cpu_of(const struct run_record *run)
{
    return (double)(run->user_ns + run->sys_ns);
}

static double rss_of(const struct run_record *run)
{
    return (double)run->rss_bytes_max;
}

static double minor_of(const struct run_record *run)
{
    return (double)run->minor_faults;
}

static double voluntary_of(const struct run_record *run)
{
    return (double)run->voluntary_switches;
}

static double involuntary_of(const struct run_record *run)
{
    return (double)run->involuntary_switches;
}

/* What every run has. */
struct figure {
    const char *name, *unit;
    struct metric_facts facts;
    double (*value)(const struct run_record *run);
    bool is_rss;
};

static void add_figure(struct filler *f, const struct figure *figure)
{
    if (!is_wanted(f, figure->name))
        return;
    size_t metric = dataset_add_metric(f->d, figure->name, figure->unit, "time", figure->facts);
    for (size_t i = 0; i < f->r->contestant_count; i++)
        for (size_t j = 0; j < f->r->count; j++) {
            const struct run_record *run = &f->r->items[j].runs[i];
            if (!run_counts(run))
                continue;
            dataset_put(f->d, metric, i, (uint32_t)j, figure->value(run));
            f->d->loose[f->d->loose_count - 1].is_bound = figure->is_rss && run->rss_is_bound;
        }
}

static void add_usage(struct filler *f)
{
    static const struct figure figures[] = {
        {"wall", "ns", {.better = METRIC_LOWER, .is_speed = true}, wall_of, false},
        {"user", "ns", {.better = METRIC_LOWER}, user_of, false},
        {"sys", "ns", {.better = METRIC_LOWER}, sys_of, false},
        {"cpu", "ns", {.better = METRIC_LOWER}, cpu_of, false},
        {"peak-rss", "bytes", {.better = METRIC_LOWER}, rss_of, true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(figures); i++)
        add_figure(f, &figures[i]);
}

static void add_event(struct filler *f, const struct event *e, size_t index)
{
    CLEANUP(memory_freep)
    char *name = memory_printf("%s%s", e->name, f->r->user_only[index] ? ":u" : "");
    if (!is_wanted(f, name))
        return;
    size_t metric =
        dataset_add_metric(f->d, name, e->in_ns ? "ns" : e->unit, "counter", event_facts(e));
    for (size_t i = 0; i < f->r->contestant_count; i++)
        for (size_t j = 0; j < f->r->count; j++) {
            const struct run_record *run = &f->r->items[j].runs[i];
            const struct counter_value *value = &run->values[index];
            if (run_counts(run) && counter_was_counted(value))
                dataset_put(f->d, metric, i, (uint32_t)j, counter_scaled(value) * e->scale);
        }
}

static void add_events(struct filler *f, const struct event_list *events)
{
    static const struct figure instead[] = {
        {"minor-faults", "", {METRIC_LOWER, .is_count = true}, minor_of, false},
        {"voluntary-switches", "", {METRIC_LOWER, .is_count = true}, voluntary_of, false},
        {"involuntary-switches", "", {METRIC_LOWER, .is_count = true}, involuntary_of, false},
    };
    bool any = false;
    for (size_t i = 0; i < events->count; i++) {
        if (f->r->why[i])
            continue;
        add_event(f, &events->items[i], i);
        any = true;
    }
    for (size_t i = 0; !any && i < ARRAY_COUNT(instead); i++)
        add_figure(f, &instead[i]);
}

/* Times that programs report are kept in nanoseconds as all others; a name that is taken already
 * gets a prefix. */
static void add_metric(struct filler *f, const struct metric *m, size_t own_count, size_t cell,
                       size_t round)
{
    double ns = metric_unit_ns(m->unit);
    bool clashes = false;
    for (size_t own = 0; own < own_count; own++)
        clashes |= str_eq(f->d->metrics[own].name, m->name);
    CLEANUP(memory_freep) char *name = memory_printf("%s%s", clashes ? "program:" : "", m->name);
    if (!is_wanted(f, name))
        return;
    size_t metric = dataset_add_metric(f->d, name, ns > 0 ? "ns" : m->unit, "metric",
                                       metric_facts_of(m->name, m->unit));
    dataset_put(f->d, metric, cell, (uint32_t)round, m->value * (ns > 0 ? ns : 1));
}

void outcome_add_rounds(struct dataset *d, const struct rounds *r, const struct event_list *events,
                        const char *only)
{
    struct filler f = {.d = d, .r = r, .only = only};
    add_usage(&f);
    add_events(&f, events);
    size_t own_count = d->metric_count;
    for (size_t j = 0; j < r->count; j++)
        for (size_t i = 0; i < r->contestant_count; i++) {
            const struct run_record *run = &r->items[j].runs[i];
            for (size_t k = 0; k < run->metric_count && run_counts(run); k++)
                add_metric(&f, &run->metrics[k], own_count, i, j);
        }
    dataset_settle(d);
}

static void replace(char **text, const char *by)
{
    free(*text);
    *text = memory_strdup(by);
}

void outcome_describe(struct dataset *d, const char *name, const char *headline, uint64_t seed,
                      uint64_t started_at_ns)
{
    struct store_experiment *e = &d->experiment;
    replace(&e->name, name);
    replace(&e->question, "which of the commands is faster?");
    replace(&e->state, "done");
    e->seed = seed;
    e->started_at_ns = started_at_ns;
    e->cell_count = d->cell_count;
    outcome_set_headline(d, headline);
}

void outcome_add_runs(struct dataset *d, const struct rounds *r)
{
    for (size_t j = 0; j < r->count; j++)
        for (size_t i = 0; i < r->contestant_count; i++) {
            const struct run_record *run = &r->items[j].runs[i];
            if (run->is_absent)
                continue;
            bool disturbed = disturbance_reason(&run->disturbance, run->wall_ns) != NULL;
            ARRAY_PUSH(d->runs, d->run_count, d->run_capacity) =
                (struct dataset_run){.id = (int64_t)d->run_count + 1,
                                     .cell = i,
                                     .round = j,
                                     .position = run->position,
                                     .started_at_ns = d->experiment.started_at_ns + run->start_ns,
                                     .wall_ns = run->wall_ns,
                                     .status = run->status,
                                     .disturbed = disturbed,
                                     .node = DATASET_NO_NODE};
            d->cells[i].run_count++;
            d->cells[i].failed_count += run->status != 0;
            d->cells[i].disturbed_count += disturbed;
            d->experiment.failed_count += run->status != 0;
            d->experiment.disturbed_count += disturbed;
        }
    d->experiment.run_count = d->run_count;
}

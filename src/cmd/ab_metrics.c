/* SPDX-License-Identifier: MIT */
/* What `assay ab` takes from its runs beside what every run has: figures in the commands' output,
 * instructions that a simulation counts, and the names of all, so that a wrong --metric is told at
 * once: see ab.h. */
#include "base/memory.h"
#include "cmd/ab.h"
#include "counters/simulated.h"
#include "session/extract.h"

#include <errno.h>

enum { SIMULATED_ROUNDS = 5 };

static int add_regex(struct ab_metrics *m, const char *text, struct error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return error_set(err, -EINVAL,
                         "--metric-regex %s: write NAME=REGEX, with the number in parentheses, "
                         "e.g. 'ops=([0-9.]+) ops/s'",
                         text);
    struct ab_regex *x = &ARRAY_PUSH(m->regexes, m->regex_count, m->regex_capacity);
    *x = (struct ab_regex){.name = memory_strndup(text, (size_t)(equals - text))};
    struct metric_list trial = {0};
    bool good = metrics_set(&trial, x->name, 1, "");
    metrics_done(&trial);
    if (!good)
        return error_set(err, -EINVAL,
                         "--metric-regex: '%s' is not a valid metric name; use letters, digits and "
                         "_ - . : / %% +",
                         x->name);
    int code = regcomp(&x->regex, equals + 1, REG_EXTENDED | REG_NEWLINE);
    x->ready = code == 0;
    if (code) {
        char why[128];
        regerror(code, &x->regex, why, sizeof(why));
        return error_set(err, -EINVAL, "--metric-regex %s: %s", equals + 1, why);
    }
    const char *digit = strstr(equals + 1, "\\d");
    if (digit && (digit == equals + 1 || digit[-1] != '\\'))
        return error_set(err, -EINVAL,
                         "--metric-regex %s: extended regular expressions have no \\d; write [0-9]",
                         equals + 1);
    if (!x->regex.re_nsub)
        return error_set(err, -EINVAL,
                         "--metric-regex %s: put the number in parentheses, e.g. '([0-9.]+)'",
                         equals + 1);
    return 0;
}

int ab_metrics_init(struct ab_metrics *m, const struct ab_options *o, struct error *err)
{
    *m = (struct ab_metrics){.headline = o->metric, .simulates = o->sim};
    int r = 0;
    if (o->metric_regexes.count && (o->show_output || output_parse(o->output) != RUN_KEEP))
        r = error_set(err, -EINVAL,
                      "--metric-regex reads what the commands print, so their output cannot go "
                      "elsewhere; leave --output and --show-output out");
    for (size_t i = 0; i < o->metric_regexes.count && r == 0; i++)
        r = add_regex(m, o->metric_regexes.items[i], err);
    return r;
}

void ab_metrics_done(struct ab_metrics *m)
{
    for (size_t i = 0; i < m->regex_count; i++) {
        if (m->regexes[i].ready)
            regfree(&m->regexes[i].regex);
        free(m->regexes[i].name);
    }
    for (size_t i = 0; i < m->name_count; i++)
        free(m->names[i]);
    free(m->regexes);
    free(m->names);
    *m = (struct ab_metrics){0};
}

static void add_name(struct ab_metrics *m, const char *name)
{
    for (size_t i = 0; i < m->name_count; i++)
        if (str_eq(m->names[i], name))
            return;
    ARRAY_PUSH(m->names, m->name_count, m->name_capacity) = memory_strdup(name);
}

/* The names that every run has; once. */
static void add_own_names(struct ab_metrics *m, const struct rounds *r,
                          const struct event_list *events)
{
    static const char *const own[] = {"wall", "user", "sys", "cpu", "peak-rss"};
    static const char *const instead[] = {"minor-faults", "voluntary-switches",
                                          "involuntary-switches"};
    bool any = false;
    for (size_t i = 0; i < ARRAY_COUNT(own); i++)
        add_name(m, own[i]);
    for (size_t i = 0; i < events->count; i++) {
        CLEANUP(memory_freep)
        char *name = memory_printf("%s%s", events->items[i].name, r->user_only[i] ? ":u" : "");
        if (!r->why[i])
            add_name(m, name);
        any |= !r->why[i];
    }
    for (size_t i = 0; !any && i < ARRAY_COUNT(instead); i++)
        add_name(m, instead[i]);
    if (m->simulates)
        add_name(m, SIMULATED_INSTRUCTIONS);
}

static bool is_known(const struct ab_metrics *m)
{
    for (size_t i = 0; i < m->name_count; i++)
        if (str_eq(m->names[i], m->headline) ||
            (str_has_prefix(m->headline, "program:") && str_eq(m->names[i], m->headline + 8)))
            return true;
    return false;
}

static void match_output(struct ab_metrics *m, struct run_result *result)
{
    for (size_t i = 0; i < m->regex_count; i++) {
        struct error ignored;
        double value;
        if (extract_regex(&m->regexes[i].regex, strbuf_text(&result->kept_stdout), &value,
                          &ignored) == 0 ||
            extract_regex(&m->regexes[i].regex, strbuf_text(&result->kept_stderr), &value,
                          &ignored) == 0)
            metrics_set(&result->metrics, m->regexes[i].name, value, "");
        else
            m->regexes[i].missed++;
    }
}

bool ab_metrics_take(const struct rounds *r, const struct rounds_spec *spec,
                     struct run_result *result, size_t contestant, void *context)
{
    struct ab_metrics *m = ((struct ab_watch *)context)->metrics;
    (void)contestant;
    match_output(m, result);
    m->result_count++;
    if (m->result_count > spec->contestant_count && !m->headline_unseen)
        return true;
    if (m->result_count == 1)
        add_own_names(m, r, spec->events);
    for (size_t i = 0; i < result->metrics.count; i++)
        add_name(m, result->metrics.items[i].name);
    /* A program that fails has told nothing yet. */
    bool all = m->result_count == spec->contestant_count && !run_failed(result);
    m->headline_unseen = !is_known(m);
    m->headline_missing = all && m->headline_unseen;
    return !m->headline_missing;
}

void ab_metrics_notes(const struct ab_metrics *m, struct doubt_list *notes)
{
    for (size_t i = 0; i < m->regex_count; i++)
        if (m->regexes[i].missed)
            report_note(notes, "metric-regex",
                        "--metric-regex %s: nothing matched in %zu of %zu runs, warm-ups included.",
                        m->regexes[i].name, m->regexes[i].missed, m->result_count);
}

int ab_metrics_missing(const struct ab_metrics *m, const struct rounds *r,
                       const struct event_list *events, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf near = {0}, all = {0};
    for (size_t i = 0; i < events->count; i++)
        if (r->why[i] && str_eq(events->items[i].name, m->headline))
            return error_set(err, -ENOTSUP, "--metric %s: not supported: %s", m->headline,
                             r->why[i]);
    for (size_t i = 0; i < m->regex_count; i++)
        if (str_eq(m->regexes[i].name, m->headline))
            return error_set(err, -ENOENT,
                             "--metric %s: its --metric-regex matched nothing that the commands "
                             "printed",
                             m->headline);
    size_t found = str_nearest(m->headline, (const char *const *)m->names, m->name_count, 3, &near);
    for (size_t i = 0; i < m->name_count; i++)
        strbuf_printf(&all, "%s%s", i ? ", " : "", m->names[i]);
    return error_set(err, -ENOENT, "--metric %s: no such metric; %s%s%s", m->headline,
                     found ? "did you mean " : "there are: ", strbuf_text(found ? &near : &all),
                     found ? "?" : "");
}

/* ---- simulated runs ---- */

struct simulating {
    struct simulator simulator;
    struct progress *progress;
    int code;
    struct error err;
};

static bool take_instructions(const struct rounds *r, const struct rounds_spec *spec,
                              struct run_result *result, size_t contestant, void *context)
{
    struct simulating *s = context;
    uint64_t instructions;
    progress_show(s->progress, "simulating: round %zu of %llu, command %zu of %zu", r->count + 1,
                  (unsigned long long)spec->rounds_max, contestant + 1, spec->contestant_count);
    if (result->signal)
        return true;
    s->code = simulator_take(&s->simulator, &instructions, &s->err);
    if (s->code == 0)
        metrics_set(&result->metrics, SIMULATED_INSTRUCTIONS, (double)instructions, "");
    return s->code == 0 || run_failed(result);
}

int ab_simulate(const struct rounds_spec *like, struct rounds *ret_rounds,
                struct progress *progress, struct error *err)
{
    const struct event_list none = {0};
    struct simulating s = {.progress = progress};
    struct rounds_spec spec = *like;
    *ret_rounds = (struct rounds){0};
    int r = simulator_open(&s.simulator, err);
    if (r < 0)
        return r;
    struct contestant *contestants = memory_zalloc(spec.contestant_count, sizeof(*contestants));
    for (size_t i = 0; i < spec.contestant_count; i++) {
        contestants[i] = like->contestants[i];
        contestants[i].command.argv =
            command_join_words(s.simulator.words, like->contestants[i].command.argv);
        contestants[i].command.program = s.simulator.valgrind;
    }
    spec.contestants = contestants;
    spec.events = &none;
    spec.warmup_count = 0;
    spec.rounds_min = spec.rounds_max = like->rounds_max && like->rounds_max < SIMULATED_ROUNDS
                                            ? like->rounds_max
                                            : SIMULATED_ROUNDS;
    spec.time_min_ns = spec.time_max_ns = spec.timeout_ns = 0;
    spec.duet = false;
    spec.keep_going = true;
    spec.no_padding = true; /* what is exact is to stay so */
    spec.on_tick = NULL;
    spec.on_run = NULL;
    spec.is_precise = NULL;
    spec.on_result = take_instructions;
    spec.context = &s;
    r = rounds_run(&spec, ret_rounds, err);
    if (r == 0 && s.code < 0 && !ret_rounds->signal) {
        *err = s.err;
        r = s.code;
    }
    for (size_t i = 0; i < spec.contestant_count; i++)
        free(contestants[i].command.argv);
    free(contestants);
    simulator_done(&s.simulator);
    return r < 0 ? error_wrap(err, r, "--sim") : 0;
}

void ab_add_simulated(struct dataset *d, const struct rounds *r)
{
    const struct event_list none = {0};
    outcome_add_rounds(d, r, &none, SIMULATED_INSTRUCTIONS);
    size_t metric = dataset_metric(d, SIMULATED_INSTRUCTIONS);
    if (metric != DATASET_NONE)
        d->metrics[metric].facts = (struct metric_facts){METRIC_LOWER, .is_count = true};
}

/* SPDX-License-Identifier: MIT */
/* See compare.h. */
#include "analysis/compare.h"
#include "base/memory.h"
#include "base/strings.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

/* Two metrics say the same when their values keep the same ratio within the tolerance, and vary
 * enough for that to be no accident; or exactly. */
#define SAME_TOLERANCE 0.002
#define SAME_EXACTLY 1e-9
#define VARIES_ENOUGH (10 * SAME_TOLERANCE)

static bool is_same_metric(const struct store_metric *a, const struct store_metric *b)
{
    return str_eq(a->name, b->name) && str_eq(a->unit, b->unit);
}

/* By name: ids of two stores, or of two pages, have nothing to do with each other. */
static size_t find_metric(const struct dataset *d, const struct store_metric *like, size_t guess)
{
    if (guess < d->metric_count && is_same_metric(&d->metrics[guess], like))
        return guess;
    for (size_t m = 0; m < d->metric_count; m++)
        if (is_same_metric(&d->metrics[m], like))
            return m;
    return DATASET_NONE;
}

/* "interrupts.CPU3.LOC:…", "schedstat.cpu0.…": a part of what another metric says in all. */
static bool is_detail(const char *name)
{
    for (const char *p = name; (p = strchr(p, '.')); p++)
        if ((str_has_prefix(p + 1, "CPU") || str_has_prefix(p + 1, "cpu")) &&
            isdigit((unsigned char)p[4]))
            return true;
    return false;
}

/*
 * A watched run shows hundreds of functions and call chains that are hardly there.  Each test of
 * one costs the others power, so these are not tested: what decides is how much there is on both
 * sides together, which says nothing of the difference, so that the rate of false discoveries stays
 * what it is (Bourgon, Gentleman and Huber, PNAS 2010).
 */
static bool is_negligible(const struct judge_row *row)
{
    static const struct {
        const char *prefix;
        double least; /* of both means together */
    } shares[] = {{"perf-profile.calltrace.", 2},     {"perf-profile.children.", 1},
                  {"perf-profile.self.", 0.5},        {"perf-sched.wait_and_delay.count.", 2},
                  {"perf-sched.sch_delay.count.", 2}, {"lock-contention.count.", 2}};
    const struct judge_sides *s = &row->sides;
    const char *name = s->base->metrics[s->base_metric].name;
    for (size_t i = 0; i < ARRAY_COUNT(shares); i++)
        if (str_has_prefix(name, shares[i].prefix))
            return row->base.mean + row->new.mean < shares[i].least;
    /* Of other figures of a chain: one that is not seen in most runs. */
    bool of_chain = str_has_prefix(name, "perf-sched.") || str_has_prefix(name, "lock-contention.");
    size_t runs = s->base->cells[s->base_cell].run_count + s->new->cells[s->new_cell].run_count;
    return of_chain && (row->base.count + row->new.count) * 4 < runs * 3;
}

static void add_row(struct compare *c, size_t pair, size_t base_metric, size_t new_metric,
                    bool headline)
{
    const struct compare_pair *p = &c->pairs[pair];
    const struct store_metric *metric = &c->base->metrics[base_metric];
    bool detail = is_detail(metric->name);
    ARRAY_PUSH(c->rows, c->row_count, c->row_capacity) = (struct compare_row){
        .pair = pair,
        .metric = metric,
        .is_detail = detail,
        .folded_into = COMPARE_NONE,
        .judged = {.sides = {c->base, c->new, base_metric, new_metric, p->base_cell, p->new_cell},
                   .headline = headline,
                   .skip = detail,
                   .is_negligible = is_negligible}};
}

static void add_rows(struct compare *c)
{
    CLEANUP(memory_freep)
    bool *is_headline = memory_zalloc(c->base->metric_count + 1, sizeof(bool));
    size_t position = 0, metric;
    while ((metric = dataset_headline(c->base, &position)) != DATASET_NONE) {
        size_t other = find_metric(c->new, &c->base->metrics[metric], metric);
        if (is_headline[metric] || other == DATASET_NONE)
            continue;
        is_headline[metric] = true;
        for (size_t p = 0; p < c->pair_count; p++)
            add_row(c, p, metric, other, true);
    }
    for (size_t m = 0; m < c->base->metric_count; m++) {
        size_t other = is_headline[m] ? DATASET_NONE : find_metric(c->new, &c->base->metrics[m], m);
        for (size_t p = 0; other != DATASET_NONE && p < c->pair_count; p++)
            add_row(c, p, m, other, false);
    }
}

static int compare_places(const struct judge_sides *a, size_t metric, size_t cell)
{
    if (a->new_metric != metric)
        return a->new_metric < metric ? -1 : 1;
    return a->new_cell == cell ? 0 : a->new_cell < cell ? -1 : 1;
}

static int by_place(const void *a, const void *b, void *context)
{
    const struct compare_row *rows = context;
    const struct judge_sides *y = &rows[*(const size_t *)b].judged.sides;
    return compare_places(&rows[*(const size_t *)a].judged.sides, y->new_metric, y->new_cell);
}

static void index_rows(struct compare *c)
{
    c->order = memory_zalloc(c->row_count + 1, sizeof(*c->order));
    for (size_t i = 0; i < c->row_count; i++)
        c->order[i] = i;
    qsort_r(c->order, c->row_count, sizeof(*c->order), by_place, c->rows);
}

/* Rows with nothing to compare go. */
static void judge_all(struct compare *c)
{
    CLEANUP(memory_freep) struct judge_row **rows = memory_zalloc(c->row_count + 1, sizeof(*rows));
    size_t count = 0;
    for (size_t i = 0; i < c->row_count; i++)
        rows[i] = &c->rows[i].judged;
    judge_rows(rows, c->row_count);
    for (size_t i = 0; i < c->row_count; i++) {
        struct compare_row *row = &c->rows[i];
        if (!row->judged.is_there)
            continue;
        row->is_negligible = is_negligible(&row->judged);
        c->test_count += row->judged.tested && !row->judged.headline;
        c->changed_count += row->judged.changed && !row->judged.headline;
        c->rows[count++] = *row;
    }
    c->row_count = count;
}

/* The largest deviation of one column from a fixed multiple of the other; infinity when they have
 * not the same rounds or zeros. */
static double deviation(const struct dataset_column *a, const struct dataset_column *b,
                        double *factor)
{
    double worst = 0;
    if (a->count != b->count)
        return INFINITY;
    for (size_t i = 0; i < a->count; i++) {
        if (a->rounds[i] != b->rounds[i] || (a->values[i] == 0) != (b->values[i] == 0))
            return INFINITY;
        if (a->values[i] == 0)
            continue;
        double ratio = b->values[i] / a->values[i];
        if (isnan(*factor))
            *factor = ratio;
        worst = fmax(worst, fabs(ratio / *factor - 1));
    }
    return worst;
}

static double variation(const struct summary *s)
{
    return s->median != 0 ? fabs((s->max - s->min) / s->median) : 0;
}

/* "proc-vmstat.numa_hit" and "numa-vmstat.node0.numa_hit". */
static bool same_last_part(const char *a, const char *b)
{
    const char *x = strrchr(a, '.'), *y = strrchr(b, '.');
    return x && y && str_eq(x, y);
}

static bool same_fact(const struct compare *c, const struct compare_row *a,
                      const struct compare_row *b)
{
    const struct compare_pair *p = &c->pairs[a->pair];
    if (a->pair != b->pair || a->judged.comparison.scale != b->judged.comparison.scale)
        return false;
    struct dataset_column base_a =
        dataset_column(c->base, a->judged.sides.base_metric, p->base_cell);
    struct dataset_column base_b =
        dataset_column(c->base, b->judged.sides.base_metric, p->base_cell);
    struct dataset_column new_a = dataset_column(c->new, a->judged.sides.new_metric, p->new_cell);
    struct dataset_column new_b = dataset_column(c->new, b->judged.sides.new_metric, p->new_cell);
    double factor = NAN, worst = deviation(&base_a, &base_b, &factor);
    worst = fmax(worst, deviation(&new_a, &new_b, &factor));
    bool telling = same_last_part(a->metric->name, b->metric->name) ||
                   variation(&a->judged.base) + variation(&a->judged.new) >= VARIES_ENOUGH;
    return worst <= (telling ? SAME_TOLERANCE : SAME_EXACTLY);
}

/* Only what changed is looked at: there are few. */
static void fold(struct compare *c)
{
    for (size_t i = 0; i < c->row_count; i++) {
        struct compare_row *row = &c->rows[i];
        for (size_t k = 0; k < i && row->judged.changed && row->folded_into == COMPARE_NONE; k++) {
            struct compare_row *earlier = &c->rows[k];
            if (earlier->judged.changed && earlier->folded_into == COMPARE_NONE &&
                !row->judged.headline && same_fact(c, earlier, row)) {
                row->folded_into = k;
                earlier->folded_count++;
            }
        }
    }
}

static int finish(struct compare *c, struct error *err)
{
    if (c->pair_count == 0)
        return error_set(err, -ENOENT, "no cell of %s has a partner in %s", c->base_name,
                         c->new_name);
    add_rows(c);
    judge_all(c);
    if (c->row_count == 0)
        return error_set(err, -ENODATA, "%s and %s have no metric with values in common",
                         c->base_name, c->new_name);
    fold(c);
    index_rows(c);
    return 0;
}

static char *name_of(const struct dataset *d)
{
    const char *commit = d->experiment.git_commit;
    return memory_printf("%lld (%s%s%.9s)", (long long)d->experiment.id, d->experiment.name,
                         *commit ? ", " : "", commit);
}

int compare_experiments(struct compare *c, const struct dataset *base, const struct dataset *new,
                        struct error *err)
{
    *c = (struct compare){
        .base = base, .new = new, .base_name = name_of(base), .new_name = name_of(new)};
    bool only = base->cell_count == 1 && new->cell_count == 1;
    for (size_t b = 0; b < base->cell_count; b++) {
        const char *label = base->cells[b].label;
        size_t n = dataset_cell(new, label);
        bool renamed = only && n == DATASET_NONE;
        if (n == DATASET_NONE && !renamed) {
            c->unmatched_base++;
            continue;
        }
        ARRAY_PUSH(c->pairs, c->pair_count, c->pair_capacity) = (struct compare_pair){
            .base_cell = b,
            .new_cell = renamed ? 0 : n,
            .label = renamed ? memory_printf("%s, now %s", label, new->cells[0].label)
                             : memory_strdup(only ? "" : label)};
    }
    c->unmatched_new = new->cell_count - c->pair_count;
    return finish(c, err);
}

/* The cell with the new levels where the base's are named, and all else as in `cell`. */
static size_t find_partner(const struct dataset *d, size_t cell, const char *const *base_levels,
                           const char *const *new_levels)
{
    for (size_t n = 0; n < d->cell_count; n++) {
        bool matches = true;
        for (size_t f = 0; matches && f < d->factor_count; f++) {
            const char *wanted = new_levels[f] ? new_levels[f] : d->cells[cell].levels[f];
            if (base_levels[f] && !new_levels[f])
                continue; /* the base fixes it, the new one may have any */
            matches = str_eq(d->cells[n].levels[f], wanted);
        }
        if (matches)
            return n;
    }
    return DATASET_NONE;
}

static char *common_label(const struct dataset *d, size_t cell, const char *const *base_levels,
                          const char *const *new_levels)
{
    struct strbuf label = {0};
    for (size_t f = 0; f < d->factor_count; f++)
        if (!base_levels[f] && !new_levels[f] && *d->cells[cell].levels[f])
            strbuf_printf(&label, "%s%s=%s", label.length ? " " : "", d->factors[f],
                          d->cells[cell].levels[f]);
    return label.data ? label.data : memory_strdup("");
}

int compare_levels(struct compare *c, const struct dataset *d, const char *base_text,
                   const char *new_text, struct error *err)
{
    *c = (struct compare){.base = d,
                          .new = d,
                          .within = true,
                          .base_name = memory_strdup(base_text),
                          .new_name = memory_strdup(new_text)};
    CLEANUP(memory_freep) char *base_copy = memory_strdup(base_text);
    CLEANUP(memory_freep) char *new_copy = memory_strdup(new_text);
    CLEANUP(memory_freep)
    const char **base_levels = memory_zalloc(d->factor_count + 1, sizeof(*base_levels));
    CLEANUP(memory_freep)
    const char **new_levels = memory_zalloc(d->factor_count + 1, sizeof(*new_levels));
    int r = dataset_parse_levels(d, base_copy, base_levels, err);
    if (r == 0)
        r = dataset_parse_levels(d, new_copy, new_levels, err);
    for (size_t cell = 0; r == 0 && cell < d->cell_count; cell++) {
        bool is_base = true;
        for (size_t f = 0; is_base && f < d->factor_count; f++)
            is_base = !base_levels[f] || str_eq(d->cells[cell].levels[f], base_levels[f]);
        if (!is_base)
            continue;
        size_t partner = find_partner(d, cell, base_levels, new_levels);
        if (partner == DATASET_NONE || partner == cell) {
            c->unmatched_base++;
            continue;
        }
        ARRAY_PUSH(c->pairs, c->pair_count, c->pair_capacity) =
            (struct compare_pair){.base_cell = cell,
                                  .new_cell = partner,
                                  .label = common_label(d, cell, base_levels, new_levels)};
    }
    return r < 0 ? r : finish(c, err);
}

void compare_baselines(struct compare *c, const struct dataset *d)
{
    *c = (struct compare){.base = d,
                          .new = d,
                          .within = true,
                          .base_name = memory_strdup(d->experiment.baseline),
                          .new_name = memory_strdup(d->experiment.name)};
    for (size_t cell = 0; cell < d->cell_count; cell++)
        if (d->cells[cell].baseline != DATASET_NONE)
            ARRAY_PUSH(c->pairs, c->pair_count, c->pair_capacity) =
                (struct compare_pair){.base_cell = d->cells[cell].baseline,
                                      .new_cell = cell,
                                      .label = memory_strdup(d->cells[cell].label)};
    add_rows(c);
    judge_all(c);
    fold(c);
    index_rows(c);
}

const struct compare_row *compare_find(const struct compare *c, size_t metric, size_t cell)
{
    size_t low = 0, high = c->row_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct compare_row *row = &c->rows[c->order[middle]];
        int order = compare_places(&row->judged.sides, metric, cell);
        if (order == 0)
            return row;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void compare_done(struct compare *c)
{
    for (size_t p = 0; p < c->pair_count; p++)
        free(c->pairs[p].label);
    free(c->pairs);
    free(c->rows);
    free(c->order);
    free(c->base_name);
    free(c->new_name);
    *c = (struct compare){0};
}

double compare_change(const struct compare_row *row)
{
    const struct comparison *c = &row->judged.comparison;
    return c->scale == COMPARISON_RATIO ? c->estimate - 1 : NAN;
}

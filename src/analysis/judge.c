/* SPDX-License-Identifier: MIT */
/* See judge.h. */
#include "analysis/judge.h"
#include "analysis/judge_trend.h"
#include "analysis/nodes.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/strings.h"
#include "numbers/ticks.h"
#include "stats/dependence.h"
#include "stats/family.h"
#include "stats/means.h"
#include "stats/modes.h"
#include "stats/plan.h"
#include "stats/quantiles.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- pairing ---- */

size_t judge_pair_rounds(const struct dataset_column *a, const struct dataset_column *b,
                         double *first, double *second)
{
    size_t i = 0, k = 0, count = 0;
    while (i < a->count && k < b->count) {
        bool same_node = !a->nodes || !b->nodes || a->nodes[i] == b->nodes[k];
        if (a->rounds[i] == b->rounds[k] && !same_node) {
            i++;
            k++;
        } else if (a->rounds[i] == b->rounds[k]) {
            first[count] = a->values[i++];
            second[count++] = b->values[k++];
        } else if (a->rounds[i] < b->rounds[k]) {
            i++;
        } else {
            k++;
        }
    }
    return count;
}

static int prepare_plain(const struct judge_values *v, struct compared **ret_compared,
                         struct error *err)
{
    if (!v->paired)
        return stats_compared_unpaired(v->base, v->base_count, v->new, v->new_count, ret_compared,
                                       err);
    int r = stats_compared_paired(v->base, v->new, v->base_count, v->adaptive || v->wary,
                                  ret_compared, err);
    if (r == 0 && v->is_emulated)
        compared_emulated(*ret_compared);
    if (r == 0 && v->family_series > 1)
        compared_depend(*ret_compared, v->family_lag1, v->family_series);
    return r;
}

/* Values of a coarse clock are compared as what they may have been before it rounded them. */
static int prepare_ticks(const struct judge_values *v, double tick, struct compared **ret_compared,
                         struct error *err)
{
    size_t all = v->base_count + v->new_count;
    CLEANUP(memory_freep) double *base = memory_alloc(2 * all * sizeof(double));
    double *new = base + v->base_count, *scratch = base + all;
    struct judge_values spread = *v;
    memcpy(base, v->base, v->base_count * sizeof(double));
    memcpy(new, v->new, v->new_count * sizeof(double));
    double base_median = stats_median(base, v->base_count, scratch);
    double new_median = stats_median(new, v->new_count, scratch);
    double hidden = ticks_hidden(base, v->base_count, tick) / base_median +
                    ticks_hidden(new, v->new_count, tick) / new_median;
    ticks_spread(base, v->base_count, tick, 1);
    ticks_spread(new, v->new_count, tick, 2);
    spread.base = base;
    spread.new = new;
    int r = prepare_plain(&spread, ret_compared, err);
    if (r < 0)
        return r;
    (*ret_compared)->known.base_median = base_median;
    (*ret_compared)->known.new_median = new_median;
    if (v->paired)
        compared_hide(*ret_compared, hidden);
    return 0;
}

static int prepare(const struct judge_values *v, struct compared **ret_compared, struct error *err)
{
    double tick = v->is_exact ? 0 : ticks_find(v->base, v->base_count, v->new, v->new_count);
    return tick > 0 ? prepare_ticks(v, tick, ret_compared, err)
                    : prepare_plain(v, ret_compared, err);
}

/* Few rounds without any spread have not shown how large their noise is: a coarse clock gives equal
 * values, too, and so does a switch that happens in every second run.  On the scale of differences
 * nothing says what is large. */
static void distrust_repeats(const struct judge_values *v, double level, struct comparison *c)
{
    bool repeats = c->low == c->high, is_ratio = c->scale == COMPARISON_RATIO;
    size_t rounds = (v->base_count + v->new_count) / 2;
    if ((v->is_exact && !v->by_chance) || !c->too_few || (!repeats && (is_ratio || rounds > 2)) ||
        !comparison_excludes_same(c))
        return;
    double least = rounds < 3 ? 1 : modes_strict_alpha(rounds);
    if (rounds > 2 && is_ratio && fabs(log(c->estimate)) > modes_distance(rounds))
        return;
    c->p = fmax(c->p, least);
    if (1 - level <= least)
        c->low = c->high = NAN;
}

/* What the order of the rounds and the kind of the values add to a comparison. */
static void refine(const struct judge_values *v, double level, struct comparison *c)
{
    judge_trend(v, level, c);
    distrust_repeats(v, level, c);
}

int judge_values(const struct judge_values *v, double level, struct comparison *ret_comparison,
                 struct error *err)
{
    struct compared *compared;
    int r = prepare(v, &compared, err);
    if (r == 0)
        r = compared_ask(compared, level, ret_comparison, err);
    if (r == 0)
        refine(v, level, ret_comparison);
    return r;
}

/* By another figure than the centre. */
static int compare_by(const struct judge_values *v, enum judge_by by, double level,
                      struct comparison *ret)
{
    bool looks = v->paired && v->adaptive;
    level = looks ? plan_look_level(level, v->base_count) : level;
    int r;
    if (by == JUDGE_MEAN)
        r = v->paired ? stats_compare_means_paired(v->base, v->new, v->base_count, level, ret, NULL)
                      : stats_compare_means_unpaired(v->base, v->base_count, v->new, v->new_count,
                                                     level, ret, NULL);
    else
        r = v->paired ? stats_compare_quantile_paired(v->base, v->new, v->base_count, 0.95, level,
                                                      ret, NULL)
                      : stats_compare_quantile_unpaired(v->base, v->base_count, v->new,
                                                        v->new_count, 0.95, level, ret, NULL);
    if (r == 0 && looks)
        ret->running = plan_is_look(v->base_count);
    return r;
}

/* The values of two sides as they are compared, and what is known of them at any level. */
struct collected {
    struct judge_values values;
    double *memory;
    struct compared *compared; /* by their centres; NULL until it is asked for */
};

static void collected_done(struct collected *c)
{
    free(c->memory);
    compared_free(c->compared);
}

/* From this share of disturbed runs on, few rounds are not taken for independent. */
#define WARY_SHARE 0.25

static bool is_wary(const struct judge_sides *s, size_t round_count)
{
    const struct dataset_cell *base = &s->base->cells[s->base_cell],
                              *new = &s->new->cells[s->new_cell];
    double runs = (double)(base->run_count + new->run_count);
    return round_count < COMPARISON_ROUNDS_MIN && runs > 0 &&
           (double)(base->disturbed_count + new->disturbed_count) >= WARY_SHARE * runs;
}

static const struct store_metric *metric_of(const struct judge_sides *s)
{
    return &s->base->metrics[s->base_metric];
}

static bool is_exact(const struct judge_sides *s)
{
    const struct store_metric *m = metric_of(s);
    return m->facts.is_count || str_eq(m->unit, "bytes");
}

/* Counts in which the scheduler, the page cache and the loader have a part. */
static bool is_by_chance(const struct judge_sides *s)
{
    static const char *const names[] = {
        "context-switches", "cpu-migrations",     "page-faults",          "minor-faults",
        "major-faults",     "voluntary-switches", "involuntary-switches", "peak-rss"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (str_eq(metric_of(s)->name, names[i]))
            return true;
    return false;
}

static bool is_emulated(const struct judge_sides *s)
{
    const char *name = metric_of(s)->name;
    return str_has_prefix(name, "exact:") || str_has_prefix(name, "sim:");
}

/* -ENODATA when there is nothing to compare. */
static int collect(const struct judge_sides *s, struct collected *ret)
{
    struct dataset_column base = dataset_column(s->base, s->base_metric, s->base_cell);
    struct dataset_column new = dataset_column(s->new, s->new_metric, s->new_cell);
    *ret = (struct collected){.values = {base.values, new.values, base.count, new.count,
                                         .is_exact = is_exact(s), .by_chance = is_by_chance(s)}};
    if (!base.count || !new.count)
        return -ENODATA;
    if (s->base == s->new && s->base->apart)
        return 0;
    ret->memory = memory_zalloc(2 * base.count, sizeof(*ret->memory));
    double *first = ret->memory, *second = ret->memory + base.count;
    bool within = s->base == s->new;
    size_t count = within ? judge_pair_rounds(&base, &new, first, second)
                          : nodes_pair(s->base, &base, s->new, &new, first, second, NULL);
    if (!within && count < COMPARISON_ROUNDS_MIN)
        return 0;
    ret->values = (struct judge_values){first,
                                        second,
                                        count,
                                        count,
                                        .paired = true,
                                        .is_exact = is_exact(s),
                                        .by_chance = is_by_chance(s),
                                        .is_emulated = is_emulated(s),
                                        .adaptive = within && s->base->experiment.adaptive,
                                        .wary = is_wary(s, count)};
    return count ? 0 : -ENODATA;
}

static int compare_collected(struct collected *c, enum judge_by by, double level,
                             struct comparison *ret)
{
    if (by != JUDGE_MEDIAN)
        return compare_by(&c->values, by, level, ret);
    int r = c->compared ? 0 : prepare(&c->values, &c->compared, NULL);
    if (r < 0)
        return r;
    compared_at(c->compared, level, ret);
    refine(&c->values, level, ret);
    return 0;
}

static int compare_sides(const struct judge_sides *s, enum judge_by by, double level,
                         struct comparison *ret)
{
    CLEANUP(collected_done) struct collected c = {0};
    int r = collect(s, &c);
    return r < 0 ? r : compare_collected(&c, by, level, ret);
}

/* ---- one row ---- */

static double apart(const struct summary *s)
{
    return s->count > 1 && s->min > 0 ? s->max / s->min - 1 : 0;
}

static void put_words(struct judge_row *row)
{
    const struct judge_sides *s = &row->sides;
    const struct store_metric *m = metric_of(s);
    const struct dataset_cell *base = &s->base->cells[s->base_cell],
                              *new = &s->new->cells[s->new_cell];
    struct verdict_options options = {.facts = m->facts,
                                      .unit = m->unit,
                                      .round_seconds = s->new->round_seconds,
                                      .tails = row->tails.looked ? &row->tails : NULL,
                                      .apart = fmax(apart(&row->base), apart(&row->new)),
                                      .run_count = base->run_count + new->run_count,
                                      .disturbed_count =
                                          base->disturbed_count + new->disturbed_count};
    verdict_judge(&row->comparison, &options, &row->verdict);
}

void judge_words(const struct comparison *comparison, struct metric_facts facts, const char *unit,
                 struct verdict *ret_verdict)
{
    struct verdict_options options = {.facts = facts, .unit = unit};
    verdict_judge(comparison, &options, ret_verdict);
}

static bool nothing_varies(const struct judge_row *row)
{
    return row->base.min == row->base.max && row->new.min == row->new.max &&
           row->base.min == row->new.min;
}

static bool summarise(const struct dataset *d, size_t metric, size_t cell, struct summary *ret)
{
    struct dataset_column column = dataset_column(d, metric, cell);
    return column.count && stats_summarise(column.values, column.count, ret, NULL) == 0;
}

/* Looks at everything but the centre. */
static void look_at_tails(struct judge_row *row, const struct judge_values *v)
{
    bool slow_is_high = metric_of(&row->sides)->facts.better != METRIC_HIGHER;
    struct tails tails;
    int r = v->paired
                ? stats_tails_paired(v->base, v->new, v->base_count, &row->comparison, JUDGE_LEVEL,
                                     slow_is_high, &tails, NULL)
                : stats_tails_unpaired(v->base, v->base_count, v->new, v->new_count,
                                       &row->comparison, JUDGE_LEVEL, slow_is_high, &tails, NULL);
    if (r < 0)
        return;
    row->tails = (struct judge_tails){.looked = true,
                                      .p = tails.p,
                                      .strongest = tails.strongest,
                                      .mean = tails.mean,
                                      .p95 = tails.upper[1],
                                      .slow = tails.slow};
}

/* The metric of the means of what the row's values are medians of; DATASET_NONE when there is none.
 */
static size_t means_of(const struct dataset *d, size_t metric)
{
    CLEANUP(memory_freep)
    char *name = memory_printf(JUDGE_MEAN_PREFIX "%s", d->metrics[metric].name);
    return dataset_metric(d, name);
}

static void look_beyond_centre(struct judge_row *row, const struct judge_values *v)
{
    struct judge_sides means = row->sides;
    CLEANUP(collected_done) struct collected c = {0};
    means.base_metric = means_of(means.base, means.base_metric);
    means.new_metric = means_of(means.new, means.new_metric);
    bool is_there = means.base_metric != DATASET_NONE && means.new_metric != DATASET_NONE &&
                    collect(&means, &c) == 0;
    look_at_tails(row, is_there ? &c.values : v);
}

static void call(struct judge_row *row, double tails_alpha)
{
    bool centre = row->tested && comparison_excludes_same(&row->comparison);
    row->tails.beyond = row->tested && row->tails.looked && row->tails.p <= tails_alpha;
    row->tails.differs = row->tails.beyond && !centre;
    row->changed = centre || row->tails.differs;
    put_words(row);
}

/* The row's values; false where there is nothing to compare. */
static bool gather(struct judge_row *row, struct collected *c)
{
    const struct judge_sides *s = &row->sides;
    row->p_adjusted = NAN;
    row->tested = row->changed = row->is_there = false;
    row->tails = (struct judge_tails){0};
    if (dataset_is_bound(s->base, s->base_metric, s->base_cell) ||
        dataset_is_bound(s->new, s->new_metric, s->new_cell))
        return false; /* a bound says nothing about differences */
    if (!summarise(s->base, s->base_metric, s->base_cell, &row->base) ||
        !summarise(s->new, s->new_metric, s->new_cell, &row->new) || collect(s, c) < 0)
        return false;
    row->is_there = true;
    return true;
}

/* All that they say, but for the words. */
static void examine(struct judge_row *row, struct collected *c)
{
    if (!row->is_there || compare_collected(c, row->by, JUDGE_LEVEL, &row->comparison) < 0) {
        row->is_there = false;
        return;
    }
    row->skip |= row->is_negligible && row->is_negligible(row);
    row->tested = !row->skip && comparison_is_tested(&row->comparison) && !nothing_varies(row);
    row->p_adjusted = row->tested ? row->comparison.p : NAN;
    if (row->tested && row->headline && row->by == JUDGE_MEDIAN)
        look_beyond_centre(row, &c->values);
}

bool judge_row(struct judge_row *row)
{
    CLEANUP(collected_done) struct collected c = {0};
    if (gather(row, &c))
        examine(row, &c);
    if (row->is_there)
        call(row, TAILS_SHARE * JUDGE_RATE);
    return row->is_there;
}

bool judge_cells_by(const struct dataset *d, size_t metric, size_t base, size_t new,
                    enum judge_by by, struct comparison *ret_comparison)
{
    struct judge_sides sides = {d, d, metric, metric, base, new};
    return base != DATASET_NONE &&
           new != DATASET_NONE &&compare_sides(&sides, by, JUDGE_LEVEL, ret_comparison) == 0;
}

bool judge_cells(const struct dataset *d, size_t metric, size_t base, size_t new,
                 struct comparison *ret_comparison)
{
    return judge_cells_by(d, metric, base, new, JUDGE_MEDIAN, ret_comparison);
}

bool judge_centre(const struct dataset *d, size_t metric, size_t cell,
                  struct comparison *ret_comparison)
{
    struct dataset_column column = dataset_column(d, metric, cell);
    CLEANUP(memory_freep) double *ones = memory_zalloc(column.count + 1, sizeof(*ones));
    for (size_t i = 0; i < column.count; i++)
        ones[i] = 1;
    struct judge_values values = {ones,         column.values,  column.count,
                                  column.count, .paired = true, .adaptive = d->experiment.adaptive};
    return column.count && judge_values(&values, JUDGE_LEVEL, ret_comparison, NULL) == 0;
}

/* ---- families ---- */

/* Fewer values are judged sooner than threads are started. */
enum { VALUES_WORTH_THREADS = 50000 };

/* Rows that are judged together, and what became known of each on the way. */
struct family {
    struct judge_row *const *rows;
    struct collected *collected; /* NULL where the rows were filled before */
    size_t count, width;
    double *levels;         /* of the rows' intervals; NAN for rows that were not tested */
    double tails_alphas[2]; /* of the others, of headlines */
};

static void gather_job(void *context, size_t index, size_t who)
{
    struct family *f = context;
    (void)who;
    gather(f->rows[index], &f->collected[index]);
}

static void examine_job(void *context, size_t index, size_t who)
{
    struct family *f = context;
    (void)who;
    examine(f->rows[index], &f->collected[index]);
}

/* By rounds, metric and base. */
static int compare_likeness(const void *a, const void *b, void *context)
{
    const struct family *f = context;
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const struct judge_sides *x = &f->rows[i]->sides, *y = &f->rows[k]->sides;
    uintptr_t p[] = {(uintptr_t)x->new, x->new_metric, x->base_cell,
                     f->collected[i].values.base_count};
    uintptr_t q[] = {(uintptr_t)y->new, y->new_metric, y->base_cell,
                     f->collected[k].values.base_count};
    for (size_t n = 0; n < ARRAY_COUNT(p); n++)
        if (p[n] != q[n])
            return p[n] < q[n] ? -1 : 1;
    return 0;
}

/* Tells rows that are alike how much their rounds depend on each other. */
static void share_dependence_of(struct family *f, const size_t *alike, size_t count,
                                const double **series)
{
    size_t rounds = f->collected[alike[0]].values.base_count;
    series[0] = f->collected[alike[0]].values.base;
    for (size_t i = 0; i < count; i++)
        series[i + 1] = f->collected[alike[i]].values.new;
    double lag1 = dependence_of_series(series, count + 1, rounds);
    for (size_t i = 0; i < count; i++) {
        f->collected[alike[i]].values.family_lag1 = lag1;
        f->collected[alike[i]].values.family_series = count;
    }
}

static void share_dependence(struct family *f)
{
    CLEANUP(memory_freep) const double **series = memory_zalloc(f->count + 1, sizeof(*series));
    CLEANUP(memory_freep) size_t *order = memory_zalloc(f->count + 1, sizeof(*order));
    size_t count = 0, next;
    for (size_t i = 0; i < f->count; i++)
        if (f->rows[i]->is_there && f->rows[i]->sides.base == f->rows[i]->sides.new &&
            f->collected[i].values.paired)
            order[count++] = i;
    qsort_r(order, count, sizeof(*order), compare_likeness, f);
    for (size_t i = 0; i < count; i = next) {
        for (next = i + 1; next < count && !compare_likeness(&order[i], &order[next], f);)
            next++;
        if (next - i > 1)
            share_dependence_of(f, order + i, next - i, series);
    }
}

/* Compares at the level that goes with the call, and calls. */
static void call_job(void *context, size_t index, size_t who)
{
    struct family *f = context;
    struct judge_row *row = f->rows[index];
    double level = f->levels[index];
    struct comparison c;
    (void)who;
    if (!isnan(level) && fabs(level - row->comparison.level) > 1e-12 &&
        (f->collected ? compare_collected(&f->collected[index], row->by, level, &c)
                      : compare_sides(&row->sides, row->by, level, &c)) == 0)
        row->comparison = c;
    if (row->is_there)
        call(row, f->tails_alphas[row->headline]);
}

/* The error that a family may make.  Where its rows were chosen from more by what their values say
 * (all against the best), the others count as well. */
static double rate_of(const struct family *f)
{
    double chosen_from = f->count ? f->rows[0]->sides.new->chosen_from : 0;
    return chosen_from > 1 ? -expm1(log1p(-JUDGE_RATE) / chosen_from) : JUDGE_RATE;
}

/* Of the error of a family that has headlines, the part of all other rows together: whoever looks
 * at a table looks at every row of it. */
static double others_share(const struct family *f)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->rows[i]->tested && f->rows[i]->headline)
            return 0.2;
    return 1;
}

/* The levels of headlines, or of all others. */
static void adjust_part(struct family *f, bool headlines)
{
    CLEANUP(memory_freep) struct family_row *rows = memory_zalloc(f->count + 1, sizeof(*rows));
    size_t tests = 0;
    for (size_t i = 0; i < f->count; i++) {
        bool counts = f->rows[i]->tested && f->rows[i]->headline == headlines;
        rows[i] = (struct family_row){.p = counts ? f->rows[i]->comparison.p : NAN,
                                      .is_headline = headlines};
        tests += counts;
    }
    /* A part of the error that a headline may make belongs to its tails. */
    double rate = rate_of(f), share = headlines ? 1 - TAILS_SHARE : others_share(f);
    f->tails_alphas[headlines] = 1 - family_level(1 - rate * TAILS_SHARE, tests ? tests : 1);
    family_adjust(rows, f->count, rate * share);
    for (size_t i = 0; i < f->count; i++) {
        if (isnan(rows[i].p))
            continue;
        f->levels[i] = rows[i].level;
        f->rows[i]->p_adjusted =
            headlines ? rows[i].p_adjusted : fmin(1, rows[i].p_adjusted / share);
    }
}

static void adjust(struct family *f)
{
    CLEANUP(memory_freep) double *levels = memory_zalloc(f->count + 1, sizeof(*levels));
    f->levels = levels;
    for (size_t i = 0; i < f->count; i++)
        levels[i] = NAN;
    adjust_part(f, true);
    adjust_part(f, false);
    parallel_each(f->count, f->width, call_job, f);
}

void judge_family(struct judge_row *const *rows, size_t count)
{
    struct family family = {.rows = rows, .count = count, .width = 1};
    adjust(&family);
}

static size_t width_for(struct judge_row *const *rows, size_t count)
{
    size_t values = 0;
    for (size_t i = 0; i < count && values < VALUES_WORTH_THREADS; i++) {
        const struct judge_sides *s = &rows[i]->sides;
        values += dataset_column(s->new, s->new_metric, s->new_cell).count;
    }
    return values < VALUES_WORTH_THREADS ? 1 : parallel_width();
}

void judge_rows(struct judge_row *const *rows, size_t count)
{
    struct family family = {.rows = rows, .count = count, .width = width_for(rows, count)};
    family.collected = memory_zalloc(count + 1, sizeof(*family.collected));
    parallel_each(count, family.width, gather_job, &family);
    share_dependence(&family);
    parallel_each(count, family.width, examine_job, &family);
    adjust(&family);
    for (size_t i = 0; i < count; i++)
        collected_done(&family.collected[i]);
    free(family.collected);
}

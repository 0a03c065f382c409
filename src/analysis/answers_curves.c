/* SPDX-License-Identifier: MIT */
/* Along one factor: where more threads stop helping, which cells leave the curve of their
 * neighbours; and what a unit of work costs. */
#include "analysis/answers_internal.h"
#include "analysis/judge.h"
#include "base/memory.h"
#include "base/strings.h"
#include "fits/scaling.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A surprise is this many spreads from what its neighbours predict, and at least this share. */
#define SURPRISE_SPREADS 5
#define SURPRISE_SHARE 0.15

struct curve {
    size_t factor;
    size_t few_count, most_points; /* of curves that are too short for a fit */
};

/* The last step upwards that made a difference, told from the comparisons alone. */
static void tell_last_gain(struct question *q, size_t cell, size_t factor, const char *where)
{
    const struct axis *axis = &q->axes[factor];
    size_t last = 0, worse = 0;
    struct comparison few = {0};
    bool any = false;
    for (size_t k = 1; k < axis->count; k++) {
        size_t a = dataset_cell_with(q->d, cell, factor, axis->levels[k - 1]);
        size_t b = dataset_cell_with(q->d, cell, factor, axis->levels[k]);
        struct comparison c;
        if (a == DATASET_NONE || b == DATASET_NONE || !judge_cells(q->d, q->metric, a, b, &c) ||
            c.scale != COMPARISON_RATIO)
            continue;
        any = true;
        if (!comparison_has_interval(&c))
            few = c;
        bool gains = (c.estimate > 1) == (q->better == METRIC_HIGHER);
        if (comparison_differs(&c) && gains)
            last = k;
        else if (comparison_differs(&c) && !worse)
            worse = k;
    }
    if (!any)
        return;
    if (!comparison_has_interval(&few)) {
        answer_add(q, "saturation", where, false, "whether more %s help is undecided (%s)",
                   q->d->factors[factor], why_undecided(q, &few));
        return;
    }
    bool higher = q->better == METRIC_HIGHER;
    const char *good =
        higher ? "more %s help up to %s%s%s%s" : "it falls with more %s, up to %s%s%s%s";
    const char *bad = higher ? "more %s than %s do not help%s%s%s"
                             : "it does not fall with more %s than %s%s%s%s";
    struct answer *answer =
        answer_add(q, "saturation", where, true, last ? good : bad, q->d->factors[factor],
                   axis->levels[last], last && last + 1 == axis->count ? ", the most measured" : "",
                   !worse   ? ""
                   : higher ? "; it gets worse at "
                            : "; it rises at ",
                   worse ? axis->levels[worse] : "");
    answer_number(answer, "last_gain", axis->numbers[last]);
}

/* Beyond these a fit says nothing: how far the runs lie off it, and a coefficient's upper end. */
#define FIT_SPREAD_MAX 0.5
#define FIT_COEFFICIENT_MAX 10.0

static void tell_fit(struct question *q, const struct scaling *s, const char *name,
                     const char *where)
{
    if (!(s->spread <= FIT_SPREAD_MAX && s->sigma.high <= FIT_COEFFICIENT_MAX &&
          s->kappa.high <= FIT_COEFFICIENT_MAX)) {
        answer_add(q, "saturation", where, false,
                   "the scalability law cannot be fitted: the runs vary too much or are too few "
                   "(%zu points, %zu runs)",
                   s->point_count, s->value_count);
        return;
    }
    char peak[160], end[32];
    if (isfinite(s->peak_threads.high))
        snprintf(end, sizeof(end), "%.3g", s->peak_threads.high);
    else
        snprintf(end, sizeof(end), "no end in sight");
    if (!isfinite(s->peak_threads.value))
        snprintf(peak, sizeof(peak), "no peak in sight");
    else
        snprintf(peak, sizeof(peak), "the peak is at %.3g %s [%.3g, %s]%s", s->peak_threads.value,
                 name, s->peak_threads.low, end, s->peak_seen ? "" : ", beyond what was measured");
    struct answer *answer = answer_add(
        q, "saturation", where, true,
        "the scalability law fits within %.2g %%: contention %.3g %% [%.3g, %.3g], coherence %.3g "
        "%% [%.3g, %.3g]; %s (%zu points, %zu runs)",
        100 * s->spread, 100 * s->sigma.value, 100 * s->sigma.low, 100 * s->sigma.high,
        100 * s->kappa.value, 100 * s->kappa.low, 100 * s->kappa.high, peak, s->point_count,
        s->value_count);
    answer_number(answer, "lambda", s->lambda.value);
    answer_number(answer, "sigma", s->sigma.value);
    answer_number(answer, "sigma_low", s->sigma.low);
    answer_number(answer, "sigma_high", s->sigma.high);
    answer_number(answer, "kappa", s->kappa.value);
    answer_number(answer, "kappa_low", s->kappa.low);
    answer_number(answer, "kappa_high", s->kappa.high);
    answer_number(answer, "peak", s->peak_threads.value);
    answer_number(answer, "peak_low", s->peak_threads.low);
    answer_number(answer, "peak_high", s->peak_threads.high);
}

static void look_for_saturation(struct question *q, size_t cell, void *context)
{
    struct curve *curve = context;
    const struct axis *axis = &q->axes[curve->factor];
    const char *where = where_without(q, cell, curve->factor, curve->factor);
    const char *name = q->d->factors[curve->factor];
    double *threads = NULL, *values = NULL;
    size_t count = 0, capacity = 0, value_count = 0, value_capacity = 0, points = 0;
    for (size_t k = 0; k < axis->count; k++) {
        size_t at = dataset_cell_with(q->d, cell, curve->factor, axis->levels[k]);
        if (at == DATASET_NONE)
            continue;
        struct dataset_column column = dataset_column(q->d, q->metric, at);
        points += column.count > 0;
        for (size_t i = 0; i < column.count; i++) {
            ARRAY_PUSH(threads, count, capacity) = axis->numbers[k];
            ARRAY_PUSH(values, value_count, value_capacity) = column.values[i];
        }
    }
    tell_last_gain(q, cell, curve->factor, where);
    if (q->better != METRIC_HIGHER) /* the law is one of throughput */
        count = points = 0;
    struct scaling scaling;
    int r = count ? scaling_fit(threads, values, count, q->d->experiment.seed, &scaling, NULL)
                  : -ENODATA;
    if (r == 0)
        tell_fit(q, &scaling, name, where);
    if (r == -ENODATA && points) {
        curve->few_count++;
        curve->most_points = points > curve->most_points ? points : curve->most_points;
    }
    free(threads);
    free(values);
}

void answer_saturation(struct question *q)
{
    if (q->better == METRIC_NEITHER)
        return;
    for (size_t f = 0; f < q->d->factor_count; f++) {
        struct curve curve = {.factor = f};
        if (dataset_counts_workers(q->d->factors[f]) && q->axes[f].numbers &&
            q->axes[f].count > 1 && q->axes[f].numbers[0] > 0)
            each_context(q, f, f, look_for_saturation, &curve);
        if (curve.few_count)
            answer_add(
                q, "saturation", "", false,
                "too few different values (%zu) of %s to fit the scalability law; it needs %d",
                curve.most_points, q->d->factors[f], SCALING_POINTS_MIN);
    }
}

/* How far one cell is from the line between its two neighbours, on logarithmic scales. */
struct residual {
    size_t cell, factor;
    size_t neighbours[2];
    const char *level, *lower; /* its value of the factor, and that of the neighbour below */
    double log_ratio, predicted, distance;
};

struct residuals {
    struct residual *items;
    size_t count, capacity;
    size_t factor;
};

static void collect_residuals(struct question *q, size_t cell, void *context)
{
    struct residuals *all = context;
    const struct axis *axis = &q->axes[all->factor];
    for (size_t k = 1; k + 1 < axis->count; k++) {
        size_t at[3];
        double x[3], y[3];
        bool usable = true;
        for (size_t i = 0; i < 3 && usable; i++) {
            at[i] = dataset_cell_with(q->d, cell, all->factor, axis->levels[k - 1 + i]);
            x[i] = axis->numbers[k - 1 + i];
            y[i] = at[i] == DATASET_NONE ? NAN : dataset_median(q->d, q->metric, at[i]);
            usable = x[i] > 0 && y[i] > 0;
        }
        if (!usable)
            continue;
        double share = (log(x[1]) - log(x[0])) / (log(x[2]) - log(x[0]));
        double predicted = log(y[0]) + share * (log(y[2]) - log(y[0]));
        ARRAY_PUSH(all->items, all->count, all->capacity) =
            (struct residual){.cell = at[1],
                              .factor = all->factor,
                              .neighbours = {at[0], at[2]},
                              .level = axis->levels[k],
                              .lower = axis->levels[k - 1],
                              .log_ratio = log(y[1]) - predicted,
                              .predicted = exp(predicted)};
    }
}

/* A neighbour that is further off itself explains it. */
static bool is_explained(const struct residuals *all, const struct residual *r)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct residual *other = &all->items[i];
        if (other->factor == r->factor && other->distance > r->distance &&
            (other->cell == r->neighbours[0] || other->cell == r->neighbours[1]))
            return true;
    }
    return false;
}

static int by_distance(const void *a, const void *b)
{
    const struct residual *first = a, *second = b;
    if (first->distance != second->distance)
        return first->distance > second->distance ? -1 : 1;
    return (first->cell > second->cell) - (first->cell < second->cell);
}

static struct answer *tell_residual(struct question *q, const struct residual *r, const char *where,
                                    const char *before, const char *after)
{
    double median = dataset_median(q->d, q->metric, r->cell);
    struct answer *answer = answer_add(
        q, "surprise", where, false, "%s%s, where its neighbours in %s suggest %s (%+.0f %%)%s",
        before, value_text(q, median), q->d->factors[r->factor], value_text(q, r->predicted),
        100 * (median / r->predicted - 1), after);
    answer_number(answer, "value", median);
    answer_number(answer, "expected", r->predicted);
    return answer;
}

/* The largest comes first, and with it the command that looks for the reason. */
static void tell_surprises(struct question *q, const struct residuals *all, double spread)
{
    size_t told = 0;
    for (size_t i = 0; i < all->count; i++) {
        const struct residual *r = &all->items[i];
        if (r->distance < SURPRISE_SPREADS * spread || r->distance < log1p(SURPRISE_SHARE) ||
            is_explained(all, r))
            continue;
        const char *factor = q->d->factors[r->factor];
        CLEANUP(memory_freep)
        char *why = memory_printf("; 'assay explain %s=%s %s=%s' looks for the reason", factor,
                                  r->lower, factor, r->level);
        tell_residual(q, r, q->d->cells[r->cell].label, "", told++ ? "" : why);
    }
    if (told)
        return;
    /* That nothing surprises is an answer, too. */
    CLEANUP(memory_freep)
    char *before =
        memory_printf("no cell stands out from the scatter of the others; the farthest is "
                      "%s: ",
                      q->d->cells[all->items[0].cell].label);
    tell_residual(q, &all->items[0], "", before, "");
}

void answer_surprises(struct question *q)
{
    struct residuals all = {0};
    for (all.factor = 0; all.factor < q->d->factor_count; all.factor++)
        if (q->axes[all.factor].numbers && q->axes[all.factor].count >= 4)
            each_context(q, all.factor, all.factor, collect_residuals, &all);
    CLEANUP(memory_freep) double *values = memory_zalloc(all.count + 1, sizeof(double));
    for (size_t i = 0; i < all.count; i++)
        values[i] = all.items[i].log_ratio;
    struct summary s;
    if (all.count >= 5 && stats_summarise(values, all.count, &s, NULL) == 0) {
        for (size_t i = 0; i < all.count; i++)
            all.items[i].distance = fabs(all.items[i].log_ratio - s.median);
        qsort(all.items, all.count, sizeof(all.items[0]), by_distance);
        tell_surprises(q, &all, s.mad);
    }
    free(all.items);
}

/* The median over the runs of cost for each unit of work; NAN when it is not known. */
static double cost_of(struct question *q, size_t cell, size_t work, const size_t *costs,
                      size_t cost_count)
{
    struct dataset_column w = dataset_column(q->d, work, cell);
    CLEANUP(memory_freep) double *values = memory_zalloc(2 * w.count + 1, sizeof(double));
    size_t count = 0;
    for (size_t i = 0; i < w.count; i++) {
        double sum = 0;
        for (size_t k = 0; k < cost_count; k++) {
            struct dataset_column c = dataset_column(q->d, costs[k], cell);
            size_t at = 0;
            while (at < c.count && c.rounds[at] != w.rounds[i])
                at++;
            sum += at < c.count ? c.values[at] : NAN;
        }
        if (isfinite(sum) && w.values[i] > 0)
            values[count++] = sum / w.values[i];
    }
    return count ? stats_median(values, count, values + w.count) : NAN;
}

static void tell_cost(struct question *q, size_t work, const size_t *costs, size_t cost_count,
                      const char *what)
{
    size_t best = DATASET_NONE, worst = DATASET_NONE;
    double least = NAN, most = NAN;
    for (size_t c = 0; c < q->d->cell_count; c++) {
        double cost = cost_of(q, c, work, costs, cost_count);
        if (isnan(cost))
            continue;
        if (best == DATASET_NONE || cost < least) {
            best = c;
            least = cost;
        }
        if (worst == DATASET_NONE || cost > most) {
            worst = c;
            most = cost;
        }
    }
    if (best == DATASET_NONE)
        return;
    const char *unit = q->d->metrics[work].name;
    struct answer *answer;
    if (best == worst)
        answer = answer_add(q, "efficiency", "", true, "%.4g %s for each of %s", least, what, unit);
    else
        answer = answer_add(q, "efficiency", "", true,
                            "%.4g to %.4g %s for each of %s: least at %s, most at %s", least, most,
                            what, unit, q->d->cells[best].label, q->d->cells[worst].label);
    answer_number(answer, "least", least);
    answer_number(answer, "most", most);
}

void answer_efficiency(struct question *q, const char *work)
{
    size_t metric = work ? dataset_metric(q->d, work) : DATASET_NONE;
    size_t position = 0;
    /* Once, with the first headline. */
    if (metric == DATASET_NONE || dataset_headline(q->d, &position) != q->metric)
        return;
    static const struct {
        const char *name, *what;
    } counted[] = {{"cycles", "cycles"}, {"instructions", "instructions (path length)"}};
    for (size_t i = 0; i < ARRAY_COUNT(counted); i++) {
        size_t cost = dataset_metric(q->d, counted[i].name);
        if (cost != DATASET_NONE)
            tell_cost(q, metric, &cost, 1, counted[i].what);
    }
    size_t times[2] = {dataset_metric(q->d, "user"), dataset_metric(q->d, "sys")};
    if (times[0] != DATASET_NONE && times[1] != DATASET_NONE)
        tell_cost(q, metric, times, 2, "ns of CPU time");
}

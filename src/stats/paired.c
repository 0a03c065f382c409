/* SPDX-License-Identifier: MIT */
/*
 * The paired comparison: the median of the log ratios of the rounds, with the interval that inverts
 * the sign test (exact), widened where the rounds depend on each other.  See comparison.h; the
 * reasons and what was tried instead stand in docs/METHOD.md.
 */
#include "base/memory.h"
#include "stats/comparison.h"
#include "stats/dependence.h"
#include "stats/median.h"
#include "stats/sort.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static void compare(const double *values, double *sorted, double *scratch, size_t count,
                    double level, double extra, struct comparison *c)
{
    memcpy(sorted, values, count * sizeof(double));
    sort_doubles(sorted, count);
    rank_doubles(values, sorted, count, scratch);
    struct dependence dependence;
    dependence_estimate(scratch, count, &dependence);
    double widening = extra * dependence_widening(dependence.lag1, dependence.block, count);
    double asked = dependence_alpha(1 - level, count);
    struct median_interval m;
    median_interval(sorted, count, 1 - asked, &m);
    c->estimate = m.median;
    c->low = count > 1 ? m.median - widening * (m.median - m.low) : NAN;
    c->high = count > 1 ? m.median + widening * (m.high - m.median) : NAN;
    c->level = m.level < 1 - asked ? m.level : level;
    c->p = dependence_p(median_p(sorted, count, m.median - m.median / widening), count);
    c->autocorrelation = dependence.lag1;
    c->autocorrelated = dependence.found;
    c->widening = widening;
    c->effective_count = (double)count / (widening * widening);
}

static int compare_rounds(const double *base_values, const double *new_values, size_t round_count,
                          double level, double extra, struct comparison *ret_comparison,
                          struct error *err)
{
    size_t n = round_count;
    if (n == 0)
        return error_set(err, -EINVAL, "no rounds to compare");
    if (!(level > 0 && level < 1))
        return error_set(err, -EINVAL, "a level of %g is not between 0 and 1", level);
    int r = stats_check_finite(base_values, n, "base value", err);
    if (r == 0)
        r = stats_check_finite(new_values, n, "new value", err);
    if (r < 0)
        return r;
    double *values CLEANUP(memory_freep) = memory_alloc(3 * n * sizeof(double));
    double *sorted = values + n, *scratch = values + 2 * n;
    bool positive = true;
    for (size_t i = 0; i < n; i++)
        positive = positive && base_values[i] > 0 && new_values[i] > 0;
    for (size_t i = 0; i < n; i++)
        values[i] = positive ? log(new_values[i] / base_values[i]) : new_values[i] - base_values[i];
    struct comparison c = {
        .scale = positive ? COMPARISON_RATIO : COMPARISON_DIFFERENCE,
        .base_median = stats_median(base_values, n, scratch),
        .new_median = stats_median(new_values, n, scratch),
        .base_count = n,
        .new_count = n,
        .paired = true,
        .too_few = n < COMPARISON_ROUNDS_MIN,
        .method = "median of paired ratios, sign test",
    };
    compare(values, sorted, scratch, n, level, extra, &c);
    comparison_from_logs(&c);
    *ret_comparison = c;
    return 0;
}

int stats_compare_paired(const double *base_values, const double *new_values, size_t round_count,
                         double level, struct comparison *ret_comparison, struct error *err)
{
    return compare_rounds(base_values, new_values, round_count, level, 1, ret_comparison, err);
}

int stats_compare_paired_stopped(const double *base_values, const double *new_values,
                                 size_t round_count, double level,
                                 struct comparison *ret_comparison, struct error *err)
{
    return compare_rounds(base_values, new_values, round_count, level, COMPARISON_STOPPED_WIDENING,
                          ret_comparison, err);
}

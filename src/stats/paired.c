/* SPDX-License-Identifier: MIT */
/*
 * The paired comparison: the Hodges-Lehmann estimate of the log ratios of the rounds, with the
 * interval that inverts Wilcoxon's signed-rank test (exact up to 40 rounds), widened where the
 * rounds depend on each other.  See comparison.h and docs/METHOD.md.
 */
#include "base/memory.h"
#include "stats/comparison.h"
#include "stats/dependence.h"
#include "stats/pairsums.h"
#include "stats/ranktests.h"
#include "stats/sort.h"

#include <errno.h>
#include <math.h>

static double median_of(const double *values, size_t count, double *scratch)
{
    for (size_t i = 0; i < count; i++)
        scratch[i] = values[i];
    double upper = select_double(scratch, count, count / 2);
    if (count % 2)
        return upper;
    return (upper + select_double(scratch, count, count / 2 - 1)) / 2;
}

static int check(const double *values, size_t count, const char *which, bool *positive,
                 struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            return error_set(err, -EINVAL,
                             "%s value %zu of %zu is %g; only finite numbers can be "
                             "compared",
                             which, i + 1, count, values[i]);
        *positive = *positive && values[i] > 0;
    }
    return 0;
}

/* The element at a place between two whole places, places counted from 0. */
static double select_between(const struct pair_sums *sums, double place, double *scratch,
                             size_t scratch_count)
{
    uint64_t whole = (uint64_t)place;
    double part = place - (double)whole;
    double value = pair_sums_select(sums, whole, scratch, scratch_count);
    if (part > 0)
        value += part * (pair_sums_select(sums, whole + 1, scratch, scratch_count) - value);
    return value;
}

/* p of the hypothesis that the centre is `value`: where it stands among the sums. */
static double p_of(const struct pair_sums *sums, const struct rank_table *table, double value,
                   double estimate)
{
    double total = (double)pair_sums_total(sums), below, above;
    double count = (double)pair_sums_count(sums, value, &below, &above);
    if (value == estimate)
        return 1;
    if (count < 1 || count >= total)
        return rank_table_p(table, 0);
    double part = isfinite(above) && above > below ? (value - below) / (above - below) : 0;
    double place = count - 1 + part;
    return rank_table_p(table, value < estimate ? place : total - 1 - place);
}

static void compare(const double *logs, double *sorted, double *ranks, double *scratch,
                    size_t count, double level, struct comparison *c)
{
    for (size_t i = 0; i < count; i++)
        sorted[i] = logs[i];
    sort_doubles(sorted, count);
    rank_doubles(logs, sorted, count, ranks);
    struct dependence dependence;
    dependence_estimate(ranks, count, &dependence);
    struct rank_table table;
    rank_table_signed(&table, count);
    struct pair_sums walsh = {sorted, sorted, count, count, 0.5, true};
    double last = (double)pair_sums_total(&walsh) - 1;
    double estimate = select_between(&walsh, last / 2, scratch, count);
    double critical = rank_table_critical(&table, 1 - level);
    c->level = critical < 0 ? 1 - rank_table_p(&table, 0) : level;
    critical = fmax(critical, 0);
    double low = select_between(&walsh, critical, scratch, count);
    double high = select_between(&walsh, last - critical, scratch, count);
    c->estimate = estimate;
    c->low = count > 1 ? estimate - dependence.widening * (estimate - low) : NAN;
    c->high = count > 1 ? estimate + dependence.widening * (high - estimate) : NAN;
    c->p = p_of(&walsh, &table, estimate - estimate / dependence.widening, estimate);
    c->autocorrelation = dependence.lag1;
    c->autocorrelated = dependence.found;
    c->widening = dependence.widening;
    c->effective_count = (double)count / (dependence.widening * dependence.widening);
}

int stats_compare_paired(const double *base_values, const double *new_values, size_t round_count,
                         double level, struct comparison *ret_comparison, struct error *err)
{
    bool positive = true;
    if (round_count == 0)
        return error_set(err, -EINVAL, "no rounds to compare");
    if (!(level > 0 && level < 1))
        return error_set(err, -EINVAL, "a level of %g is not between 0 and 1", level);
    int r = check(base_values, round_count, "base", &positive, err);
    if (r == 0)
        r = check(new_values, round_count, "new", &positive, err);
    if (r < 0)
        return r;
    size_t n = round_count;
    double *room CLEANUP(memory_freep) = memory_alloc(4 * n * sizeof(double));
    double *values = room, *sorted = room + n, *ranks = room + 2 * n, *scratch = room + 3 * n;
    for (size_t i = 0; i < n; i++)
        values[i] = positive ? log(new_values[i] / base_values[i]) : new_values[i] - base_values[i];
    struct comparison c = {
        .scale = positive ? COMPARISON_RATIO : COMPARISON_DIFFERENCE,
        .base_median = median_of(base_values, n, scratch),
        .new_median = median_of(new_values, n, scratch),
        .base_count = n,
        .new_count = n,
        .too_few = n < COMPARISON_ROUNDS_MIN,
    };
    c.method = n <= SIGNED_RANK_EXACT_MAX ? "paired, exact signed rank" : "paired, signed rank";
    compare(values, sorted, ranks, scratch, n, level, &c);
    if (positive) {
        c.estimate = exp(c.estimate);
        c.low = exp(c.low);
        c.high = exp(c.high);
    }
    *ret_comparison = c;
    return 0;
}

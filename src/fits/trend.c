/* SPDX-License-Identifier: MIT */
/*
 * See trend.h.  Noise that resembles the round before looks like a trend, so the variance of
 * Kendall's score is multiplied by what the autocorrelation around the line makes of it.  All pairs
 * of rounds are looked at; beyond PLACES_MAX rounds, pairs of medians of neighbouring rounds.
 */
#include "fits/trend.h"
#include "base/memory.h"
#include "numbers/distributions.h"
#include "numbers/sort.h"
#include "stats/dependence.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { PLACES_MAX = 600, ROUNDS_MIN = 8 };

static const double chance = 0.01;
/* Of all pairs, this many more rise than fall (or fall than rise): a movement, even where it is so
 * smooth and so little straight that what is left around the line depends on itself. */
static const double nearly_all = 0.9;

/* The medians of at most PLACES_MAX stretches of equal length, in place of the values. */
static size_t thin(double *values, size_t count, double *scratch)
{
    size_t size = (count + PLACES_MAX - 1) / PLACES_MAX, places = count / size;
    for (size_t i = 0; size > 1 && i < places; i++)
        values[i] = stats_median(values + i * size, size, scratch);
    return places;
}

/* Theil & Sen: the median slope of all pairs. */
static double slope_of(const double *values, size_t count)
{
    size_t pairs = count * (count - 1) / 2, k = 0;
    double *slopes CLEANUP(memory_freep) = memory_alloc((2 * pairs + 1) * sizeof(double));
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            slopes[k++] = (values[j] - values[i]) / (double)(j - i);
    return stats_median(slopes, pairs, slopes + pairs);
}

/* Kendall's score: pairs that rise minus pairs that fall. */
static double score_of(const double *values, size_t count)
{
    double score = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            score += (values[j] > values[i]) - (values[j] < values[i]);
    return score;
}

/* Its variance without a trend; equal values take from it. */
static double variance_of(const double *sorted, size_t count)
{
    double n = (double)count, variance = n * (n - 1) * (2 * n + 5);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && sorted[end] == sorted[i]; end++)
            ;
        double t = (double)(end - i);
        variance -= t * (t - 1) * (2 * t + 5);
    }
    return variance / 18;
}

static void fit(struct trend *t, double *values, size_t count)
{
    double *room CLEANUP(memory_freep) = memory_alloc(4 * count * sizeof(double));
    double *rest = room + count, *sorted = room + 2 * count, *ranks = room + 3 * count;
    size_t places = thin(values, count, room);
    double slope = slope_of(values, places), n = (double)places;
    memcpy(sorted, values, places * sizeof(double));
    sort_doubles(sorted, places);
    double score = score_of(values, places), variance = variance_of(sorted, places);
    for (size_t i = 0; i < places; i++)
        rest[i] = values[i] - slope * (double)i;
    double start = stats_median(rest, places, room);
    memcpy(sorted, rest, places * sizeof(double));
    sort_doubles(sorted, places);
    rank_doubles(rest, sorted, places, ranks);
    struct dependence d;
    dependence_estimate(ranks, places, &d);
    double widening = dependence_widening(d.lag1, d.block, places);
    double z = score == 0 || !(variance > 0) ? 0 : (fabs(score) - 1) / sqrt(variance) / widening;
    t->p = 2 * dist_normal_cdf(-z);
    t->first = start;
    t->last = start + slope * (n - 1);
    double noise = stats_quantile(sorted, places, 0.75) - stats_quantile(sorted, places, 0.25);
    bool moves = t->p < chance || fabs(score) >= nearly_all * n * (n - 1) / 2;
    t->found = count >= ROUNDS_MIN && moves && fabs(t->last - t->first) >= noise / 2;
}

static void from_logs(struct trend *t)
{
    if (t->scale != COMPARISON_RATIO)
        return;
    t->first = exp(t->first);
    t->last = exp(t->last);
    t->least = exp(t->least);
    t->most = exp(t->most);
}

int stats_trend(const double *base_values, const double *new_values, size_t round_count,
                struct trend *ret_trend, struct error *err)
{
    if (round_count == 0)
        return error_set(err, -EINVAL, "no rounds to compare");
    int r = stats_check_finite(base_values, round_count, "base value", err);
    if (r == 0)
        r = stats_check_finite(new_values, round_count, "new value", err);
    if (r < 0)
        return r;
    struct trend t = {.scale = COMPARISON_RATIO, .count = round_count};
    double *values CLEANUP(memory_freep) = memory_alloc(round_count * sizeof(double));
    for (size_t i = 0; i < round_count; i++)
        if (!(base_values[i] > 0 && new_values[i] > 0))
            t.scale = COMPARISON_DIFFERENCE;
    for (size_t i = 0; i < round_count; i++) {
        values[i] = t.scale == COMPARISON_RATIO ? log(new_values[i] / base_values[i])
                                                : new_values[i] - base_values[i];
        t.above += values[i] > 0;
        t.below += values[i] < 0;
        t.least = i == 0 ? values[i] : fmin(t.least, values[i]);
        t.most = i == 0 ? values[i] : fmax(t.most, values[i]);
    }
    size_t fewer = t.above < t.below ? t.above : t.below, unequal = t.above + t.below;
    t.agree_p = unequal ? fmin(1, 2 * dist_binomial_cdf(fewer, unequal, 0.5)) : 1;
    t.all_agree = round_count >= ROUNDS_MIN && (t.above == round_count || t.below == round_count);
    fit(&t, values, round_count);
    from_logs(&t);
    *ret_trend = t;
    return 0;
}

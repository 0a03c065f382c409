/* SPDX-License-Identifier: MIT */
/*
 * See dependence.h.
 *
 * Two looks at the same thing.  The rank version of von Neumann's ratio (Bartels 1982), mean
 * square difference of neighbours over twice the variance, sees dependence between neighbours from
 * few values.  Blocking (Flyvbjerg & Petersen 1989), comparing the spread of means of 2, 4, 8 …
 * neighbours with what independence predicts, sees slow wandering, but needs many.
 *
 * With a known correlation the standard error grows by sqrt((1 + r) / (1 - r)).  From eight values
 * r is known very badly, and the constants below make up for it: they were chosen by simulation so
 * that the final interval covers 93 to 97 % for independent noise of any shape and at least 90 %
 * for autocorrelations up to 0.5 (bench/stats-coverage; docs/METHOD.md has the table).
 */
#include "stats/dependence.h"
#include "base/memory.h"
#include "numbers/distributions.h"
#include "numbers/sort.h"
#include "stats/summary.h"

#include <math.h>
#include <string.h>

enum { BLOCKS_MIN = 6 };

static const double block_chance = 0.01;      /* widen only for what chance does more seldom */
static const double small_sample_boost = 4.7; /* at ten values */
static const double small_sample_alpha = 2;
static const double ignored_from = 25; /* with so many values, small correlations are ignored */

static double mean_square(const double *values, size_t count)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        mean += values[i];
    mean /= (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return squares / (double)(count - 1);
}

static double neighbour_correlation(const double *scores, size_t count, double variance)
{
    double steps = 0;
    for (size_t i = 1; i < count; i++)
        steps += (scores[i] - scores[i - 1]) * (scores[i] - scores[i - 1]);
    return 1 - steps / (2 * variance * (double)(count - 1));
}

/* Halves the series again and again; the scores become block means in place. */
static double block_excess(double *scores, size_t count, double variance, bool *found)
{
    double worst = 1;
    size_t size = 1;
    for (size_t blocks = count / 2; blocks >= BLOCKS_MIN; blocks /= 2) {
        for (size_t i = 0; i < blocks; i++)
            scores[i] = (scores[2 * i] + scores[2 * i + 1]) / 2;
        size *= 2;
        double freedom = (double)blocks - 1;
        double ratio = mean_square(scores, blocks) * (double)size / variance;
        if (ratio <= 1)
            continue;
        double chance = dist_chi_square_tail(ratio * freedom, freedom);
        if (chance > block_chance)
            continue;
        *found = *found || chance < block_chance / 2;
        double widening =
            sqrt(ratio) * dist_t_quantile(0.975, freedom) / dist_normal_quantile(0.975);
        worst = fmax(worst, widening);
    }
    return worst;
}

void dependence_estimate(double *scores, size_t count, struct dependence *ret_dependence)
{
    struct dependence d = {.block = 1};
    double variance = count < 4 ? 0 : mean_square(scores, count);
    if (variance > 0) {
        double n = (double)count;
        d.lag1 = neighbour_correlation(scores, count, variance);
        d.found = d.lag1 > dist_normal_quantile(0.99) * sqrt((n - 2) / (n * n - 1));
        d.block = block_excess(scores, count, variance, &d.found);
    }
    *ret_dependence = d;
}

/* The same of values; `scratch` holds 2 count. */
static struct dependence estimate_of(const double *values, size_t count, double *scratch)
{
    double *sorted = scratch, *ranks = scratch + count;
    struct dependence d;
    memcpy(sorted, values, count * sizeof(double));
    sort_doubles(sorted, count);
    rank_doubles(values, sorted, count, ranks);
    dependence_estimate(ranks, count, &d);
    return d;
}

/* From this many series on, one that goes its own way does not move what they share. */
enum { SERIES_FOR_MEDIAN = 5 };

/* What the series share in one round. */
static double shared_of(double *logs, size_t series_count, double *scratch)
{
    double sum = 0;
    if (series_count >= SERIES_FOR_MEDIAN)
        return stats_median(logs, series_count, scratch);
    for (size_t s = 0; s < series_count; s++)
        sum += logs[s];
    return sum / (double)series_count;
}

double dependence_of_series(const double *const *series, size_t series_count, size_t count)
{
    double *rest CLEANUP(memory_freep) =
        memory_alloc(((series_count + 2) * count + 2 * series_count + 1) * sizeof(double));
    double *scratch = rest + series_count * count, *logs = scratch + 2 * count, sum = 0;
    bool positive = true;
    for (size_t s = 0; s < series_count; s++)
        for (size_t i = 0; i < count; i++)
            positive = positive && series[s][i] > 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t s = 0; s < series_count; s++)
            logs[s] = positive ? log(series[s][i]) : series[s][i];
        double shared = shared_of(logs, series_count, logs + series_count);
        for (size_t s = 0; s < series_count; s++)
            rest[s * count + i] = logs[s] - shared;
    }
    for (size_t s = 0; s < series_count; s++)
        sum += estimate_of(rest + s * count, count, scratch).lag1;
    return series_count ? sum / (double)series_count : 0;
}

/* With many values chance makes small correlations only: what is below its standard deviation is
 * taken for chance, what is above twice that for real, and what lies between for a part. */
static double beyond_chance(double lag1, double n)
{
    double sure = fmax(0, 1 - ignored_from / n), part = lag1 * sqrt(n) - sure;
    if (part >= 1 || sure == 0)
        return lag1;
    return part < 0 ? 0 : lag1 * (part + (1 - sure) * (1 - part));
}

double dependence_widening(double lag1, double block, size_t count)
{
    double n = (double)count, r = beyond_chance(fmin(lag1, 0.98), n);
    if (r <= 0)
        return block;
    double boost = 0.8 + small_sample_boost * pow(10 / n, 2.5);
    double widening = 1 + boost * (sqrt((1 + r) / (1 - r)) - 1);
    return fmax(block, fmin(widening, fmax(3.25, n / 4)));
}

/* Between so many standard deviations of chance, a part of a correlation counts. */
static const double sure_from = 1.3, sure_at = 2.4;
/* How many of its own errors are added: many rows ask for more certainty than one. */
static const double sure_errors = 0.5, sure_errors_of_many = 1, sure_most = 0.98;
static const double sure_least = 0.05; /* less changes nothing that can be seen */

/* What dependence_estimate shows on average of a correlation of 1: few values hide much of it, and
 * of a smaller one the same share (simulated for 4 to 100 values). */
static double shown_share(double n)
{
    return 1 - 8 / (n + 7.5);
}

double dependence_sure(double lag1, size_t count, size_t series)
{
    double n = (double)count, all = n * (double)series, share = shown_share(n);
    double beyond = (lag1 * sqrt(all) - sure_from) / (sure_at - sure_from);
    if (count < 4 || !(beyond > 0))
        return 0;
    double error = sqrt(fmax(0.05, 1 - lag1 * lag1) / all);
    double errors = series > 1 ? sure_errors_of_many : sure_errors;
    double sure = fmin(1, beyond) * fmin((lag1 + errors * error) / share, sure_most);
    return sure < sure_least ? 0 : sure;
}

double dependence_sure_error(double sure, size_t count, double *ret_freedom)
{
    double n = (double)count, r = sure;
    *ret_freedom = n - 1;
    if (!(sure > 0))
        return 1;
    /* Of noise of variance 1: the variance of the mean, and that within the values. */
    double mean = ((1 + r) / (1 - r) - 2 * r * (1 - pow(r, n)) / (n * (1 - r) * (1 - r))) / n;
    double within = n / (n - 1) * (1 - mean);
    /* The freedom of the spread was found by simulation, for r known. */
    *ret_freedom = fmin(n - 1, 1.6 / mean + 2);
    return sqrt(mean * n / within);
}

double dependence_sure_widening(double sure, size_t count, double alpha)
{
    double freedom, error = dependence_sure_error(sure, count, &freedom);
    double p = 1 - alpha / 2, n = (double)count;
    return sure > 0 ? fmax(1, error * dist_t_quantile(p, freedom) / dist_t_quantile(p, n - 1)) : 1;
}

/* Found by simulation of stopping at the first interval that is narrow enough, for correlations up
 * to 0.9 (bench/stats-coverage). */
static const double most_errors = 1.2, most_growth = 3, most_bias = 3;
/* Two and three values allow any correlation; an interval without an end would help nobody. */
static const double most_of_few = 4;

double dependence_widening_most(double lag1, double block, size_t count)
{
    /* Fewer than 8 values do not show that they depend on each other in the favourable way. */
    double n = (double)count, r = fmin(fmax(lag1, count < 8 ? 0 : -1), 1), up = fmax(r, 0);
    double error = sqrt(fmax(0.05, 1 - r * r) / n), bias = (1 + (3 + most_bias * up) * up) / n;
    double most = fmin(fmax(r + (most_errors + most_growth * up) * error + bias, 0), 0.99);
    double widening = fmax(block, sqrt((1 + most) / (1 - most)));
    return count < 8 ? fmin(widening, most_of_few) : widening;
}

/* What stopping at a lucky moment costs independent rounds. */
static const double running_reserve = 1.1;

double dependence_running(const double *values, size_t count)
{
    double *scratch CLEANUP(memory_freep) = memory_alloc((2 * count + 1) * sizeof(double));
    struct dependence d = estimate_of(values, count, scratch);
    return running_reserve * dependence_widening_most(d.lag1, d.block, count);
}

/* Nothing is given away below 8 values: there the interval is not called a 95 % interval. */
static double given_away(size_t count)
{
    return count < 8 ? 0 : small_sample_alpha / (double)count;
}

double dependence_alpha(double alpha, size_t count)
{
    return alpha * (1 + given_away(count)) / (1 + alpha * given_away(count));
}

double dependence_p(double p, size_t count)
{
    return p / (1 + (1 - p) * given_away(count));
}

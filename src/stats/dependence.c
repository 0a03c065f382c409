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
    double *sorted CLEANUP(memory_freep) = memory_alloc((2 * count + 1) * sizeof(double));
    double *ranks = sorted + count;
    struct dependence d;
    memcpy(sorted, values, count * sizeof(double));
    sort_doubles(sorted, count);
    rank_doubles(values, sorted, count, ranks);
    dependence_estimate(ranks, count, &d);
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

/* SPDX-License-Identifier: MIT */
/* See rivals.h. */
#include "rivals.h"
#include "numbers/distributions.h"
#include "numbers/sort.h"
#include "stats/summary.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static struct running describe(const double *values, size_t count)
{
    struct running running = {0};
    for (size_t i = 0; i < count; i++)
        running_add(&running, values[i]);
    return running;
}

struct interval rival_student(const double *logs, size_t count)
{
    struct running running = describe(logs, count);
    double n = (double)count;
    double half = dist_t_quantile(0.975, n - 1) * running_stddev(&running) / sqrt(n);
    return (struct interval){running.mean - half, running.mean + half};
}

/* The order statistics of the median, interpolated to 95 % (Hettmansperger & Sheather 1986). */
struct interval rival_sign(const double *logs, size_t count)
{
    double sorted[RIVAL_VALUES_MAX], n = (double)count;
    memcpy(sorted, logs, count * sizeof(double));
    sort_doubles(sorted, count);
    size_t k = 0; /* the largest with 2 P(X <= k) <= 0.05 */
    while (2 * dist_binomial_cdf(k + 1, count, 0.5) <= 0.05)
        k++;
    double outer = 1 - 2 * dist_binomial_cdf(k, count, 0.5);
    double inner = 1 - 2 * dist_binomial_cdf(k + 1, count, 0.5);
    double part = (outer - 0.95) / (outer - inner), d = (double)(k + 1);
    double lambda = (n - d) * part / (d + (n - 2 * d) * part);
    return (struct interval){
        (1 - lambda) * sorted[k] + lambda * sorted[k + 1],
        (1 - lambda) * sorted[count - 1 - k] + lambda * sorted[count - 2 - k],
    };
}

/* Wilcoxon's signed-rank test inverted, exact: the critical place is counted out from the product
 * of (1 + x^i), the ends are Walsh averages (means of all pairs). */
struct interval rival_signed_rank(const double *logs, size_t count)
{
    enum { EXACT_MAX = 100, SUMS_MAX = EXACT_MAX * (EXACT_MAX + 1) / 2 };
    double walsh[SUMS_MAX], ways[SUMS_MAX + 1] = {1}, sum = 0;
    size_t sums = 0, place = 0;
    assert(count <= EXACT_MAX);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j <= i; j++)
            walsh[sums++] = (logs[i] + logs[j]) / 2;
        for (size_t k = sums + 1; k-- > i + 1;)
            ways[k] += ways[k - i - 1];
    }
    sort_doubles(walsh, sums);
    while (sum + ways[place] <= 0.025 * pow(2, (double)count))
        sum += ways[place++];
    place = place > 0 ? place - 1 : 0;
    return (struct interval){walsh[place], walsh[sums - 1 - place]};
}

static double median(const double *values, size_t count)
{
    double scratch[RIVAL_VALUES_MAX];
    return stats_median(values, count, scratch);
}

struct interval rival_percentile(const double *logs, size_t count, struct rng *rng)
{
    double sample[RIVAL_VALUES_MAX], found[RIVAL_RESAMPLES];
    for (size_t b = 0; b < RIVAL_RESAMPLES; b++) {
        for (size_t i = 0; i < count; i++)
            sample[i] = logs[rng_below(rng, count)];
        found[b] = median(sample, count);
    }
    sort_doubles(found, RIVAL_RESAMPLES);
    return (struct interval){stats_quantile(found, RIVAL_RESAMPLES, 0.025),
                             stats_quantile(found, RIVAL_RESAMPLES, 0.975)};
}

/* Efron 1987: percentiles moved for bias and acceleration (from the jackknife). */
struct interval rival_bca(const double *logs, size_t count, struct rng *rng)
{
    double sample[RIVAL_VALUES_MAX], found[RIVAL_RESAMPLES], left[RIVAL_VALUES_MAX];
    double whole = median(logs, count), below = 0;
    for (size_t b = 0; b < RIVAL_RESAMPLES; b++) {
        for (size_t i = 0; i < count; i++)
            sample[i] = logs[rng_below(rng, count)];
        found[b] = median(sample, count);
        below += found[b] < whole ? 1 : found[b] == whole ? 0.5 : 0;
    }
    sort_doubles(found, RIVAL_RESAMPLES);
    double share = fmin(fmax(below, 0.5), RIVAL_RESAMPLES - 0.5) / RIVAL_RESAMPLES;
    double bias = dist_normal_quantile(share), mean = 0, squares = 0, cubes = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(sample, logs, i * sizeof(double));
        memcpy(sample + i, logs + i + 1, (count - i - 1) * sizeof(double));
        left[i] = median(sample, count - 1);
        mean += left[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        squares += pow(mean - left[i], 2);
        cubes += pow(mean - left[i], 3);
    }
    double acceleration = squares > 0 ? cubes / (6 * pow(squares, 1.5)) : 0, ends[2];
    for (int side = 0; side < 2; side++) {
        double z = bias + dist_normal_quantile(side ? 0.975 : 0.025);
        double p = dist_normal_cdf(bias + z / (1 - acceleration * z));
        ends[side] = stats_quantile(found, RIVAL_RESAMPLES, p);
    }
    return (struct interval){ends[0], ends[1]};
}

/* Moving blocks of n^(1/3) rounds, percentiles of the median. */
struct interval rival_block_bootstrap(const double *logs, size_t count, struct rng *rng)
{
    double sample[RIVAL_VALUES_MAX], found[RIVAL_RESAMPLES];
    size_t size = (size_t)ceil(cbrt((double)count));
    for (size_t b = 0; b < RIVAL_RESAMPLES; b++) {
        for (size_t i = 0, from = 0; i < count; i++) {
            if (i % size == 0)
                from = (size_t)rng_below(rng, count - size + 1);
            sample[i] = logs[from + i % size];
        }
        found[b] = median(sample, count);
    }
    sort_doubles(found, RIVAL_RESAMPLES);
    return (struct interval){stats_quantile(found, RIVAL_RESAMPLES, 0.025),
                             stats_quantile(found, RIVAL_RESAMPLES, 0.975)};
}

bool rival_hyperfine_differs(const double *base_values, const double *new_values, size_t count)
{
    struct running a = describe(base_values, count), b = describe(new_values, count);
    double ratio = b.mean / a.mean;
    double sigma = ratio * hypot(running_stddev(&a) / a.mean, running_stddev(&b) / b.mean);
    return fabs(ratio - 1) > sigma;
}

bool rival_robot_differs(const double *base_values, const double *new_values, size_t count)
{
    struct running a = describe(base_values, count), b = describe(new_values, count);
    double a_median = median(base_values, count), b_median = median(new_values, count);
    return (b.min > a_median && b_median > a.max) || (a.min > b_median && a_median > b.max);
}

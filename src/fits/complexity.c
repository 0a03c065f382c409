/* SPDX-License-Identifier: MIT */
/* See complexity.h. */
#include "fits/complexity.h"
#include "base/memory.h"
#include "numbers/distributions.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define TOLERANCE 0.1
#define WIDEST 1.0 /* of an interval that tells n from n^2 */

/* The logarithm of f(n). */
static double log_one(double n)
{
    (void)n;
    return 0;
}

static double log_log(double n)
{
    return log(log2(n));
}

static double log_n(double n)
{
    return log(n);
}

static double log_n_log(double n)
{
    return log(n) + log(log2(n));
}

static double log_square(double n)
{
    return 2 * log(n);
}

static double log_cube(double n)
{
    return 3 * log(n);
}

static const struct law {
    const char *name;
    double (*log_f)(double n);
} laws[] = {{"1", log_one},         {"log n", log_log},  {"n", log_n},
            {"n log n", log_n_log}, {"n^2", log_square}, {"n^3", log_cube}};

static const struct law *find_law(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(laws); i++)
        if (strcmp(laws[i].name, name) == 0)
            return &laws[i];
    return NULL;
}

/* What is left when the law holds exactly: the variance of log t - log f. */
static double unexplained(const struct law *law, const double *n, const double *time, size_t count)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        double rest = log(time[i]) - law->log_f(n[i]), delta = rest - mean;
        mean += delta / (double)(i + 1);
        squares += delta * (rest - mean);
    }
    return squares;
}

static const char *best_law(const double *n, const double *time, size_t count)
{
    const struct law *best = &laws[0];
    for (size_t i = 1; i < ARRAY_COUNT(laws); i++)
        if (unexplained(&laws[i], n, time, count) < unexplained(best, n, time, count))
            best = &laws[i];
    return best->name;
}

static size_t count_different(const double *n, size_t count)
{
    size_t different = 0;
    for (size_t i = 0; i < count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = n[k] == n[i];
        different += !seen;
    }
    return different;
}

int complexity_fit(const double *n, const double *time, size_t count, const char *name,
                   struct complexity *ret, struct error *err)
{
    const struct law *law = find_law(name);
    double mean_x = 0, mean_y = 0, sxx = 0, sxy = 0, left = 0;
    if (!law)
        return error_set(err, -EINVAL,
                         "'%.40s' is not a law: \"1\", \"log n\", \"n\", \"n log n\", \"n^2\" or "
                         "\"n^3\"",
                         name);
    bool constant = law->log_f == log_one;
    double (*log_f)(double) = constant ? log_n : law->log_f;
    for (size_t i = 0; i < count; i++) {
        if (!(n[i] > 1) || !(time[i] > 0) || !isfinite(n[i]) || !isfinite(time[i]))
            return error_set(err, -EINVAL, "n must be above 1 and times above 0");
        mean_x += log_f(n[i]) / (double)count;
        mean_y += log(time[i]) / (double)count;
    }
    if (count_different(n, count) < COMPLEXITY_POINTS_MIN)
        return error_set(err, -ENODATA, "a law needs %d different n", COMPLEXITY_POINTS_MIN);
    for (size_t i = 0; i < count; i++) {
        double x = log_f(n[i]) - mean_x;
        sxx += x * x;
        sxy += x * (log(time[i]) - mean_y);
    }
    double slope = sxy / sxx, freedom = (double)count - 2;
    for (size_t i = 0; i < count; i++) {
        double rest = log(time[i]) - mean_y - slope * (log_f(n[i]) - mean_x);
        left += rest * rest;
    }
    double half = dist_t_quantile(0.975, freedom) * sqrt(left / freedom / sxx);
    double expected = constant ? 0 : 1;
    *ret = (struct complexity){.exponent = slope,
                               .low = slope - half,
                               .high = slope + half,
                               .best = best_law(n, time, count),
                               .count = count};
    ret->holds = ret->low <= expected + TOLERANCE && ret->high >= expected - TOLERANCE;
    ret->is_certain = !ret->holds || ret->high - ret->low <= WIDEST;
    return 0;
}

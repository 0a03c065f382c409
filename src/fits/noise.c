/* SPDX-License-Identifier: MIT */
/* See noise.h; docs/METHOD.md has the reasons. */
#include "fits/noise.h"
#include "base/memory.h"
#include "numbers/distributions.h"
#include "numbers/sort.h"
#include "stats/comparison.h"
#include "stats/summary.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SITTING_ROUNDS = 10, WINDOWS_MIN = 8, WINDOW_ROUNDS_MIN = 20 };

static const double power = 0.9, level = 0.95;

static bool usable(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]) || values[i] <= 0)
            return false;
    return true;
}

static void judge_sittings(const double *first, const double *second, struct noise *noise)
{
    noise->sitting_rounds = SITTING_ROUNDS;
    noise->sitting_count = noise->round_count / SITTING_ROUNDS;
    for (size_t i = 0; i < noise->sitting_count; i++) {
        struct comparison c;
        size_t start = i * SITTING_ROUNDS;
        if (stats_compare_paired(first + start, second + start, SITTING_ROUNDS, level, &c, NULL) <
            0)
            continue;
        noise->false_alarm_count += comparison_differs(&c);
    }
    noise->false_alarm_rate = noise->false_alarm_low = noise->false_alarm_high = NAN;
    if (noise->sitting_count == 0)
        return;
    noise->false_alarm_rate = (double)noise->false_alarm_count / (double)noise->sitting_count;
    dist_binomial_interval(noise->false_alarm_count, noise->sitting_count, level,
                           &noise->false_alarm_low, &noise->false_alarm_high);
}

/*
 * A change by the factor exp(d) moves the interval of the logs by d and leaves its width, because
 * the comparison looks at order and ranks only.  So a window of rounds with the interval [l, h]
 * would find a slow-down d > -l and a speed-up d > h, and the change that is found in nine windows
 * of ten is the quantile of these.
 */
static double window_change(const double *first, const double *second, size_t count, size_t window)
{
    size_t step = window / 4 > 0 ? window / 4 : 1, found = 0;
    size_t windows = (count - window) / step + 1;
    double *needed CLEANUP(memory_freep) = memory_alloc(2 * windows * sizeof(double));
    for (size_t start = 0; start + window <= count; start += step) {
        struct comparison c;
        if (stats_compare_paired(first + start, second + start, window, level, &c, NULL) < 0)
            continue;
        needed[found++] = fmax(0, -log(c.low));
        needed[found++] = fmax(0, log(c.high));
    }
    sort_doubles(needed, found);
    return stats_quantile(needed, found, power);
}

/* The same from all rounds at once, of which there is only one window: the half-width of the
 * interval is 1.96 standard errors, and 1.28 more make the power 90 %. */
static double whole_change(const double *first, const double *second, size_t count)
{
    struct comparison c;
    if (stats_compare_paired(first, second, count, level, &c, NULL) < 0)
        return NAN;
    double half = (log(c.high) - log(c.low)) / 2;
    double limit = dist_normal_quantile(1 - (1 - level) / 2);
    return half * (1 + dist_normal_quantile(power) / limit);
}

/* Windows of the budget's length, where there are enough of them; else shorter ones, and all that
 * there is, scaled with the root of the length, the worse of the two. */
static double smallest_change(const double *first, const double *second, size_t count,
                              double budget_rounds)
{
    double longest = fmax((double)count / WINDOWS_MIN, fmin((double)count, WINDOW_ROUNDS_MIN));
    double window = floor(fmin(fmax(budget_rounds, COMPARISON_ROUNDS_MIN), longest));
    double change = window_change(first, second, count, (size_t)window);
    if (window < budget_rounds) {
        double whole = whole_change(first, second, count) * sqrt((double)count / budget_rounds);
        change = fmax(change * sqrt(window / budget_rounds), whole);
    }
    return expm1(change);
}

void stats_noise(const double *first, const double *second, size_t round_count,
                 double round_seconds, double budget_seconds, struct noise *ret_noise)
{
    memset(ret_noise, 0, sizeof(*ret_noise));
    ret_noise->round_count = round_count;
    ret_noise->smallest_change = NAN;
    judge_sittings(first, second, ret_noise);
    if (round_count < COMPARISON_ROUNDS_MIN || !usable(first, round_count) ||
        !usable(second, round_count))
        return;
    double budget_rounds = floor(budget_seconds / round_seconds);
    ret_noise->smallest_change = smallest_change(first, second, round_count, budget_rounds);
}

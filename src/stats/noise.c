/* SPDX-License-Identifier: MIT */
/* See noise.h; docs/METHOD.md has the reasons. */
#include "stats/noise.h"
#include "base/memory.h"
#include "stats/comparison.h"
#include "stats/distributions.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SITTING_ROUNDS = 10, BATCHES_MIN = 8 };

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
        noise->false_alarm_count += c.low > 1 || c.high < 1;
    }
    noise->false_alarm_rate = noise->false_alarm_low = noise->false_alarm_high = NAN;
    if (noise->sitting_count == 0)
        return;
    noise->false_alarm_rate = (double)noise->false_alarm_count / (double)noise->sitting_count;
    dist_binomial_interval(noise->false_alarm_count, noise->sitting_count, level,
                           &noise->false_alarm_low, &noise->false_alarm_high);
}

/* The standard error of the estimate from one round, seen through batches of `size` rounds: the
 * spread of their estimates times the root of size.  Also gives the number of batches. */
static double error_of_batches(const double *first, const double *second, size_t count, size_t size,
                               size_t *ret_batches)
{
    double mean = 0, squares = 0;
    size_t batches = 0;
    for (size_t start = 0; start + size <= count; start += size) {
        struct comparison c;
        if (stats_compare_paired(first + start, second + start, size, level, &c, NULL) < 0)
            continue;
        double value = log(c.estimate), before = value - mean;
        batches++;
        mean += before / (double)batches;
        squares += before * (value - mean);
    }
    *ret_batches = batches;
    return batches < 2 ? NAN : sqrt(squares / (double)(batches - 1) * (double)size);
}

static double smallest_change(const double *first, const double *second, size_t count,
                              double budget_rounds)
{
    double error = 0;
    for (size_t size = 1; count / size >= BATCHES_MIN; size *= 2) {
        size_t batches;
        double seen = error_of_batches(first, second, count, size, &batches);
        /* Larger batches replace smaller ones where they show more than chance allows. */
        if (size == 1 || seen > error)
            error = seen;
    }
    double rounds_freedom = fmax(budget_rounds - 1, 2);
    double needed = dist_t_quantile(1 - (1 - level) / 2, rounds_freedom) +
                    dist_t_quantile(power, rounds_freedom);
    return expm1(needed * error / sqrt(fmax(budget_rounds, 1)));
}

void stats_noise(const double *first, const double *second, size_t round_count,
                 double round_seconds, double budget_seconds, struct noise *ret_noise)
{
    memset(ret_noise, 0, sizeof(*ret_noise));
    ret_noise->round_count = round_count;
    ret_noise->smallest_change = NAN;
    judge_sittings(first, second, ret_noise);
    if (round_count < BATCHES_MIN || !usable(first, round_count) || !usable(second, round_count))
        return;
    double budget_rounds = floor(budget_seconds / round_seconds);
    ret_noise->smallest_change = smallest_change(first, second, round_count, budget_rounds);
}

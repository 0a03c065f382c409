/* SPDX-License-Identifier: MIT */
/* See figures.h. */
#include "bench/figures.h"
#include "base/memory.h"
#include "numbers/distributions.h"
#include "numbers/sort.h"
#include "stats/summary.h"

#include <math.h>

#define EMPTY_FACTOR 1.5 /* of an empty loop */

/* The ends are order statistics, so that any shape of noise will do. */
static struct bench_interval quantile(const double *sorted, size_t count, double q)
{
    struct bench_interval i = {stats_quantile(sorted, count, q), NAN, NAN};
    double centre = (double)count * q, half = 1.96 * sqrt((double)count * q * (1 - q));
    double low = floor(centre - half) - 1, high = ceil(centre + half) - 1;
    if (low >= 0 && high < (double)count) {
        i.low = sorted[(size_t)low];
        i.high = sorted[(size_t)high];
    }
    return i;
}

/* The mean of the rounds' means. */
static struct bench_interval mean_of_rounds(const struct bench_result *r, size_t side)
{
    struct running rounds = {0};
    for (size_t k = 0; k < r->sample_count;) {
        struct running samples = {0};
        uint32_t round = r->samples[k].round;
        for (; k < r->sample_count && r->samples[k].round == round; k++)
            if (r->samples[k].side == side)
                running_add(&samples, r->samples[k].ns);
        if (samples.count)
            running_add(&rounds, samples.mean);
    }
    struct bench_interval i = {rounds.mean, NAN, NAN};
    if (rounds.count > 1) {
        double n = (double)rounds.count;
        double half = dist_t_quantile(0.975, n - 1) * running_stddev(&rounds) / sqrt(n);
        i.low = fmax(i.value - half, 0); /* few rounds, one of them far off */
        i.high = i.value + half;
    }
    return i;
}

bool bench_figures(const struct bench_result *r, size_t side, struct bench_figures *ret)
{
    CLEANUP(memory_freep) double *values = memory_zalloc(r->sample_count + 1, sizeof(*values));
    struct bench_figures f = {0};
    for (size_t k = 0; k < r->sample_count; k++) {
        const struct bench_kept *s = &r->samples[k];
        if (s->side != side)
            continue;
        values[f.count++] = s->ns;
        f.disturbed += s->disturbed;
        f.migrated += s->migrated;
        f.minor_faults += s->minor_faults;
        f.major_faults += s->major_faults;
        f.involuntary += s->involuntary;
        f.voluntary += s->voluntary;
    }
    if (!f.count)
        return false;
    sort_doubles(values, f.count);
    f.least = values[0];
    f.most = values[f.count - 1];
    f.p99 = quantile(values, f.count, 0.99);
    f.mean = mean_of_rounds(r, side);
    *ret = f;
    return true;
}

bool bench_is_empty(const struct bench_result *r, size_t side)
{
    const struct bench_side *s = &r->sides[side];
    return s->empty_ns > 0 && s->least_ns < EMPTY_FACTOR * s->empty_ns;
}

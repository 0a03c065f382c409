/* SPDX-License-Identifier: MIT */
/*
 * The value of a round: see measure.h.
 *
 * A virtual machine's CPU changes its speed every few milliseconds, and its host takes it away for
 * some microseconds a thousand times a second.  The samples of two versions that follow each other
 * see the same speed; the medians of all samples of a round may lie in different ones.  So the
 * ratio of the versions is the median of the ratios of neighbours, and the level they share is that
 * of the two medians.
 */
#include "base/memory.h"
#include "bench/measure.h"
#include "stats/summary.h"

#include <math.h>

/* The first sample of the round, and the one behind its last. */
static size_t round_start(const struct bench_result *r, uint32_t round, size_t *ret_end)
{
    size_t first = 0, last = r->sample_count;
    while (first < last) {
        size_t middle = first + (last - first) / 2;
        if (r->samples[middle].round < round)
            first = middle + 1;
        else
            last = middle;
    }
    for (*ret_end = first; *ret_end < r->sample_count && r->samples[*ret_end].round == round;)
        ++*ret_end;
    return first;
}

double bench_round_value(const struct bench_result *r, size_t side, uint32_t round,
                         double (*of)(const struct bench_kept *sample, size_t index), size_t index)
{
    size_t end, first = round_start(r, round, &end), count = 0, calm = 0;
    CLEANUP(memory_freep) double *values = memory_zalloc(2 * (end - first) + 1, sizeof(*values));
    for (size_t i = first; i < end; i++)
        calm += r->samples[i].side == side && !r->samples[i].disturbed;
    for (size_t i = first; i < end; i++)
        if (r->samples[i].side == side && (!calm || !r->samples[i].disturbed))
            values[count++] = of(&r->samples[i], index);
    return stats_median(values, count, values + (end - first));
}

double bench_round_mean(const struct bench_result *r, size_t side, uint32_t round)
{
    size_t end, first = round_start(r, round, &end), count = 0, calm = 0;
    double sum = 0;
    for (size_t i = first; i < end; i++)
        calm += r->samples[i].side == side && !r->samples[i].disturbed;
    for (size_t i = first; i < end; i++)
        if (r->samples[i].side == side && (!calm || !r->samples[i].disturbed)) {
            sum += r->samples[i].ns;
            count++;
        }
    return count ? sum / (double)count : NAN;
}

/* Whether the two are neighbours of the half that is asked for. */
static bool is_pair(const struct bench_kept *a, const struct bench_kept *b, int half)
{
    unsigned pair = a->position / BENCH_SIDES_MAX;
    return pair == b->position / BENCH_SIDES_MAX && a->side != b->side && a->ns > 0 && b->ns > 0 &&
           (half < 0 || pair % 2 == (unsigned)half);
}

double bench_round_ratio(const struct bench_result *r, uint32_t round, int half)
{
    size_t end, first = round_start(r, round, &end), count = 0, calm = 0;
    CLEANUP(memory_freep) double *ratios = memory_zalloc(2 * (end - first) + 1, sizeof(*ratios));
    for (size_t i = first; i + 1 < end; i++)
        calm += is_pair(&r->samples[i], &r->samples[i + 1], half) && !r->samples[i].disturbed &&
                !r->samples[i + 1].disturbed;
    for (size_t i = first; i + 1 < end; i++) {
        const struct bench_kept *a = &r->samples[i], *b = a + 1;
        if (is_pair(a, b, half) && (!calm || (!a->disturbed && !b->disturbed)))
            ratios[count++] = a->side ? log(a->ns / b->ns) : log(b->ns / a->ns);
    }
    return stats_median(ratios, count, ratios + (end - first));
}

static double time_of(const struct bench_kept *s, size_t index)
{
    (void)index;
    return s->ns;
}

double bench_round_time(const struct bench_result *r, size_t side, size_t side_count,
                        uint32_t round)
{
    double own = bench_round_value(r, side, round, time_of, 0);
    double ratio = side_count == 2 ? bench_round_ratio(r, round, -1) : NAN;
    if (!isfinite(ratio))
        return own;
    double other = bench_round_value(r, !side, round, time_of, 0);
    return sqrt(own * other) * exp(side ? ratio / 2 : -ratio / 2);
}

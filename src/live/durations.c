/* SPDX-License-Identifier: MIT */
/* Durations by their size: see durations.h.  A bin is a power of two cut into equal steps. */
#include "live/durations.h"
#include "base/memory.h"

static unsigned bin_of(uint64_t ns)
{
    if (ns < DURATIONS_STEPS)
        return (unsigned)ns;
    unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - 7;
    return (shift + 1) * DURATIONS_STEPS + (unsigned)((ns >> shift) - DURATIONS_STEPS);
}

/* The middle of what falls into the bin. */
static uint64_t value_of(unsigned bin)
{
    if (bin < DURATIONS_STEPS)
        return bin;
    unsigned shift = bin / DURATIONS_STEPS - 1;
    uint64_t low = (uint64_t)(bin % DURATIONS_STEPS + DURATIONS_STEPS) << shift;
    return low + (((uint64_t)1 << shift) >> 1);
}

void durations_add(struct durations *d, uint64_t ns)
{
    if (!d->bins)
        d->bins = memory_zalloc(DURATIONS_BINS, sizeof(*d->bins));
    d->bins[bin_of(ns)]++;
    d->count++;
    d->total_ns += ns;
    if (ns > d->max_ns)
        d->max_ns = ns;
}

void durations_done(struct durations *d)
{
    free(d->bins);
    *d = (struct durations){0};
}

uint64_t durations_quantile(const struct durations *d, double p)
{
    if (!d->count)
        return 0;
    double place = p * (double)d->count;
    uint64_t rank = (uint64_t)place, seen = 0;
    rank += (double)rank < place || rank == 0;
    for (unsigned i = 0; i < DURATIONS_BINS; i++) {
        seen += d->bins[i];
        if (seen >= rank) {
            uint64_t value = value_of(i);
            return value < d->max_ns ? value : d->max_ns;
        }
    }
    return d->max_ns;
}

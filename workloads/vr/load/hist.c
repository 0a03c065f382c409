/* SPDX-License-Identifier: MIT */
#include "vr/load/hist.h"

#include <string.h>

static uint32_t bucket_of(uint64_t value)
{
    if (value < VR_HIST_SUB)
        return (uint32_t)value;
    unsigned top = 63u - (unsigned)__builtin_clzll(value), shift = top - 7;
    uint64_t bucket = (uint64_t)(shift + 1) * VR_HIST_SUB + ((value >> shift) - VR_HIST_SUB);
    return bucket < VR_HIST_BUCKETS ? (uint32_t)bucket : VR_HIST_BUCKETS - 1;
}

/* The greatest value of a bucket. */
static uint64_t value_of(uint32_t bucket)
{
    if (bucket < VR_HIST_SUB)
        return bucket;
    unsigned shift = bucket / VR_HIST_SUB - 1;
    return ((uint64_t)(bucket % VR_HIST_SUB + VR_HIST_SUB + 1) << shift) - 1;
}

void vr_hist_add(struct vr_hist *h, uint64_t value, uint64_t count)
{
    h->counts[bucket_of(value)] += count;
    h->total += count;
    h->sum += (double)value * (double)count;
    if (value > h->max)
        h->max = value;
}

uint64_t vr_hist_at(const struct vr_hist *h, double share)
{
    double wanted = share * (double)h->total;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < VR_HIST_BUCKETS; i++) {
        seen += h->counts[i];
        if (h->counts[i] && (double)seen >= wanted)
            return value_of(i) < h->max ? value_of(i) : h->max;
    }
    return h->max;
}

double vr_hist_mean(const struct vr_hist *h)
{
    return h->total ? h->sum / (double)h->total : 0;
}

void vr_hist_correct(const struct vr_hist *from, uint64_t interval, struct vr_hist *to)
{
    memset(to, 0, sizeof(*to));
    for (uint32_t i = 0; i < VR_HIST_BUCKETS; i++) {
        if (!from->counts[i])
            continue;
        uint64_t value = value_of(i) < from->max ? value_of(i) : from->max;
        vr_hist_add(to, value, from->counts[i]);
        /* No more than a million records for one: an interval of nothing corrects nothing. */
        if (interval == 0 || value / interval > 1000000)
            continue;
        for (uint64_t missed = value; missed >= 2 * interval; missed -= interval)
            vr_hist_add(to, missed - interval, from->counts[i]);
    }
}

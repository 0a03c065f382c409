/* SPDX-License-Identifier: MIT */
/* Durations by their size, for quantiles without keeping each: within 1 % of the true ones. */
#ifndef ASSAY_LIVE_DURATIONS_H
#define ASSAY_LIVE_DURATIONS_H

#include <stdint.h>

enum { DURATIONS_STEPS = 128, DURATIONS_BINS = 58 * DURATIONS_STEPS };

struct durations {
    uint64_t count, total_ns, max_ns;
    uint32_t *bins; /* made with the first */
};

void durations_add(struct durations *d, uint64_t ns);
void durations_done(struct durations *d);
/* 0 when there are none; p from 0 to 1. */
uint64_t durations_quantile(const struct durations *d, double p);

#endif

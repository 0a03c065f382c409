/* SPDX-License-Identifier: MIT */
/* What the samples of one case and version show by themselves. */
#ifndef ASSAY_BENCH_FIGURES_H
#define ASSAY_BENCH_FIGURES_H

#include "bench/measure.h"

/* A figure with its 95 % interval; the ends are NAN where there are too few samples for one. */
struct bench_interval {
    double value, low, high;
};

struct bench_figures {
    size_t count, disturbed, migrated;
    uint64_t minor_faults, major_faults, involuntary, voluntary;
    struct bench_interval mean; /* of rounds, which are independent of each other */
    struct bench_interval p99;  /* of samples: each is the mean of its iterations */
    double least, most;
};

/* False when there are no samples. */
bool bench_figures(const struct bench_result *r, size_t side, struct bench_figures *ret);

/* A loop that takes no longer than an empty one: its work was optimised away, or is too small to be
 * seen. */
bool bench_is_empty(const struct bench_result *r, size_t side);

#endif

/* SPDX-License-Identifier: MIT */
/* How the time of a benchmark grows with the n that it names (ASSAY_COMPLEXITY). */
#ifndef ASSAY_BENCH_GROWTH_H
#define ASSAY_BENCH_GROWTH_H

#include "bench/table.h"
#include "fits/complexity.h"

/* One benchmark of one version, over all n. */
struct bench_fit {
    size_t first; /* of its cases */
    char *label, *law;
    size_t side;
    struct complexity complexity;
    char *trouble; /* why there is no fit; NULL for none */
};

struct bench_fits {
    struct bench_fit *items;
    size_t count, capacity;
};

void bench_fits_make(struct bench_fits *f, const struct bench_cases *cases,
                     const struct bench_results *results, const struct outcome *outcome);
void bench_fits_done(struct bench_fits *f);

#endif

/* SPDX-License-Identifier: MIT */
/* Passes beside the measurement, in processes of their own: what is counted there would disturb the
 * times. */
#ifndef ASSAY_BENCH_PASSES_H
#define ASSAY_BENCH_PASSES_H

#include "bench/measure.h"

/* Exact instructions of one iteration, by Valgrind: the difference between two runs that differ in
 * the number of iterations only. */
int bench_count_instructions(const struct bench_plan *plan, struct bench_results *results,
                             struct error *err);
/* Allocations and their bytes of one iteration, with malloc and its like interposed. */
int bench_count_allocations(const struct bench_plan *plan, struct bench_results *results,
                            struct error *err);

/* The library that interposes (allocations/interpose.c); without a loader it has no bytes. */
extern const unsigned char bench_interposer[];
extern const size_t bench_interposer_size;

/* The text of bench_start.once that runs a benchmark so often; the caller frees it. */
char *bench_once_text(const struct bench_call *call, uint64_t iterations);

#endif

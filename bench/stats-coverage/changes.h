/* SPDX-License-Identifier: MIT */
/* Histories with and without a change, searched for changes. */
#ifndef ASSAY_BENCH_STATS_COVERAGE_CHANGES_H
#define ASSAY_BENCH_STATS_COVERAGE_CHANGES_H

#include <stddef.h>

/* Normal noise, by autocorrelation: no change, spikes, steps anywhere and close to the end. */
void changes_print(size_t experiments);
/* The same with other noise. */
void changes_print_odd(size_t experiments);
void changes_print_short(size_t experiments);

#endif

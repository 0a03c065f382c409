/* SPDX-License-Identifier: MIT */
/* What else stats/ promises: unpaired comparisons, measuring until the interval is narrow, the
 * smallest change that doctor's noise test names, crossovers. */
#ifndef ASSAY_BENCH_STATS_COVERAGE_OTHERS_H
#define ASSAY_BENCH_STATS_COVERAGE_OTHERS_H

#include <stddef.h>

void others_print(size_t experiments);

#endif

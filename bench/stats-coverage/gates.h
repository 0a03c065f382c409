/* SPDX-License-Identifier: MIT */
/* What a gate decides when it stops by itself, and verdicts of few rounds beside other work. */
#ifndef ASSAY_BENCH_STATS_COVERAGE_GATES_H
#define ASSAY_BENCH_STATS_COVERAGE_GATES_H

#include <stddef.h>

void gates_print(size_t experiments);
void busy_print(size_t experiments);

#endif

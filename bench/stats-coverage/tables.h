/* SPDX-License-Identifier: MIT */
/* False alarms in whole tables, as they are shown: commands beside one reference with their
 * ranking, and two experiments that were not run together. */
#ifndef ASSAY_BENCH_STATS_COVERAGE_TABLES_H
#define ASSAY_BENCH_STATS_COVERAGE_TABLES_H

#include <stddef.h>

void tables_print(size_t experiments);
/* The commands alone, with noise that lasts, ticks or depends on the order. */
void lasting_print(size_t experiments);

#endif

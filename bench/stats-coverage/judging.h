/* SPDX-License-Identifier: MIT */
/* How the parts of a verdict hold: each prints one table. */
#ifndef ASSAY_BENCH_STATS_COVERAGE_JUDGING_H
#define ASSAY_BENCH_STATS_COVERAGE_JUDGING_H

#include <stdbool.h>
#include <stddef.h>

/* Runs the part of that name (power, few, families, tails, means, stopping, trends, changes,
 * gates, busy, tables), all of them for "judging"; false for any other name.  0 experiments: as
 * many as docs/METHOD.md has.
 */
bool judging_print(const char *name, size_t experiments);

#endif

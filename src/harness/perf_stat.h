/* SPDX-License-Identifier: MIT */
/* What the two forms of perf stat's results share. */
#ifndef ASSAY_HARNESS_PERF_STAT_H
#define ASSAY_HARNESS_PERF_STAT_H

#include "harness/harness.h"

/* Takes the time from a line "# started on Tue Nov 17 19:51:41 2026". */
void perf_stat_started(struct harness_results *r, const char *line);
/* A count; one that is not a number ("<not supported>") gives an empty metric.  `where` is "perf
 * stat" or the processor, core … that it belongs to. */
void perf_stat_put(struct harness_results *r, const char *where, const char *event,
                   const char *unit, const char *value);

#endif

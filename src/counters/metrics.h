/* SPDX-License-Identifier: MIT */
/* Metrics by name: which events they are made of.  The figure itself stands beside the counts, as
 * derived.h has it. */
#ifndef ASSAY_COUNTERS_METRICS_H
#define ASSAY_COUNTERS_METRICS_H

#include "base/strings.h"

/* "ipc,branch-misses" -> "{instructions,cycles},{branch-misses,branches}". */
int metrics_events(const char *names, struct strbuf *out, struct error *err);
/* The events of the top-down method that this CPU's PMU lists in sysfs: -ENOTSUP when there is no
 * such PMU, with what was looked for. */
int metrics_topdown(struct strbuf *out, struct error *err);

#endif

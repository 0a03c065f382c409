/* SPDX-License-Identifier: MIT */
/* Why perf_event_open refused, and what to change: the one place that turns its errno into words.
 */
#ifndef ASSAY_COUNTERS_EXPLAIN_H
#define ASSAY_COUNTERS_EXPLAIN_H

#include "base/error.h"
#include "base/strings.h"
#include "counters/event.h"

#include <stdbool.h>

enum refusal {
    REFUSAL_NOT_SUPPORTED, /* this machine does not have the event: print so and go on */
    REFUSAL_PERMISSION,    /* counting less (user mode only) may be allowed */
    REFUSAL_GONE,          /* the task or CPU is not there any more */
    REFUSAL_FATAL,         /* nothing can be counted this way */
};

/* What was asked of the kernel besides the event itself. */
struct explain_context {
    bool systemwide; /* whole CPUs, or a cgroup on them */
    bool grouped;
};

enum refusal explain_refusal(int code);

/* Appends one or two sentences without a full stop at the end. */
void explain_perf_open(struct strbuf *out, const struct event *e,
                       const struct explain_context *context, int code);

/* Whether perf_event_open is closed to this process altogether: by kernel.perf_event_paranoid 3, by
 * a container's seccomp, or because the kernel does not have it. */
bool explain_is_closed(void);
/* Fails with the reason where it is; `needed` is what cannot be done without it. */
int explain_need_events(const char *needed, struct error *err);

/* The sysctl kernel.perf_event_paranoid, 2 where it cannot be read. */
int explain_paranoid(void);

#endif

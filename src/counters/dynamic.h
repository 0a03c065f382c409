/* SPDX-License-Identifier: MIT */
/*
 * Probes as tracepoints of our own.
 *
 * The kernel's uprobe and kprobe PMUs read the probe's file or function name from the memory of the
 * process that opens the event, and again, at each fork, from the memory of the process that forks:
 * there the pointer leads nowhere, and the fork fails with EFAULT.  So an event that children
 * inherit is defined in tracefs (uprobe_events, kprobe_events) and opened by its number, as perf
 * probe does; only events that nobody inherits may use the PMUs.
 */
#ifndef ASSAY_COUNTERS_DYNAMIC_H
#define ASSAY_COUNTERS_DYNAMIC_H

#include "base/error.h"
#include "counters/event.h"

#include <stdbool.h>

#define DYNAMIC_SYSTEM "assay"

struct dynamic_event {
    char *name;     /* below the system; NULL for none */
    bool in_kernel; /* a kprobe */
};

/* Defines the probe that e describes and changes attr to count it.  Needs root. */
int dynamic_define(struct dynamic_event *d, const struct event *e, struct perf_event_attr *attr,
                   struct error *err);
/* Removes the definition; the events that use it must be closed.  Safe on {0}. */
void dynamic_done(struct dynamic_event *d);

#endif

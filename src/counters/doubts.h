/* SPDX-License-Identifier: MIT */
/* What a person must know before believing a measurement: what was not counted and why, what was
 * left out or lost, and results that cannot mean what they seem to say. */
#ifndef ASSAY_COUNTERS_DOUBTS_H
#define ASSAY_COUNTERS_DOUBTS_H

#include "counters/measure.h"

struct doubt {
    const char *id; /* stable, for programs */
    char *text;     /* whole sentences */
};

struct doubt_list {
    struct doubt *items;
    size_t count, capacity;
};

struct doubt_context {
    const struct event_list *events;
    const struct measurement *m;
    size_t cpu_count;        /* online */
    uint64_t startup_cpu_ns; /* of the command, 0 when not known */
    bool can_simulate;       /* a command alone was counted, so --sim would work */
    bool systemwide;         /* whole CPUs were counted */
    bool drops_counters;     /* the command is set-uid, and its counters end at its exec */
};

void doubts_find(struct doubt_list *list, const struct doubt_context *context);
void doubt_list_done(struct doubt_list *list);

#endif

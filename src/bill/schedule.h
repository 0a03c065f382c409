/* SPDX-License-Identifier: MIT */
/*
 * How long the threads of a command ran, waited, and could have run but did not, and who had the
 * CPU then.
 */
#ifndef ASSAY_BILL_SCHEDULE_H
#define ASSAY_BILL_SCHEDULE_H

#include "timeline/timeline.h"

/* Who kept a thread from running. */
struct schedule_delayer {
    uint32_t name; /* in the timeline's names */
    bool is_own;   /* a thread of the command */
    uint64_t ns;
};

struct schedule_thread {
    uint32_t thread; /* of the timeline */
    uint64_t runs_ns, waits_ns, ready_ns, ready_max_ns;
    uint64_t turns;  /* on a CPU */
    uint64_t delays; /* times that it was ready and not running */
    uint64_t preempted, migrations;
    struct schedule_delayer *delayers; /* the worst first */
    size_t delayer_count, delayer_capacity;
};

struct schedule {
    struct schedule_thread *threads; /* the longest delayed first */
    size_t count;
};

void schedule_make(struct schedule *s, const struct timeline *t);
void schedule_done(struct schedule *s);

#endif

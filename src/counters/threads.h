/* SPDX-License-Identifier: MIT */
/*
 * Counts of every thread that a command starts.
 *
 * Inherited events add up in their parent, so a plain read cannot tell threads apart.  With
 * attr.inherit_stat the kernel writes a PERF_RECORD_READ with a thread's own counts into the ring
 * when it ends; a ring of an inherited event must be bound to a CPU, so each event is opened once
 * per CPU and a thread's counts are summed over them.
 *
 * An event that is bound to a CPU counts as enabled while its thread runs elsewhere, too, so its
 * enabled time says nothing.  Beside the events a dummy is opened on each CPU: it takes no counter
 * and so runs whenever the thread does; its running time is what the others could have had.
 */
#ifndef ASSAY_COUNTERS_THREADS_H
#define ASSAY_COUNTERS_THREADS_H

#include "counters/measure.h"

struct thread_counters {
    const struct counters *counters; /* whose events are opened once more */
    size_t cpu_count, ring_bytes;
    size_t column_count; /* the dummy first, then the events */
    int *fds;            /* [cpu × column count + column], -1 for none */
    uint64_t *ids;       /* the kernel's number of each */
    void **rings;        /* one per CPU, on the CPU's dummy */
    struct measurement *into;
};

/* Opens the events of c, which must outlive t, on the children of the calling thread.
 * -EOPNOTSUPP where the kernel does not write the record (seen: 6.1 does not, 6.18 does). */
int thread_counters_open(struct thread_counters *t, const struct counters *c, struct measurement *m,
                         struct error *err);
/* Moves what the rings hold into m->threads and m->lost_records. */
void thread_counters_drain(struct thread_counters *t);
void thread_counters_done(struct thread_counters *t);

/* The thread's entry in m, made when it is new. */
struct measured_thread *measurement_thread(struct measurement *m, pid_t pid, pid_t tid);

#endif

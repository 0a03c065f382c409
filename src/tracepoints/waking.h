/* SPDX-License-Identifier: MIT */
/*
 * Who ends a wait?  sched:sched_waking is written by the thread that the CPU was at.  Often that
 * thread did it.  But a timer, a disk or a network card ends waits too, in an interrupt, and then
 * the thread that the CPU was at has nothing to do with it.  This is the one place that decides
 * which it was: for the critical path, for locks, for `assay explain`, `record --wakers` and
 * `trace --wakeups`.
 */
#ifndef ASSAY_TRACEPOINTS_WAKING_H
#define ASSAY_TRACEPOINTS_WAKING_H

#include <stdbool.h>
#include <stdint.h>

#define WAKING_NO_CALL INT64_C(-1)

/* tid: the thread that the CPU was at, 0 for the idle task.  flags: common_flags of the record.
 * call: the number of the system call that the thread was in, or WAKING_NO_CALL where it was in
 * none or that is not known. */
bool waking_is_by_thread(uint32_t tid, uint64_t flags, int64_t call);

#endif

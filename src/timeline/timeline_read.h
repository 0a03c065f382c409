/* SPDX-License-Identifier: MIT */
/*
 * A recording of tracepoints and samples as a timeline.
 *
 * The recording has, beside samples of the command (cpu-clock, perhaps off-cpu), the tracepoints
 * that timeline_events lists.  Stacks are numbers in profile->calls: the profile is read from the
 * same file, with every sample kept.
 */
#ifndef ASSAY_TIMELINE_TIMELINE_READ_H
#define ASSAY_TIMELINE_TIMELINE_READ_H

#include "base/error.h"
#include "profile/profile.h"
#include "timeline/timeline.h"

/* For -e: of the command's own threads, and of all CPUs (with the kernel's call chains). */
#define TIMELINE_OWN_EVENTS "raw_syscalls:sys_enter,raw_syscalls:sys_exit"
#define TIMELINE_CPU_EVENTS "sched:sched_switch,sched:sched_waking"

struct timeline_recording {
    const char *path;
    uint32_t pid;       /* of the command */
    const char *name;   /* how it is called before its exec */
    uint64_t start_ns;  /* when it was let go */
    bool without_calls; /* TIMELINE_OWN_EVENTS were not recorded */
};

/* Reads both; the caller frees them.  ret_profile is symbolized. */
int timeline_read(struct timeline *t, struct profile **ret_profile,
                  const struct timeline_recording *recording, struct error *err);

#endif

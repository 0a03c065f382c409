/* SPDX-License-Identifier: MIT */
/*
 * What a command did, where the events that count it are not permitted: an ordinary user at
 * kernel.perf_event_paranoid 2 may not count what happens in the kernel, and at 3 (Debian's
 * default) nothing at all, yet may read what the kernel keeps of each process anyway.
 *
 * CPU time, page faults and switches are those of getrusage: the command with all its threads and
 * the children that it waited for.  Migrations are those of /proc/PID/sched: the command's first
 * thread alone, since the others are gone when it ends.  All begin at the fork, a moment before
 * events would.
 */
#ifndef ASSAY_COUNTERS_ACCOUNTING_H
#define ASSAY_COUNTERS_ACCOUNTING_H

#include "base/strings.h"
#include "counters/counters.h"

#include <sys/resource.h>

/* Whether this kernel keeps what the event counts. */
bool accounting_has(const struct event *e);

/* What must be read while the command has ended and is not reaped yet. */
struct accounting {
    uint64_t migrations;
};
void accounting_read(const struct counters *c, pid_t pid, struct accounting *ret);
/* Sets the values of those events that are accounted for; the others stay. */
void accounting_fill(const struct counters *c, const struct accounting *a,
                     const struct rusage *usage, uint64_t wall_ns, struct counter_value *values);

/* The sentence for these events' names ("context-switches, cpu-migrations"). */
void accounting_explain(struct strbuf *out, const char *names);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Counting: opens a list of events on a target, reads them, closes them.
 *
 * For commands that assay starts, the events are opened once, on the calling thread itself, and
 * never count it: they are disabled, are inherited by each child, and the kernel enables the
 * child's copies when it executes the command.  So a thousand runs cost one perf_event_open per
 * event, and the parent may vfork.  (A disabled event that is not inherited is opened beside them:
 * it keeps the kernel from treating the child's set of events as interchangeable with the parent's,
 * in which case the exec would use up the parent's enable_on_exec.  Before Linux 6.2 a task has two
 * sets, hardware and others: then there are two such events.)
 *
 * One thread opens, reads and closes.  Reading gives totals since the opening; a run's own counts
 * are differences.  The events of a group ran together, and have one pair of times, its leader's:
 * the kernel keeps a pair for each, which may differ by a timer's tick, and ratios within a group
 * must not depend on that.
 */
#ifndef ASSAY_COUNTERS_COUNTERS_H
#define ASSAY_COUNTERS_COUNTERS_H

#include "base/error.h"
#include "counters/dynamic.h"
#include "counters/event.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum target_kind {
    TARGET_CHILDREN, /* commands that the calling thread starts, from their exec on */
    TARGET_TASKS,    /* threads that run already, and what they start */
    TARGET_CPUS,     /* everything on some CPUs */
    TARGET_CGROUP,   /* a cgroup's tasks on all CPUs */
};

struct counter_target {
    enum target_kind kind;
    const pid_t *tasks; /* TARGET_TASKS */
    size_t task_count;
    const int *cpus; /* TARGET_CPUS and TARGET_CGROUP */
    size_t cpu_count;
    int cgroup_fd;      /* TARGET_CGROUP */
    bool start_paused;  /* counts only from counters_enable on; not for TARGET_CHILDREN */
    bool start_on_exec; /* TARGET_TASKS: from the task's next exec on */
    bool no_inherit;    /* TARGET_TASKS: these threads alone */
    bool may_account;   /* TARGET_CHILDREN: the caller fills in what accounting.h knows */
};

struct counter_value {
    uint64_t raw; /* what the kernel counted, not scaled */
    uint64_t enabled_ns;
    uint64_t running_ns; /* less than enabled where events took turns on the counters */
    bool failed;         /* a pinned event lost its counter: the count means nothing */
};

struct counter {
    const struct event *event;
    struct perf_event_attr attr;  /* the event's, or that of the probe defined for it */
    struct dynamic_event dynamic; /* the definition, where there is one */
    char *why;                    /* not NULL: not supported here, and why */
    bool user_only;               /* the kernel's part was left out for lack of permission */
    bool restricted; /* opened for user mode only; a clock counts the kernel's time all the same */
    bool accounted;  /* not permitted, and known from the kernel's accounting: accounting.h */
    int *fds;        /* one per entity; -1 where it was gone */
};

struct counters {
    struct counter *items; /* as many as the list had, in its order */
    size_t count;
    size_t entity_count; /* threads or CPUs that are counted apart */
    int guard_fds[2];    /* the events that are not inherited, see above; -1 for none */
};

/* The list must outlive the counters.  Events the machine does not have are no failure. */
int counters_open(struct counters *c, const struct event_list *list,
                  const struct counter_target *target, struct error *err);
int counters_enable(struct counters *c, struct error *err);
int counters_disable(struct counters *c, struct error *err);
/* Sets values[0..count): sums over all entities. */
int counters_read(const struct counters *c, struct counter_value *values, struct error *err);
/* The same of one entity. */
int counters_read_entity(const struct counters *c, size_t entity, struct counter_value *values,
                         struct error *err);
void counters_done(struct counters *c);

/* perf_event_open itself, close-on-exec; a negative errno on failure. */
int counters_open_raw(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
                      unsigned long flags);

/* Whether the value means something: an event that was enabled but never got a counter counted
 * nothing, while one whose task never ran in that time truly counted 0. */
static inline bool counter_was_counted(const struct counter_value *v)
{
    return !v->failed && (v->running_ns > 0 || v->enabled_ns == 0);
}

/* The estimate for the whole enabled time; the raw count when it never ran. */
double counter_scaled(const struct counter_value *v);
struct counter_value counter_difference(const struct counter_value *late,
                                        const struct counter_value *early);

#endif

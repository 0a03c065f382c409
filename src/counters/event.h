/* SPDX-License-Identifier: MIT */
/*
 * What -e takes, as perf spells it:
 *
 *   cycles  faults  L1-dcache-load-misses    names of the catalogue, or their aliases
 *   r1a8                                     a raw hardware event, in hexadecimal
 *   msr/tsc/  cpu/event=0x3c,umask=1/        an event of a PMU, as sysfs describes it
 *   sched:sched_switch  sched:*              tracepoints
 *   mem:0x601040/4:rw                        a hardware breakpoint: address, length, access
 *   uprobe:BINARY:SYMBOL  uretprobe:…        a function's entry (or return) in a file
 *   kprobe:FUNCTION  kretprobe:…             the same in the kernel
 *   {a,b}:u                                  a group: counted at the same time
 *
 * Modifiers behind a colon: u user only, k kernel only, h hypervisor only, p, pp, ppp precise, P as
 * precise as can be, D pinned, e exclusive, G guest only, H host only.
 */
#ifndef ASSAY_COUNTERS_EVENT_H
#define ASSAY_COUNTERS_EVENT_H

#include "base/error.h"
#include "stats/metric.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event {
    char *name;                  /* as the user wrote it */
    struct perf_event_attr attr; /* type, configs, excludes, precise_ip; the rest is zero */
    char *probe_target;          /* what attr.config1 points to for probes, or NULL */
    char *pmu;                   /* of pmu/…/, or NULL */
    char *filter;                /* of a tracepoint, see filter.h; or NULL */
    unsigned group;              /* 0 alone; else events of the same number are counted together */
    bool has_modifier;           /* the user chose user, kernel or hypervisor */
    bool in_ns;
    double scale;  /* value × scale is in unit */
    char unit[32]; /* "" for plain counts */
};

/* Events are costs: fewer are better. */
static inline struct metric_facts event_facts(const struct event *e)
{
    return (struct metric_facts){.better = METRIC_LOWER, .is_count = !e->in_ns && !*e->unit};
}

struct event_list {
    struct event *items;
    size_t count, capacity;
    unsigned group_count;
};

/* Appends what the text describes; on failure the list is as it was. */
int event_list_parse(struct event_list *list, const char *text, struct error *err);
void event_list_remove(struct event_list *list, size_t index);
void event_list_done(struct event_list *list);

/* The list that `assay stat` counts when none is given; detail adds what -d, -dd, -ddd add. */
void event_list_default(struct event_list *list, bool systemwide, unsigned detail);

/* The event of the list that counts type and config in the same modes as `like`, or NULL. */
const struct event *event_list_partner(const struct event_list *list, const struct event *like,
                                       uint32_t type, uint64_t config);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Events opened for sampling on commands, processes or CPUs, with a ring for each CPU.
 *
 * An event that follows the children of its task can have a ring only when it is bound to one CPU,
 * so every event is opened once for each CPU (and thread); all events of a CPU write to one ring.
 */
#ifndef ASSAY_SAMPLER_SAMPLING_H
#define ASSAY_SAMPLER_SAMPLING_H

#include "base/error.h"
#include "base/strings.h"
#include "counters/dynamic.h"
#include "counters/event.h"
#include "sampler/perfdata_write.h"
#include "sampler/rings.h"

#include <sys/types.h>

enum sampling_stacks {
    SAMPLING_NO_STACKS,
    SAMPLING_FRAME_POINTERS,
    SAMPLING_DWARF,
    SAMPLING_CHOSEN, /* whichever fits, see stacks.h: for recordings, not for sampling_open */
};

struct sampling_spec {
    const struct event_list *events; /* NULL or empty: cycles, or cpu-clock without a PMU */
    uint64_t frequency_hz;           /* 0 for the default or when a period is given */
    uint64_t period;                 /* 0 when a frequency is wanted */
    enum sampling_stacks stacks;
    uint32_t stack_bytes; /* of each copy for SAMPLING_DWARF */
    bool kernel_stacks;   /* only the kernel's part of call chains */
    bool no_tracking;     /* without maps, names and lives of processes */
    bool no_build_ids;    /* maps name inodes: for what runs long, see top/samples.c */
    bool switches;        /* a record of each arrival at a CPU and leaving */
    bool off_cpu;         /* see offcpu.h */
    bool whole_cpus;      /* whatever runs on the CPUs; else the tasks */
    bool on_exec;         /* tasks: from their exec on */
    bool beside_others;   /* its file has other events too: records say whose they are */
    bool no_idle;         /* whole CPUs: without what the idle task does */
    bool in_cgroup;       /* whole CPUs: only what runs in the cgroup of this descriptor */
    int cgroup_fd;
    const pid_t *tasks;
    size_t task_count;
    const int *cpus;
    size_t cpu_count;
    size_t ring_bytes; /* for each CPU, 0 for the default */
};

#define SAMPLING_FREQUENCY_DEFAULT 999
#define SAMPLING_STACK_BYTES_DEFAULT 8192
#define SAMPLING_STACK_BYTES_MAX 65528
#define SAMPLING_RING_BYTES_LONG ((size_t)16 << 20) /* for copies longer than the default */

struct sampling_event {
    const struct event *event;
    char *name;
    struct perf_event_attr attr;
    struct dynamic_event dynamic; /* of a probe that children inherit */
    bool user_only;               /* the kernel's part was left out for lack of permission */
    int *fds;                     /* for each CPU all tasks; -1 where it was gone */
    uint64_t *ids;                /* of those that are there */
    size_t id_count;
};

/* What this kernel knows of attributes that came late. */
struct sampling_kernel {
    bool has_lost_count; /* 6.0 */
    bool has_build_id;   /* 5.12 */
    bool has_ksymbol;    /* 5.1 */
    bool has_clock;      /* 4.1 */
};

struct sampling {
    struct sampling_event *events;
    size_t event_count;
    size_t fd_count;              /* of each event */
    struct event_list own_events; /* those that the user did not name */
    struct sampling_kernel kernel;
    struct rings rings;
    struct strbuf notes; /* lines for the user: what was changed, and why */
    bool kernel_sampled; /* samples may have kernel addresses */
};

int sampling_open(struct sampling *s, const struct sampling_spec *spec, struct error *err);
/* Starts events that do not wait for an exec. */
int sampling_enable(struct sampling *s, struct error *err);
void sampling_disable(struct sampling *s);
/* Records that the kernel could not place, over all events; 0 where it does not count them. */
uint64_t sampling_lost(const struct sampling *s);
/* What went through the rings of several so far; at least one. */
struct ring_totals sampling_totals(const struct sampling *parts, size_t count);
void sampling_done(struct sampling *s);

/* What the copies of stacks came to; the smallest ring. */
struct trim_totals sampling_stack_totals(const struct sampling *parts, size_t count);
size_t sampling_ring_bytes_least(const struct sampling *s);
/* Whether stacks can be copied for unwinding on this kind of machine. */
bool sampling_can_copy_stacks(void);

/* The largest frequency that the kernel allows now. */
uint64_t sampling_frequency_max(void);

#endif

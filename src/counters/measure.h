/* SPDX-License-Identifier: MIT */
/*
 * One measurement, as `assay stat` makes it: a command run some times, or something that runs
 * already watched for a while, with every run's raw values kept.
 */
#ifndef ASSAY_COUNTERS_MEASURE_H
#define ASSAY_COUNTERS_MEASURE_H

#include "counters/counters.h"

#include <sys/resource.h>

struct measured_run {
    struct counter_value *values; /* one per event */
    uint64_t wall_ns;
    bool has_command; /* the next three are known */
    int status;       /* as wait4 gives it */
    struct rusage usage;
    bool rss_is_bound;        /* peak memory not above what every command starts with: "at most" */
    uint64_t rss_bytes_floor; /* that, of the launcher; 0: assay's own peak */
    bool timed_out;
    bool left_behind; /* processes of the command went on after it had ended */
};

struct measured_interval {
    uint64_t end_ns;    /* since counting began */
    uint64_t length_ns; /* really passed, not asked for */
    size_t run;         /* the index of the run it belongs to */
    struct counter_value *values;
};

/* A thread; with per_cpu or per_core a CPU or a core, whose number tid then is. */
struct measured_thread {
    pid_t pid, tid;
    char name[17];
    uint64_t wall_ns;             /* of the runs that it was part of */
    struct counter_value *values; /* summed over runs */
};

struct measurement {
    size_t event_count;
    char **why;       /* per event: not NULL when it is not supported, and why */
    bool *user_only;  /* per event: the kernel's part is missing for lack of permission */
    bool *accounted;  /* per event: from the kernel's accounting (accounting.h) */
    bool *restricted; /* per event: had to be opened for user mode only */
    struct measured_run *runs;
    size_t run_count, run_capacity;
    struct measured_interval *intervals;
    size_t interval_count, interval_capacity;
    struct measured_thread *threads;
    size_t thread_count, thread_capacity;
    uint64_t lost_records; /* of per-thread counts: their threads are missing */
    uint64_t steal_ns;     /* that the host took from all CPUs meanwhile */
    int signal;            /* that ended the measurement early, 0 for none */
    bool left_out_last;    /* the run that the signal cut short, where others had finished */
};

struct measure_spec {
    const struct event_list *events;
    char *const *argv;     /* NULL: no command, watch until the end of the target or a signal */
    enum target_kind kind; /* TARGET_CHILDREN counts the command alone */
    const pid_t *pids;     /* processes, for TARGET_TASKS */
    size_t pid_count;
    const int *cpus; /* for TARGET_CPUS and TARGET_CGROUP; NULL for all that are online */
    size_t cpu_count;
    const char *cgroup;
    uint64_t repeat_count;
    uint64_t interval_ns, delay_ns, timeout_ns; /* 0 for none */
    bool per_thread;
    bool per_cpu, per_core; /* TARGET_CPUS and TARGET_CGROUP: each apart, in threads */
    /* Called after each interval and each run; either may be NULL. */
    void (*on_interval)(const struct measurement *m, void *context);
    void (*on_run)(const struct measurement *m, void *context);
    void *context;
};

/*
 * Measures.  m is filled as far as it went, also on failure, and must be given to
 * measurement_done.  *ret_start_code is set when the command could not be started: the negative
 * errno of its exec.
 */
int measure(const struct measure_spec *spec, struct measurement *m, int *ret_start_code,
            struct error *err);
void measurement_done(struct measurement *m);

#endif

/* SPDX-License-Identifier: MIT */
/* One measurement: a test, so many tasks, for so long. */
#ifndef SCALE_MEASURE_H
#define SCALE_MEASURE_H

#include "base/term.h"
#include "cpus.h"
#include "scale.h"
#include "stage.h"

#include <stdbool.h>

struct measure_spec {
    const struct scale_test *test;
    bool threads;
    unsigned task_count;
    uint64_t duration_ns, warmup_ns, interval_ns;
    bool by_ops;        /* a number of operations, instead of a duration: */
    uint64_t ops;       /* of each task */
    bool count_calls;   /* needs operations */
    uint64_t mappings;  /* more than a process has by itself */
    const char *folder; /* is there; the measurement makes one of its own in it */
    const struct cpus *cpus;
    struct progress *progress;
    const char *progress_text; /* which of how many */
};

struct task_result {
    int cpu;
    uint64_t ops;
    double ops_per_second;
    double cpu_share; /* of the time, that the task was running; NAN when not known */
};

struct measure_result {
    const struct scale_test *test;
    bool threads;
    unsigned task_count;
    uint64_t elapsed_ns; /* measured, without the warm-up */
    uint64_t ops;
    double ops_per_second, ops_per_second_per_task;
    double idle_share, steal_share; /* of the tasks' CPUs; NAN when not known */
    double cpu_share;               /* mean over the tasks; NAN when not known */
    double *intervals;              /* operations per second in each; none with a count of ops */
    size_t interval_count, interval_capacity;
    struct task_result *each;
    bool has_calls;
    uint64_t calls[CALLS_MAX]; /* of all tasks */
};

/* Whether the machine can do it at all; the reason else. */
int measure_check(const struct measure_spec *spec, struct error *err);
/* -EINTR when a signal came. */
int measure(const struct measure_spec *spec, struct measure_result *ret_result, struct error *err);
void measure_result_done(struct measure_result *r);

#endif

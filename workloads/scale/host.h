/* SPDX-License-Identifier: MIT */
/*
 * The tasks of one measurement and their parent.
 *
 * Each measurement has a parent process of its own (the host), so that nothing of one test is left
 * in the memory of the next.  The host prepares what is shared, starts the tasks as processes or
 * threads, and ends when they end.  When the measuring process dies, the kernel kills the host, and
 * the tasks with it.
 */
#ifndef SCALE_HOST_H
#define SCALE_HOST_H

#include "scale.h"
#include "stage.h"

#include <stdbool.h>

struct host_spec {
    const struct scale_test *test;
    struct host host;
    const int *cpus; /* task i runs on cpus[i % cpu_count] */
    size_t cpu_count;
    bool count_calls;
    uint64_t mappings; /* more than the process has by itself */
};

int host_start(const struct host_spec *spec, struct stage *stage, pid_t *ret_pid,
               struct error *err);

#endif

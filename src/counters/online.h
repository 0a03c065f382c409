/* SPDX-License-Identifier: MIT */
/* Which CPUs, threads and cgroups there are to count. */
#ifndef ASSAY_COUNTERS_ONLINE_H
#define ASSAY_COUNTERS_ONLINE_H

#include "base/error.h"

#include <stddef.h>
#include <sys/types.h>

/* The CPUs that are online; the caller frees the list. */
int online_cpus(int **ret_cpus, size_t *ret_count, struct error *err);
/* The threads of a process, appended to the list. */
int online_threads(pid_t pid, pid_t **threads, size_t *count, size_t *capacity, struct error *err);
/* A descriptor of the cgroup: a path, or a name below the hierarchy that perf counts by. */
int online_cgroup(const char *name, struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What threads do between samples, by /proc: how long each ran and waited for a CPU (schedstat,
 * once an interval), and in which call and function of the kernel it waits (syscall and wchan,
 * several times a second).  A thread that did not run in an interval is looked at once: it is still
 * where it was.  So the cost goes with the threads that run, and how often they are looked at goes
 * down when it becomes too much.
 */
#ifndef ASSAY_TOP_THREADS_H
#define ASSAY_TOP_THREADS_H

#include "base/error.h"
#include "live/calls.h"
#include "top/window.h"

#include <sys/types.h>

struct threads_task {
    uint32_t thread;                        /* in the window */
    int schedstat_fd, syscall_fd, wchan_fd; /* -1 where not open */
    uint64_t run_ns, ready_ns, slices;
    uint32_t place; /* where it was seen last; WINDOW_NONE: running */
    unsigned seen;  /* the scan that saw it last */
    bool has_read;
    bool has_run;      /* in the last interval */
    bool is_looked_at; /* in this one */
    bool is_kernel;
};

struct threads {
    struct recent *window;
    struct calls *calls;
    struct threads_task *tasks;
    size_t task_count, task_capacity;
    struct idtable table; /* by pid and tid */
    unsigned scan;
    size_t fd_count;
    uint64_t tick_ns, last_tick_ns; /* how often states are looked at */
};

void threads_init(struct threads *t, struct recent *window);
void threads_done(struct threads *t);
/* Begins a scan: then each process that is there, then the end, which reads their figures into the
 * window's current interval.  length_ns is how long that interval was. */
void threads_begin(struct threads *t);
void threads_process(struct threads *t, pid_t pid);
void threads_end(struct threads *t, uint64_t length_ns);
/* Looks at the states of threads that ran lately. */
void threads_look(struct threads *t);

#endif

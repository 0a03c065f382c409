/* SPDX-License-Identifier: MIT */
/*
 * Who ran: threads and their names, which change with time.
 *
 * A *task* is a thread under one name: a thread that calls exec or prctl(PR_SET_NAME) is several
 * tasks.  A thread that no record named yet is called ":TID" as perf does, and gets its name, for
 * the samples before as well, from the first record that has one.
 */
#ifndef ASSAY_PROFILE_TASKS_H
#define ASSAY_PROFILE_TASKS_H

#include "base/arena.h"
#include "profile/idtable.h"

#include <stddef.h>
#include <stdint.h>

struct profile_task {
    uint32_t pid, tid;
    uint32_t comm; /* number of the name */
};

/* Strings by number, each once. */
struct names {
    const char **items;
    size_t count, capacity;
    struct idtable table;
};

void names_init(struct names *n);
void names_done(struct names *n); /* the strings are the arena's */
uint32_t names_add(struct names *n, struct arena *arena, const char *text);

struct thread_state {
    uint32_t tid, pid;
    uint32_t task; /* the current one, IDTABLE_NONE before the first sample */
    uint32_t comm; /* IDTABLE_NONE: not named yet */
    bool is_alive;
};

struct tasks {
    struct arena arena;
    struct names comms;
    struct profile_task *items;
    size_t count, capacity;
    struct idtable task_table;
    struct thread_state *threads;
    size_t thread_count, thread_capacity;
    struct idtable thread_table; /* by tid */
    uint32_t last_thread;        /* that was asked for */
    uint32_t *live_counts;       /* by pid slot: threads alive, for the end of a process */
    uint32_t *live_pids;
    size_t live_count, live_capacity, live_pid_capacity;
    struct idtable live_table; /* by pid */
    uint64_t *ended;           /* processes that ended under each name */
    size_t ended_capacity;
};

void tasks_init(struct tasks *t);
void tasks_done(struct tasks *t);

/* The task of a sample. */
uint32_t tasks_current(struct tasks *t, uint32_t pid, uint32_t tid);
void tasks_name(struct tasks *t, uint32_t pid, uint32_t tid, const char *comm);
void tasks_fork(struct tasks *t, uint32_t pid, uint32_t tid, uint32_t parent_tid);
/* True when that was the last known thread of the process. */
bool tasks_exit(struct tasks *t, uint32_t pid, uint32_t tid);
/* How many processes ended under the name of this number. */
uint64_t tasks_ended(const struct tasks *t, uint32_t comm);

static inline const char *tasks_comm(const struct tasks *t, uint32_t task)
{
    return t->comms.items[t->items[task].comm];
}

#endif

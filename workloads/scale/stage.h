/* SPDX-License-Identifier: MIT */
/*
 * The memory that the measuring process shares with the tasks.  A task counts on a pair of cache
 * lines of its own (two, because CPUs fetch lines in pairs), so that counting does not scale badly
 * by itself.
 */
#ifndef SCALE_STAGE_H
#define SCALE_STAGE_H

#include "base/error.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SLOT_ALIGNMENT = 128, SCALE_TASKS_MAX = 4096, CALLS_MAX = 40 };

struct slot {
    alignas(SLOT_ALIGNMENT) _Atomic uint64_t ops; /* written by the task alone */
    _Atomic uint64_t limit;                       /* the task ends when ops reaches it */
    alignas(SLOT_ALIGNMENT) int cpu;
    pid_t tid;
    uint64_t start_ns, end_ns; /* of the loop, by CLOCK_MONOTONIC */
    uint64_t calls[CALLS_MAX]; /* see calls.h */
    struct error error;        /* why the task gave up; code 0 when it did not */
};

struct stage {
    _Atomic uint32_t ready; /* so many tasks are waiting for go */
    _Atomic uint32_t go;    /* a futex: 0, then 1 */
    struct error error;     /* of the parent of the tasks */
    size_t size_bytes;
    unsigned task_count;
    struct slot slots[];
};

static_assert(offsetof(struct slot, cpu) >= SLOT_ALIGNMENT, "nothing else beside the counter");
static_assert(sizeof(struct slot) % SLOT_ALIGNMENT == 0, "each slot on lines of its own");

struct stage *stage_new(unsigned task_count, struct error *err);
void stage_free(struct stage *s);

#endif

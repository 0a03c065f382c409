/* SPDX-License-Identifier: MIT */
/* The samples of profiled runs sorted into what caused them: see explain.h. */
#ifndef ASSAY_WHY_EXPLAIN_PARTS_H
#define ASSAY_WHY_EXPLAIN_PARTS_H

#include "why/explain.h"

enum part_kind {
    PART_FUNCTION, /* user code */
    PART_SYSCALL,
    PART_ENTRY, /* on the way into or out of some system call */
    PART_FAULTS,
    PART_INTERRUPTS,
    PART_KERNEL,
    PART_LOCK, /* waits: for a lock */
    PART_SLEEP,
    PART_STORAGE,
    PART_WAIT,   /* of another kind, in a system call */
    PART_PEERS,  /* for other threads or processes of the same command */
    PART_OTHERS, /* runnable while others had the CPU */
};

struct part {
    enum part_kind kind;
    char *name;
    bool is_wait;
    double *weights[SIDE_COUNT], *samples[SIDE_COUNT]; /* one per run */
    /* Who is behind it: the caller, or the program's function that waits; heaviest first. */
    struct part_via {
        const char *name;
        double weight;
    } * via;
    size_t via_count, via_capacity;
};

struct parts {
    struct part *items;
    size_t count, capacity;
    size_t run_counts[SIDE_COUNT];
    double *cpu_weights[SIDE_COUNT], *cpu_samples[SIDE_COUNT]; /* totals of each run */
};

/* The diff tells which functions are one. */
void parts_build(struct parts *p, const struct profile_loads *loads, const struct diff *diff);
void parts_done(struct parts *p);

/* The way into the kernel is shared out to the system calls by how often each was made ("": those
 * that no stack names, which keep it): counts per
 * side, by name; where none is known, by their time. */
struct syscall_count {
    char *name;
    double values[SIDE_COUNT]; /* per run */
};
void parts_share_entries(struct parts *p, const struct syscall_count *counts, size_t count);

/* The kernel's function of a system call as its name: "__x64_sys_pread64" -> "pread64"; else NULL.
 */
const char *part_syscall_name(const char *kernel_function);

#endif

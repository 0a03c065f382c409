/* SPDX-License-Identifier: MIT */
/*
 * Which locks the threads of a command waited for, where they wanted them, and who handed them
 * over. Every wait counts, whether the command's end depended on it or not.
 */
#ifndef ASSAY_BILL_CONTENTION_H
#define ASSAY_BILL_CONTENTION_H

#include "bill/bill.h"

struct contention_lock {
    uint64_t address;   /* of the futex; 0: not known, or a lock of the kernel */
    const char *wanted; /* "lock wanted in f" */
    const char *waiter; /* the program's or thread's name */
    const char *giver;  /* of the thread that ended the waits; NULL: different ones, or unknown */
    bool is_kernel;     /* the kernel's own */
    uint64_t waits, ns, max_ns;
    bool has_giver;
};

struct contention {
    struct contention_lock *locks; /* the longest waited for first */
    size_t count, capacity;
    uint64_t ns; /* of all waits */
};

/* Of the bill's last run. */
void contention_make(struct contention *c, const struct bill *b);
void contention_done(struct contention *c);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What a stack says about the moment when it was taken: which function ran and for whom, or what a
 * thread waited for.
 */
#ifndef ASSAY_BILL_PLACES_H
#define ASSAY_BILL_PLACES_H

#include "profile/profile.h"

enum wait_kind {
    WAIT_UNKNOWN,
    WAIT_STORAGE,
    WAIT_LOCK,   /* a futex: a lock, a condition, the end of a thread */
    WAIT_KERNEL, /* a lock of the kernel */
    WAIT_SLEEP,
    WAIT_CHILD, /* the end of a process */
    WAIT_PIPE,
    WAIT_LOCAL, /* a socket of this machine */
    WAIT_NETWORK,
    WAIT_POLL, /* any of several things */
    WAIT_TERMINAL,
};

struct place {
    const char *function; /* of the user's code, or its file where no symbol covers it; or NULL */
    const char *caller;   /* who called it; NULL when not known */
    const char *program_function; /* the innermost one outside of the C library; or NULL */
    bool in_kernel;               /* the sample was taken in the kernel */
    bool in_fault;                /* on behalf of a page fault */
    bool in_exit;                 /* the program ends */
    bool in_loader;               /* the loader works, or exec */
    bool wants_lock;              /* some function on it takes a lock of user space */
    const char *call;             /* the system call, by the kernel's functions; or NULL */
    enum wait_kind wait;          /* by the kernel's part */
};

/* Looks the stack up.  The strings are the profile's. */
void place_find(struct place *ret_place, const struct profile *profile, uint32_t call_node);

/* What a thread waits for that left the CPU in this function of the kernel; WAIT_UNKNOWN: look at
 * its caller. */
enum wait_kind place_wait_kind(const char *kernel_function);
/* "fsync" of "__x64_sys_fsync"; NULL for a function that is not the entry of a system call. */
const char *place_call_name(const char *kernel_function);

#endif

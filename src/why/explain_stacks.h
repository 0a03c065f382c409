/* SPDX-License-Identifier: MIT */
/*
 * What one stack says of the moment when it was taken.  The kernel's part of a stack is exact, and
 * its entry points have well-known names: the innermost one says whether the kernel works for a
 * system call, for a page fault or for an interrupt.
 */
#ifndef ASSAY_WHY_EXPLAIN_STACKS_H
#define ASSAY_WHY_EXPLAIN_STACKS_H

#include "why/explain_parts.h"

/* What a stack says, read from its leaf outwards. */
struct reading {
    const struct calls *calls;
    bool is_static;               /* the program has the C library in itself */
    const char *syscall;          /* the innermost system call */
    bool in_kernel;               /* the leaf is */
    bool fault, interrupt, entry; /* the innermost mark */
    bool marked;
    bool storage, peer, sleep; /* waits: by what the kernel does */
    bool memory[FAULT_KINDS];  /* faults: by what the kernel does */
    bool worker;               /* a thread that the kernel added, as io_uring's */
    bool lock, join;           /* by what the library does */
    uint32_t user_leaf;        /* symbol; IDTABLE_NONE for none */
    uint32_t user_node;        /* the innermost frame in user space; 0 for none */
    uint32_t program; /* the first frame beyond the library's waiting functions; 0 for none */
};

struct reading explain_read_stack(const struct calls *calls, uint32_t leaf, bool is_static);
/* The symbol of the function of the program that runs or waits, with what is inlined into it;
 * IDTABLE_NONE where none is known. */
uint32_t explain_owner_of(const struct reading *r);
/* Whether no C library is beside the program. */
bool explain_has_no_library(const struct calls *calls);
/* The C library and its like, by the names of their files. */
bool explain_is_system_library(const char *dso);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * One command under many kernels: what each kernel executed for it, and between which of them that
 * changed.
 *
 * Kernels are compared with the one before them of the same flavour (Debian's plain ones, cloud,
 * rt; the user's own), in the order of their versions.  Counts repeat nearly, so that a step is a
 * change beyond what the runs of both differ by, and beyond a threshold.
 */
#ifndef ASSAY_EXACT_SWEEP_H
#define ASSAY_EXACT_SWEEP_H

#include "exact/functions.h"

#include <stdbool.h>

#define SWEEP_OWN "own" /* the flavour of kernels that are files of the user's */

struct sweep_range {
    uint64_t least, most; /* of the runs */
};

struct sweep_kernel {
    char *name;    /* package and version, or a path */
    char *flavour; /* "" for Debian's plain kernels */
    char *why;     /* why nothing was counted; NULL where it was */
    size_t run_count;
    struct sweep_range user, kernel;
    struct exact_way *ways; /* of the first run, as are the functions */
    size_t way_count;
    struct exact_functions functions; /* of the kernel */
};

struct sweep {
    struct sweep_kernel *items;
    size_t count, capacity;
};

/* The kernel's instructions changed from one to the next. */
struct sweep_step {
    const struct sweep_kernel *from, *to;
    double change; /* in shares of the first: 0.1 for a tenth more */
};

/* A kernel that is not there yet; false if it is. */
bool sweep_add(struct sweep *s, const char *name);
/* By flavour and version; kernels of the user's stay as they were given, at the end. */
void sweep_sort(struct sweep *s);
/* Takes the counts of a run. */
void sweep_take(struct sweep_kernel *k, const struct exact_counts *c);
/* The kernel before items[index] that it is compared with; NULL for none. */
const struct sweep_kernel *sweep_before(const struct sweep *s, size_t index);
/* False where nothing is known to have changed. */
bool sweep_step_find(const struct sweep *s, size_t index, double threshold,
                     struct sweep_step *ret_step);
void sweep_done(struct sweep *s);

/* Changes of what the kernel did, by the way into it; the largest first, those without left out. */
struct sweep_way {
    const char *name;
    uint64_t base, new;
};

/* The caller frees *ret_ways. */
size_t sweep_ways(const struct sweep_step *step, struct sweep_way **ret_ways);

#endif

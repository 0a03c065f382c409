/* SPDX-License-Identifier: MIT */
/*
 * Who is behind a part: the callers of its code, their callers, and so on, with what each had of it
 * in each run.  Node 0 is the part itself; a node's children are those that called it, or that its
 * code was inlined into.
 */
#ifndef ASSAY_WHY_EXPLAIN_CALLERS_H
#define ASSAY_WHY_EXPLAIN_CALLERS_H

#include "fits/attribution.h"

#include <stdint.h>

#define CALLERS_NONE UINT32_MAX

struct caller {
    const char *name; /* the caller's of the list owns it */
    uint32_t parent;  /* whom it called */
    bool inlined;     /* that one's code is inlined here, on one side at least */
    bool is_program;  /* the program's first function behind a library's */
    double *weights[SIDE_COUNT], *samples[SIDE_COUNT]; /* one per run */
};

struct callers {
    struct caller *items;
    size_t count, capacity;
    size_t run_counts[SIDE_COUNT];
};

void callers_init(struct callers *c, const size_t run_counts[SIDE_COUNT]);
void callers_done(struct callers *c);

/* The caller of that name behind a node, made when it is not there; CALLERS_NONE when there are too
 * many. */
uint32_t callers_find(struct callers *c, uint32_t node, const char *name, bool inlined);
/* The next child of a node, from one on; CALLERS_NONE behind the last. */
uint32_t callers_child(const struct callers *c, uint32_t node, uint32_t from);
void callers_add(struct callers *c, uint32_t node, unsigned side, size_t run, double weight,
                 double samples);
/* Of both sides and all runs, per run of each. */
double callers_weight(const struct callers *c, uint32_t node);

/* Adds what stands behind a node of another list to a node of this one. */
void callers_graft(struct callers *to, uint32_t to_node, const struct callers *from,
                   uint32_t from_node);
/* Takes a node and all behind it out: those that it called have less. */
void callers_cut(struct callers *c, uint32_t node);

#endif

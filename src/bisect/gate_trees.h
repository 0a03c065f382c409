/* SPDX-License-Identifier: MIT */
/* Where a gate runs: the working tree, and a worktree of the base beside it. */
#ifndef ASSAY_BISECT_GATE_TREES_H
#define ASSAY_BISECT_GATE_TREES_H

#include "base/error.h"

/* The base's tree, beside the working tree. */
struct gate_trees {
    char *top;        /* of the repository */
    char *base_top;   /* a temporary worktree of it */
    char *base, *new; /* the same folder in both */
    char *commit;     /* of the base */
};

int gate_trees_open(struct gate_trees *t, const char *ref, struct error *err);
/* Runs the command in both. */
int gate_trees_build(const struct gate_trees *t, const char *command, struct error *err);
void gate_trees_close(struct gate_trees *t);

#endif

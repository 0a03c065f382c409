/* SPDX-License-Identifier: MIT */
/* Where a gate runs: the working tree, and a worktree of the base beside it. */
#ifndef ASSAY_BISECT_GATE_TREES_H
#define ASSAY_BISECT_GATE_TREES_H

#include "base/error.h"

#include <stdbool.h>

/* The base's tree, beside the working tree. */
struct gate_trees {
    char *top;        /* of the repository */
    char *base_top;   /* a temporary worktree of it */
    char *base, *new; /* the same folder in both */
    char *commit;     /* of the base */
    char *new_commit; /* that the working tree stands on */
    bool is_dirty;    /* with changes that are not committed */
};

/* The working tree alone, where there is one: -ENOENT outside of a repository. */
int gate_trees_look(struct gate_trees *t, struct error *err);

int gate_trees_open(struct gate_trees *t, const char *ref, struct error *err);
/* Runs the command in both. */
int gate_trees_build(const struct gate_trees *t, const char *command, struct error *err);
/* Whether the program is in both trees; `inside` is the folder within them where it is started, and
 * `built` the command that was to build it, NULL for none.  Only paths are looked at. */
int gate_trees_check(const struct gate_trees *t, const char *inside, const char *program,
                     const char *built, struct error *err);
void gate_trees_close(struct gate_trees *t);

#endif

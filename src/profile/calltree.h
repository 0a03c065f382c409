/* SPDX-License-Identifier: MIT */
/*
 * The call tree of one row: whom its functions were called by (callee first) or what they call
 * (caller first), with the weight that passes through each node.
 */
#ifndef ASSAY_PROFILE_CALLTREE_H
#define ASSAY_PROFILE_CALLTREE_H

#include "profile/rows.h"

enum calltree_order {
    CALLTREE_CALLEE, /* from the row's function outwards to its callers */
    CALLTREE_CALLER, /* inwards: from the outermost caller, or with children from the function */
};

/* Node 0 is the root and stands for the whole row; children are heaviest first. */
struct calltree_node {
    uint32_t symbol; /* IDTABLE_NONE for the root */
    bool inlined;
    uint32_t parent, first_child, next; /* IDTABLE_NONE for none */
    uint64_t samples, weight;
};

struct calltree {
    struct calltree_node *nodes;
    size_t count, capacity;
    struct idtable table;
};

/* The tree may be used again for another row: start with {0}.  The rows need with_members. */
void calltree_build(struct calltree *tree, const struct rows *rows, const struct row *row,
                    enum calltree_order order);
void calltree_done(struct calltree *tree);

#endif

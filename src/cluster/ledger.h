/* SPDX-License-Identifier: MIT */
/*
 * What of an experiment is still to be measured when many nodes share the work.
 *
 * Cells that are compared with each other form a block, and a block in one round is a unit: it is
 * measured on one node, as a whole or not at all, so that every difference is one within a node.
 * Different rounds of a block go to different nodes where they can: what differs from node to node
 * is then among what differs from round to round.  Units are dealt into tasks, a task is what the
 * cluster's scheduler gets.
 *
 * Nothing here knows of a scheduler, of time or of files: a simulation of a thousand nodes uses
 * what the real thing uses (tests/unit/cluster/ledger.c, bench/lab).
 */
#ifndef ASSAY_CLUSTER_LEDGER_H
#define ASSAY_CLUSTER_LEDGER_H

#include "spec/matrix.h"

#include <stdint.h>

#define LEDGER_NONE UINT32_MAX

enum unit_state {
    UNIT_UNWANTED,
    UNIT_MISSING,  /* to be measured */
    UNIT_QUEUED,   /* in a task that was handed out */
    UNIT_DONE,     /* its runs are in the store */
    UNIT_GIVEN_UP, /* tried too often, or no node can measure it */
};

struct ledger_unit {
    uint32_t block, round;
};

struct ledger_task {
    size_t first, count; /* of the batch's units */
    uint32_t needs;      /* of each of its blocks */
};

struct ledger_batch {
    struct ledger_unit *units;
    size_t unit_count, unit_capacity;
    struct ledger_task *tasks;
    size_t task_count, task_capacity;
};

struct ledger {
    uint32_t *cells;    /* of the matrix, block by block */
    uint32_t *starts;   /* of the blocks; one more at the end */
    uint32_t *block_of; /* per cell of the matrix; LEDGER_NONE for one that is not kept */
    uint32_t *needs;    /* per block: what its cells need of a node, a bit for each */
    uint32_t *kinds;    /* the different needs that there are */
    size_t block_count, cell_count, kind_count, kind_capacity;
    uint8_t *states; /* round * block_count + block */
    uint8_t *tries;
    uint64_t round_count; /* that there is room for */
    size_t missing, queued, done, given_up;
    size_t runs_wanted, runs_done; /* cells of units */
};

struct ledger_spec {
    const struct matrix *matrix;
    const bool *kept;
    const bool *together; /* per factor: its values stay on one node; NULL: the baseline's do, or
                             all where there is no baseline */
    /* What a cell needs of a node, a bit for each thing; NULL: nothing. */
    uint32_t (*needs_of)(void *context, size_t cell);
    void *context;
};

void ledger_init(struct ledger *l, const struct ledger_spec *spec);
void ledger_done(struct ledger *l);

static inline size_t ledger_block_size(const struct ledger *l, uint32_t block)
{
    return l->starts[block + 1] - l->starts[block];
}

/* The unit is to be measured, unless that is so already or it was. */
void ledger_want(struct ledger *l, uint32_t block, uint64_t round);
/* Its runs are in the store. */
void ledger_finish(struct ledger *l, struct ledger_unit unit);
/* It was handed out and comes back unmeasured.  failed counts against tries_most: after so many it
 * is given up, and false returned. */
bool ledger_give_back(struct ledger *l, struct ledger_unit unit, bool failed, unsigned tries_most);
void ledger_give_up(struct ledger *l, struct ledger_unit unit);
enum unit_state ledger_state(const struct ledger *l, struct ledger_unit unit);

struct ledger_limits {
    size_t node_count;     /* a guess at how many nodes take part */
    size_t tasks_per_node; /* as many as that, unless there are fewer units; 0 for the default */
    size_t tasks_most;     /* in all; 0 for no limit */
    uint64_t seed;
};

enum { LEDGER_TASKS_PER_NODE = 8 };

/* Hands out everything that is missing.  The units of a task need the same; within a round the
 * blocks come in an order that follows from the seed. */
void ledger_take(struct ledger *l, const struct ledger_limits *limits, struct ledger_batch *batch);
void ledger_batch_done(struct ledger_batch *batch);

#endif

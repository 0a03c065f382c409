/* SPDX-License-Identifier: MIT */
/*
 * A cluster that only exists in memory: nodes of different speeds that take tasks as they become
 * free, some of which die in the middle of one.  The plan is the real one (cluster/ledger.h).
 */
#ifndef ASSAY_TESTS_LIB_CLUSTER_SIM_H
#define ASSAY_TESTS_LIB_CLUSTER_SIM_H

#include "cluster/ledger.h"

struct cluster_sim {
    size_t node_count;
    size_t deaths;         /* nodes that die at some time, each in the middle of a task */
    size_t tasks_per_node; /* 0 for the ledger's own */
    uint64_t seed;
    /* What came of it. */
    size_t batches, tasks, lost_tasks;
    size_t nodes_used;        /* that finished a unit */
    size_t longest, shortest; /* units that a node which lived finished */
    size_t twice;             /* units that were finished twice: must be 0 */
};

/* Until nothing is missing. */
void cluster_sim_run(struct cluster_sim *sim, struct ledger *l);

#endif

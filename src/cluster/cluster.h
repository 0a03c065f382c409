/* SPDX-License-Identifier: MIT */
/*
 * An experiment on many nodes: what is missing is planned (ledger.h), handed to the scheduler as
 * arrays of tasks (slurm.h), and what tasks measured is brought into the store as they end.  A task
 * that fails or is lost with its node is planned again for other nodes, up to a limit of tries.
 *
 *   session_open(&s, &options, &err);   with options.elsewhere
 *   cluster_open(&c, s, &cluster_options, &err);
 *   cluster_run(&c, &err);
 *   cluster_close(&c);
 *   session_close(s);
 *
 * The caller has called process_signals_catch: a signal cancels what is queued and what runs; the
 * units that are complete are kept, and the experiment can be resumed.
 */
#ifndef ASSAY_CLUSTER_CLUSTER_H
#define ASSAY_CLUSTER_CLUSTER_H

#include "cluster/ledger.h"
#include "cluster/slurm.h"
#include "session/cluster_files.h"
#include "session/cluster_node.h"
#include "session/session.h"

struct cluster;

struct cluster_options {
    struct slurm_settings slurm;
    const char *spool; /* the folder that all nodes see; NULL: .assay/cluster beside the spec */
    const char
        *together;  /* factors whose values stay on one node besides the baseline's, or "all" */
    uint64_t tries; /* of a unit, 0 for 3 */
    char *const *command; /* that runs a task: `assay run …` without --task; ends with NULL */
    /* Called often; may be NULL. */
    void (*on_progress)(const struct cluster *c, void *context);
    void *context;
};

enum task_state { TASK_WAITS, TASK_RUNS, TASK_GONE, TASK_UNDELIVERED, TASK_OVER };

/* A task that was submitted. */
struct cluster_task {
    struct ledger_task units; /* of its array's batch */
    enum task_state state;
    bool seen;            /* by the last look at the queue */
    uint64_t gone_ns;     /* since when it is not there any more */
    enum slurm_state end; /* as the scheduler says, once it is gone */
    char word[24], node[64], limit[24];
    uint64_t ended_ns; /* when it was seen that it was stopped; the scheduler may say why */
    bool failed;       /* of one that is undelivered: its missing units count as tried */
};

struct cluster_array {
    uint64_t job;
    unsigned number; /* of its folder */
    struct ledger_unit *units;
    struct cluster_task *tasks;
    size_t task_count, open_count;
    const bool *only;    /* its tasks record profiles of these cells; NULL: they measure */
    uint64_t history_ns; /* when the accounting was last asked about it; 0 for never */
};

/* A node that is not to be used, for some of the work or for all. */
struct cluster_exclusion {
    char node[64];
    bool failed;    /* a task failed or was lost there; else it cannot measure something: */
    uint32_t needs; /* … that needs these */
    bool soft;      /* … the spec's counters; one may do without */
};

struct cluster {
    struct session *s;
    const struct cluster_options *options;
    struct ledger ledger;
    struct needs needs;
    char *spool, *folder; /* folder: spool/UUID */
    struct cluster_array *arrays;
    size_t array_count, array_capacity;
    unsigned next_number;
    struct cluster_exclusion *exclusions;
    size_t exclusion_count, exclusion_capacity;
    bool told_unusable; /* that no node can run anything */
    bool waived;        /* no node has the counters: they are left out */
    size_t array_most, node_count;
    uint64_t started_ns, asked_ns, touched_ns, queue_failed_ns;
    size_t runs_before; /* that were there at the start */
    uint64_t spent_before_ns;
    bool out_of_reach; /* the store */
    bool failed;       /* a unit was tried too often */
    int signal;        /* that ended it; 0 for none */
    bool cancelled;    /* somebody cancelled a task with scancel: all is to stop */
    /* For progress. */
    size_t tasks_waiting, tasks_running, tasks_over, nodes_running;
    size_t lost_count; /* tasks */
    bool has_profiles; /* builds that the spool folder has are needed to read them */
    uint64_t eta_ns;   /* 0 when not known */
    char last_failure[TASK_WORDS_BYTES + 256];
};

int cluster_open(struct cluster *c, struct session *s, const struct cluster_options *options,
                 struct error *err);
/* Until all is measured, given up or stopped; s->end says how it ended.  -ENOTCONN: all was
 * measured, but the store cannot be reached; the files wait in the folder. */
int cluster_run(struct cluster *c, struct error *err);
void cluster_close(struct cluster *c);

#endif

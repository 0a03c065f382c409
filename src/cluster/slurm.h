/* SPDX-License-Identifier: MIT */
/*
 * Slurm, through the programs that everybody has who uses it: sbatch, squeue, scancel, sinfo and,
 * where accounting is on, sacct; else scontrol, which remembers ended jobs for some minutes.
 */
#ifndef ASSAY_CLUSTER_SLURM_H
#define ASSAY_CLUSTER_SLURM_H

#include "base/error.h"
#include "base/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum slurm_state {
    SLURM_WAITS,
    SLURM_RUNS,
    SLURM_COMPLETED,
    SLURM_FAILED, /* it ended otherwise: the command failed, or was out of time or memory */
    SLURM_CANCELLED,
    SLURM_NODE_FAILED,
};

/* What the scheduler says of one task of an array. */
struct slurm_task {
    uint64_t job, index; /* of the array, and within it */
    enum slurm_state state;
    char word[24];  /* as Slurm calls it: "NODE_FAIL" */
    char node[64];  /* "" while it waits; the first one of several */
    char limit[24]; /* of its time, as Slurm writes it: "1-00:00:00"; "" when not known */
};

struct slurm_tasks {
    struct slurm_task *items;
    size_t count, capacity;
};

void slurm_tasks_done(struct slurm_tasks *tasks);

struct slurm_node {
    char name[64], state[64];
    char reason[96]; /* that the administrator or Slurm gave, "" for none */
    bool usable;     /* not down, drained or the like */
};

struct slurm_nodes {
    struct slurm_node *items;
    size_t count, capacity;
};

void slurm_nodes_done(struct slurm_nodes *nodes);

/* What to submit besides the tasks. */
struct slurm_settings {
    const char *partition, *constraint, *args; /* NULL for none */
    bool exclusive;
    uint64_t throttle; /* tasks that run at the same time; 0 for no limit */
    size_t host_count; /* nodes of each task; 0 for one */
};

struct slurm_job {
    const char *name, *script, *output; /* output with %a for the task */
    const char *exclude;                /* nodes, separated by commas; NULL for none */
    size_t task_count;
};

/* One array with the tasks 0 to task_count - 1. */
int slurm_submit(const struct slurm_settings *settings, const struct slurm_job *job,
                 uint64_t *ret_job, struct error *err);
/* Whatever is known of the arrays' tasks; one that ended long ago may be missing. */
int slurm_queue(const uint64_t *jobs, size_t job_count, struct slurm_tasks *ret_tasks,
                struct error *err);
/* How tasks ended that the queue does not show any more; some may stay unknown. */
void slurm_history(const uint64_t *jobs, size_t job_count, struct slurm_tasks *ret_tasks);
/* Ends the arrays' tasks, those that wait and those that run. */
int slurm_cancel(const uint64_t *jobs, size_t job_count, struct error *err);
/* Whether there is a cluster that answers; says what to do when not. */
int slurm_check(const struct slurm_settings *settings, struct error *err);
/* Of the partition, NULL for the default one. */
int slurm_list_nodes(const struct slurm_settings *settings, struct slurm_nodes *ret_nodes,
                     struct error *err);
/* How many tasks an array may have. */
size_t slurm_array_most(void);

/* ---- what the programs print; for tests ---- */

/* Lines "array|index|STATE|node|limit" as squeue is told to print them, with the separator '|';
 * sacct's "array_index|STATE by 0|node|limit" with '_'. */
void slurm_parse_tasks(const char *text, char separator, struct slurm_tasks *tasks);
/* scontrol show job -o. */
void slurm_parse_jobs(const char *text, struct slurm_tasks *tasks);
/* Lines "name|state|reason". */
void slurm_parse_nodes(const char *text, struct slurm_nodes *nodes);

#endif

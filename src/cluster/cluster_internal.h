/* SPDX-License-Identifier: MIT */
/* What the cluster's files share. */
#ifndef ASSAY_CLUSTER_CLUSTER_INTERNAL_H
#define ASSAY_CLUSTER_CLUSTER_INTERNAL_H

#include "cluster/cluster.h"
#include "session/session_internal.h"

/* "FOLDER/N/T" with a suffix; the caller frees it. */
char *cluster_task_path(const struct cluster *c, const struct cluster_array *a, size_t task,
                        const char *suffix);

/* Hands everything that is missing to the scheduler. */
int cluster_submit(struct cluster *c, struct error *err);

/* The batch's tasks as arrays.  Where `only` is not NULL, they record profiles of those cells. */
int cluster_submit_batch(struct cluster *c, const struct slurm_nodes *nodes,
                         const struct ledger_batch *batch, const bool *only, struct error *err);

/* One look after another until `is_over` says so.  -EINTR for a signal. */
int cluster_watch(struct cluster *c, bool (*is_over)(const struct cluster *), struct error *err);

/* Records the profiles that the spec asks for, on the nodes; what cannot be had is a note.  -EINTR
 * for a signal. */
int cluster_profile(struct cluster *c, struct error *err);

/* A task's node is not used any more. */
void cluster_exclude(struct cluster *c, const struct cluster_exclusion *exclusion);

/* Brings a task's complete units into the store.  -ENOTCONN when it is out of reach. */
int cluster_deliver(struct cluster *c, const char *spool_path, struct error *err);
/* Everything that earlier processes left in the folder; their arrays are cancelled. */
int cluster_deliver_left(struct cluster *c, struct error *err);
/* What the nodes are, as documents of the experiment. */
int cluster_keep_nodes(struct cluster *c, struct error *err);
/* Removes the folder with all that is in it. */
void cluster_remove_folder(struct cluster *c);

/* One look at the queue and at the files.  Sets c's counts. */
int cluster_look(struct cluster *c, struct error *err);
/* Cancels what is queued and what runs, waits a moment, and keeps what is complete. */
void cluster_cancel(struct cluster *c);

#endif

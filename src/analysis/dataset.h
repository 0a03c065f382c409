/* SPDX-License-Identifier: MIT */
/*
 * One experiment in memory, for analysis: its factors, cells, runs and, for each metric and cell,
 * the column of values in the order of the rounds.  Runs that failed have no values in it.
 */
#ifndef ASSAY_ANALYSIS_DATASET_H
#define ASSAY_ANALYSIS_DATASET_H

#include "stats/comparison.h"
#include "store/store.h"

struct dataset_cell {
    int64_t id;
    char *label, *command, *build_id; /* build_id is "" for none */
    char **levels;                    /* one per factor */
    size_t run_count, failed_count, disturbed_count;
};

struct dataset_run {
    int64_t id;
    size_t cell;
    uint64_t round, attempt, position, started_at_ns, wall_ns;
    int status;
    bool disturbed;
    uint32_t node; /* that it ran on; DATASET_NO_NODE where that was not noted */
};

#define DATASET_NO_NODE UINT32_MAX

/* A node of a cluster that took part. */
struct dataset_node {
    char *name;
    char *text; /* what it is, as node_json of cluster_node.h wrote it; NULL when not known */
};

struct dataset_column {
    const double *values;
    const uint32_t *rounds; /* ascending */
    const uint32_t *nodes;  /* of each value; NULL when all are of one machine */
    size_t count;
};

struct dataset {
    struct store_experiment experiment;
    size_t *by_label; /* the cells in the order of their labels; NULL: not from a store */
    char *subject;    /* of the commit; NULL when it is not known */
    char *emulated;   /* what results from emulated machines are to be called; NULL for others */
    char **factors;
    size_t factor_count;
    struct dataset_cell *cells;
    size_t cell_count, cell_capacity;
    struct dataset_run *runs; /* in the order in which they were kept */
    size_t run_count, run_capacity;
    struct store_metric *metrics; /* in the order of their first use */
    size_t metric_count, metric_capacity;
    struct dataset_node *nodes; /* none where all ran on one machine */
    size_t node_count, node_capacity;
    double *values;
    uint32_t *rounds;
    uint32_t *value_nodes; /* NULL without nodes */
    size_t *starts;        /* of column metric * cell_count + cell; one more at the end */
};

int dataset_load(struct dataset *d, struct store *store, int64_t experiment, struct error *err);
void dataset_done(struct dataset *d);

/* Sets `emulated` by the document that describes the experiment's environment. */
void dataset_take_environment(struct dataset *d, const char *json);
/* Makes by_label, once the cells are there; dataset_load does it. */
void dataset_index(struct dataset *d);

struct dataset_column dataset_column(const struct dataset *d, size_t metric, size_t cell);
/* The values of the rounds that both columns have, where both were measured on the same node; room
 * for as many as the shorter holds.  Returns how many. */
size_t dataset_pair(const struct dataset_column *a, const struct dataset_column *b, double *first,
                    double *second);
/* Two cells by a metric, round by round; false when nothing can be said (or a cell is none). */
bool dataset_compare(const struct dataset *d, size_t metric, size_t base, size_t new,
                     struct comparison *ret_comparison);
double dataset_median(const struct dataset *d, size_t metric, size_t cell);

#define DATASET_NONE ((size_t)-1)
/* The metric of that name, DATASET_NONE when there is none. */
size_t dataset_metric(const struct dataset *d, const char *name);
size_t dataset_factor(const struct dataset *d, const char *name);
/* The cell of that label, DATASET_NONE when there is none. */
size_t dataset_cell(const struct dataset *d, const char *label);

/* The first of the spec's headline metrics (in the order given there) that was measured, or wall
 * time; *position says which to start from and moves on.  DATASET_NONE at the end. */
size_t dataset_headline(const struct dataset *d, size_t *position);

#endif

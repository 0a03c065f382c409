/* SPDX-License-Identifier: MIT */
/*
 * The table of values: one experiment in memory, with its factors, cells, runs and, for each metric
 * and cell, the column of values in the order of the rounds.  Runs that failed have no values in
 * it.  `assay run`, `assay ab`, reports and files of other tools all become one; whatever is judged
 * or shown is taken from here.
 *
 *   dataset_load(&d, store, id, &err);       from the store, or by hand:
 *
 *   dataset_start(&d, "name");
 *   dataset_add_cell(&d, …); dataset_add_metric(&d, …);
 *   dataset_put(&d, metric, cell, round, value); …
 *   dataset_settle(&d);                      now there are columns; more may be put and settled
 */
#ifndef ASSAY_ANALYSIS_DATASET_H
#define ASSAY_ANALYSIS_DATASET_H

#include "stats/median.h"
#include "stats/summary.h"
#include "store/store.h"

struct dataset_cell {
    int64_t id;
    char *label, *command, *build_id; /* build_id is "" for none */
    char **levels;                    /* one per factor */
    size_t run_count, failed_count, disturbed_count;
    size_t ignored_count; /* failed, and count nevertheless (ab --ignore-failure) */
    int last_status;      /* of the last run that failed, as wait4 gives it */
    char *last_words;     /* the end of what that run said; NULL for nothing */
    size_t baseline;      /* the cell that it is compared with; DATASET_NONE for none */
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

/* A value before it stands in its column. */
struct dataset_value {
    double value;
    uint32_t metric, cell, round;
    uint32_t node; /* counts only where the dataset has nodes */
    bool is_bound; /* the true value may be lower */
};

struct dataset_column {
    const double *values;
    const uint32_t *rounds; /* ascending */
    const uint32_t *nodes;  /* of each value; NULL when all are of one machine */
    size_t count;
};

struct dataset {
    struct store_experiment experiment;
    size_t *by_label;  /* the cells in the order of their labels; NULL: not from a store */
    char *subject;     /* of the commit; NULL when it is not known */
    char *emulated;    /* what results from emulated machines are to be called; NULL for others */
    char *environment; /* the document that describes it; NULL when it is not known */
    bool has_layouts;  /* each round has a memory layout of its own, the same for all cells */
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
    uint32_t *value_nodes;       /* NULL without nodes */
    size_t *starts;              /* of column metric * cell_count + cell; one more at the end */
    bool *bounds;                /* per column: some value is only a bound; NULL for none */
    struct dataset_value *loose; /* that were put, in the order of their rounds for each column */
    size_t loose_count, loose_capacity, settled_count, settled_columns;
    bool apart;           /* cells did not run in common rounds: they are samples taken apart */
    double round_seconds; /* what one more round would take; 0 when not known */
    double chosen_from;   /* baselines were chosen by what the values say: from how many comparisons
                             each of those that are left was chosen; 0 where nothing was chosen */
};

int dataset_load(struct dataset *d, struct store *store, int64_t experiment, struct error *err);
void dataset_done(struct dataset *d);

/* One by hand: with a name, without cells, metrics and values. */
void dataset_start(struct dataset *d, const char *name);
void dataset_add_factor(struct dataset *d, const char *name);
/* The new cell's number; it gets a level of each factor from `levels`. */
size_t dataset_add_cell(struct dataset *d, const char *label, const char *command,
                        const char *const *levels);
/* The number of the metric of that name and unit, added when it is new. */
size_t dataset_add_metric(struct dataset *d, const char *name, const char *unit, const char *kind,
                          struct metric_facts facts);
/* A value that is not finite is left out. */
void dataset_put(struct dataset *d, size_t metric, size_t cell, uint32_t round, double value);
/* Makes the columns of all values that were put. */
void dataset_settle(struct dataset *d);
/* Makes the columns from values in any order. */
void dataset_deal(struct dataset *d, const struct dataset_value *values, size_t count);
/* Finds each cell's baseline by the experiment's text "factor=value …"; dataset_load does it. */
void dataset_find_baselines(struct dataset *d);
/* Says that a column holds bounds only. */
void dataset_mark_bound(struct dataset *d, size_t column);
bool dataset_is_bound(const struct dataset *d, size_t metric, size_t cell);

/* Sets `emulated` by the document that describes the experiment's environment. */
void dataset_take_environment(struct dataset *d, const char *json);
/* Makes by_label, once the cells are there; dataset_load does it. */
void dataset_index(struct dataset *d);

struct dataset_column dataset_column(const struct dataset *d, size_t metric, size_t cell);
/* What one cell shows by itself, with an interval that holds also where the rounds were stopped
 * because of it: false when it has no values of the metric. */
bool dataset_figures(const struct dataset *d, size_t metric, size_t cell,
                     struct summary *ret_summary, struct median_interval *ret_median);
double dataset_median(const struct dataset *d, size_t metric, size_t cell);

#define DATASET_NONE ((size_t)-1)
/* The metric of that name, DATASET_NONE when there is none. */
size_t dataset_metric(const struct dataset *d, const char *name);
size_t dataset_factor(const struct dataset *d, const char *name);
/* "a=1 b=2" or "a=1,b=2", as cells are labelled, as wanted levels, one per factor; NULL where a
 * factor is not named.  A value may have blanks and commas of its own.  Cuts the text. */
int dataset_parse_levels(const struct dataset *d, char *text, const char **levels,
                         struct error *err);
/* The cell that is as `like` but for one factor; DATASET_NONE when there is none. */
size_t dataset_cell_with(const struct dataset *d, size_t like, size_t factor, const char *level);
/* A factor's value as the number that a person means: "64", "1.5", "64k", "2M", "100%". */
bool dataset_level_number(const char *text, double *ret_number);
/* Whether a factor of this name is a number of threads, processes and the like. */
bool dataset_counts_workers(const char *factor);
/* Whether the values of the factor may compete: the benchmarks of another tool's file do different
 * things, unless they are commands. */
bool dataset_has_rivals(const struct dataset *d, size_t factor);
/* The cell of that label, DATASET_NONE when there is none. */
size_t dataset_cell(const struct dataset *d, const char *label);

/* The first of the spec's headline metrics (in the order given there) that was measured, or wall
 * time; *position says which to start from and moves on.  DATASET_NONE at the end. */
size_t dataset_headline(const struct dataset *d, size_t *position);

#endif

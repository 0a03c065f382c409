/* SPDX-License-Identifier: MIT */
/*
 * What is in the store, row by row, for analysis and reports: nothing is held in memory but the row
 * that was read last, so that a data set of any size can be gone through.
 *
 * A function that asks (store_cells) fills a cursor; the one that belongs to it (store_next_cell)
 * returns 1 with a row, 0 at the end, or a negative errno.  Texts and bytes of a row last until the
 * next one is read.  store_cursor_done ends it, also early.
 */
#ifndef ASSAY_STORE_STORE_ROWS_H
#define ASSAY_STORE_STORE_ROWS_H

#include "store/store.h"

struct store_cursor {
    struct sql_rows *rows;
};

void store_cursor_done(struct store_cursor *cursor);

/* Rows of one text each. */
int store_next_text(struct store_cursor *cursor, const char **ret_text, struct error *err);

/* ---- one experiment ---- */

/* The names of its factors, in their order: texts. */
int store_factors(struct store *store, int64_t experiment, struct store_cursor *cursor,
                  struct error *err);

struct store_cell_row {
    int64_t id;
    const char *label, *command, *build_id; /* build_id is "" for none */
};

/* Its cells, in their order; ids ascend. */
int store_cells(struct store *store, int64_t experiment, struct store_cursor *cursor,
                struct error *err);
int store_next_cell(struct store_cursor *cursor, struct store_cell_row *ret_row, struct error *err);

struct store_level_row {
    int64_t cell, factor; /* the factor's place, from 0 on */
    const char *value;
};

int store_levels(struct store *store, int64_t experiment, struct store_cursor *cursor,
                 struct error *err);
int store_next_level(struct store_cursor *cursor, struct store_level_row *ret_row,
                     struct error *err);

struct store_run_row {
    int64_t id, cell;
    uint64_t round, attempt, position, started_at_ns, wall_ns;
    int status;
    bool disturbed;
    const char *layout;
};

/* Its runs, in the order in which they were kept. */
int store_runs(struct store *store, int64_t experiment, struct store_cursor *cursor,
               struct error *err);
int store_next_run(struct store_cursor *cursor, struct store_run_row *ret_row, struct error *err);

struct store_failure_row {
    int64_t cell;
    int status;
    const char *output; /* the end of what the command said; "" for nothing */
};

/* Of each cell the last run that failed. */
int store_failures(struct store *store, int64_t experiment, struct store_cursor *cursor,
                   struct error *err);
int store_next_failure(struct store_cursor *cursor, struct store_failure_row *ret_row,
                       struct error *err);

struct store_value_row {
    int64_t run, metric;
    double value;
};

/* The values of its runs that did not fail, in the order of the runs, then of the metrics. */
int store_values(struct store *store, int64_t experiment, struct store_cursor *cursor,
                 struct error *err);
int store_next_value(struct store_cursor *cursor, struct store_value_row *ret_row,
                     struct error *err);

/* The documents whose kinds begin so, in the order of their kinds: texts. */
int store_documents(struct store *store, int64_t experiment, const char *prefix,
                    struct store_cursor *cursor, struct error *err);

/* ---- one run ---- */

struct store_series_row {
    const char *metric, *unit;
    const void *ticks, *points; /* uint64_t and double, not aligned; NULL for none */
    size_t tick_count, point_count;
    bool is_total; /* the readings only grow */
};

/* What monitors read during the run. */
int store_series(struct store *store, int64_t run, struct store_cursor *cursor, struct error *err);
int store_next_series(struct store_cursor *cursor, struct store_series_row *ret_row,
                      struct error *err);

/* ---- metrics ---- */

/* The metric of that id; the caller frees its texts. */
int store_read_metric(struct store *store, int64_t id, struct store_metric *ret_metric,
                      struct error *err);
/* The names of all, each once: texts. */
int store_metric_names(struct store *store, struct store_cursor *cursor, struct error *err);

/* ---- many experiments ---- */

/* The newest experiment that has a factor of that name; 0 for none. */
int store_newest_with_factor(struct store *store, const char *factor, int64_t *ret_id,
                             struct error *err);
/* How long a run of the newest experiment of that name took on average; 0 when it has none. */
int store_mean_run_ns(struct store *store, const char *name, uint64_t *ret_ns, struct error *err);

struct store_history_row {
    int64_t experiment;
    const char *name, *cell, *unit, *commit, *subject;
    const char *branch, *machine_class; /* "" when not known */
    bool quick;
    enum metric_better better;
    uint64_t started_at_ns;
    double value;
};

/* A metric's values in the runs of all experiments, or of those of one name, in cells whose labels
 * hold a text: by name, whether it was quick, cell, unit, branch, class of machines, and time. */
int store_history(struct store *store, const char *metric, const char *cell, const char *name,
                  struct store_cursor *cursor, struct error *err);
int store_next_history(struct store_cursor *cursor, struct store_history_row *ret_row,
                       struct error *err);

/* What was said of a change of a history; see the table `remark` in docs/FORMATS.md. */
struct store_remark {
    const char *kind; /* "accepted", "told", "searched" */
    const char *name, *cell, *metric, *unit, *branch, *machine_class;
    uint64_t at_ns;
    int direction;
    const char *note;
};

/* Adds it; *ret_added is false when it is there already. */
int store_add_remark(struct store *store, const struct store_remark *remark, bool *ret_added,
                     struct error *err);
int store_remove_remark(struct store *store, const struct store_remark *remark, struct error *err);
/* All remarks about a metric. */
int store_remarks(struct store *store, const char *metric, struct store_cursor *cursor,
                  struct error *err);
int store_next_remark(struct store_cursor *cursor, struct store_remark *ret_remark,
                      struct error *err);

/* ---- a page at a time ---- */

/* The experiments whose names or questions hold the text, or whose commits begin with it, newest
 * first: `most` of them after the first `skip`, and how many there are in all. */
int store_search(struct store *store, const char *text, uint64_t skip, uint64_t most,
                 struct store_list *ret_list, uint64_t *ret_count, struct error *err);

struct store_run_line {
    int64_t id;
    const char *cell;
    uint64_t round, started_at_ns, wall_ns;
    int status;
    bool disturbed;
    double value;     /* of the metric that was asked for; NAN for none */
    const char *unit; /* of that metric; NULL for none */
};

/* `most` runs of the experiment, from the one of that id on, with their values of a metric. */
int store_run_lines(struct store *store, int64_t experiment, const char *metric, int64_t first,
                    uint64_t most, struct store_cursor *cursor, struct error *err);
int store_next_run_line(struct store_cursor *cursor, struct store_run_line *ret_line,
                        struct error *err);

/* The ids of its runs, ascending, from one on. */
int store_run_ids(struct store *store, int64_t experiment, int64_t from,
                  struct store_cursor *cursor, struct error *err);
int store_next_id(struct store_cursor *cursor, int64_t *ret_id, struct error *err);
/* From the start of a run to the start of the next, on average of the newest ones; NAN for none. */
int store_pace(struct store *store, int64_t experiment, uint64_t newest, double *ret_seconds,
               struct error *err);

/* A number that is another one when somebody else has written since; -1 of a server, which has
 * none. */
int64_t store_version(struct store *store);

#endif

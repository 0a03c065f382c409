/* SPDX-License-Identifier: MIT */
/*
 * What a gate found: new against base, and base against itself as a control, judged by the one
 * judge.  A row whose control shifts as the change does is void; clear regressions stay.  Against a
 * stored result there is no control, and the rounds are not the same.
 */
#ifndef ASSAY_BISECT_GATE_H
#define ASSAY_BISECT_GATE_H

#include "analysis/judge.h"
#include "base/strings.h"
#include "exact/functions.h"

/* What must not get worse. */
enum gate_by { GATE_BY_BOTH, GATE_BY_MEDIAN, GATE_BY_MEAN, GATE_BY_P95 }; /* both: median, mean */

/* One metric in one cell. */
struct gate_row {
    char *metric, *unit, *cell;
    struct judge_row change, control; /* new against base, and base against itself */
    bool has_control;
    enum metric_better better;
    double limit; /* of its regression */
    enum gate_result result;
    bool control_failed; /* its own shift is comparable with the change: the row is void */
    bool set_aside;      /* shown only: CPU time was judged in its place */
    char *command;
    char **factors, **levels; /* of the cell, without the side */
    size_t factor_count;
    double *values[2];                   /* of base and new, as they were compared */
    struct exact_functions functions[2]; /* of base and new, where they are counted exactly */
    size_t value_counts[2];
};

/* Runs of one side of one cell that failed; they are left out. */
struct gate_failure {
    char *cell; /* "n=20 side=new" */
    size_t failed_count, run_count;
};

struct gate_result_set {
    /* Asked: */
    double max_regression;
    double max_time_regression; /* where time is judged besides exact counts; else 0 */
    enum gate_by by;
    bool has_better;
    enum metric_better better; /* of all metrics, where it was given */
    bool cpu_stands_in;        /* where wall time cannot tell (run/straight.h) */
    /* Who is compared: */
    const char *base_ref, *base_commit, *new_commit;
    bool is_dirty;             /* the working tree has changes that are not committed */
    const char *stored;        /* what the new one is compared with instead of a commit, or NULL */
    const char *stored_commit; /* that it was measured at; "" when not known */
    uint64_t stored_at_ns;     /* when; 0 when not known */
    char *stored_command, *new_command; /* where they differ; else NULL */
    /* Found: */
    uint64_t started_at_ns; /* when it was measured */
    struct gate_row *rows;
    size_t count, capacity;
    enum gate_result result; /* the worst of all */
    bool control_failed;     /* of some row, and nothing else is clear */
    bool by_cpu;             /* wall time could not tell, CPU time could */
    struct gate_failure *failures;
    size_t failure_count, failure_capacity;
    bool has_failed; /* some of these were not allowed to */
    int failed_code; /* because an emulated machine failed: its exit code; else 0 */
};

/* d has a factor "side" with base, control and new.  Headline metrics of which one way is better.
 */
int gate_judge(struct gate_result_set *set, const struct dataset *d, struct error *err);
/* The same for a new one that was measured alone: d has a side "new" only.  `stored` may have
 * sides, of which "new" counts. */
int gate_judge_stored(struct gate_result_set *set, const struct dataset *stored,
                      const struct dataset *d, struct error *err);
/* Notes whose runs failed; is_machines tells the exit codes of emulated machines that failed (NULL:
 * there are none).  Due before one of the two. */
void gate_note_failures(struct gate_result_set *set, const struct dataset *d,
                        bool (*is_machines)(int exit_code));
void gate_result_set_done(struct gate_result_set *set);
/* Adds what a second gate of the same two trees found; `from` is empty afterwards.  The result is
 * the worse of both: each of them has to pass. */
void gate_require_too(struct gate_result_set *set, struct gate_result_set *from);

/* For the two of them: a row that is to be judged; false when there is nothing to compare. */
bool gate_add_row(struct gate_result_set *set, const struct judge_sides *sides,
                  size_t control_cell);
/* CPU time as a metric, where it was not kept by itself; DATASET_NONE when it is not known. */
size_t gate_add_cpu(struct dataset *d);
/* Judges all rows as a family. */
void gate_judge_rows(struct gate_result_set *set);
/* The figure that the judge is asked for; both: the centre, and the tails with it. */
enum judge_by gate_judge_by(enum gate_by by);
/* Whether a gate has seen enough of two sides whose centres are known well enough.  Slow runs are
 * rare: unless the centre alone is a regression, it takes 100 rounds, and more where the mean looks
 * worse than allowed.  `better`: METRIC_NEITHER where that is not known. */
bool gate_may_stop(const struct gate_result_set *set, const struct judge_sides *sides,
                   const struct comparison *centre, enum metric_better better);
/* Which way is better for a metric. */
enum metric_better gate_better(const struct gate_result_set *set, const struct store_metric *m);

#endif

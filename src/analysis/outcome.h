/* SPDX-License-Identifier: MIT */
/*
 * What `assay ab` and `assay bisect` show: each command's median and spread, and how it compares
 * with the reference of its group.  The commands are the cells of a table of values, references
 * their baselines; the verdicts are the judge's.
 */
#ifndef ASSAY_ANALYSIS_OUTCOME_H
#define ASSAY_ANALYSIS_OUTCOME_H

#include "analysis/compare.h"
#include "counters/event.h"
#include "run/rounds.h"

/* Who took part, whether it was run here or read from a file. */
struct participant {
    char *name;
    char *command;
    char *parameters; /* "size=64, n=2", or "" */
    size_t group;
    bool is_reference; /* the first of its group unless told otherwise */
    char *variant; /* what it is called with any parameters, where several are compared with each
                    * other; else NULL: the name */
};

/* Makes the participants the cells of a new table: the factors are "command" and the parameters. */
void outcome_start(struct dataset *d, const struct participant *participants, size_t count);
/* Adds what was measured: wall, user, sys, their sum cpu, and peak RSS, then the supported events
 * (or what stands in for them where the kernel refuses all), then what the programs printed.  With
 * `only`, that metric alone. */
void outcome_add_rounds(struct dataset *d, const struct rounds *r, const struct event_list *events,
                        const char *only);
/* The headline, and with it the programs' own figures.  To be called when all metrics are there. */
void outcome_set_headline(struct dataset *d, const char *headline);
/* What a report says of it: a name, the headline, the seed of the order, and when it began. */
void outcome_describe(struct dataset *d, const char *name, const char *headline, uint64_t seed,
                      uint64_t started_at_ns);
/* The runs themselves, for a report; after outcome_describe. */
void outcome_add_runs(struct dataset *d, const struct rounds *r);

struct outcome_cell {
    struct summary summary;         /* count 0: there are no values, and nothing below is set */
    struct median_interval median;  /* of this command alone, at 95 % or what its count gives */
    const struct judge_row *judged; /* against the reference; NULL when it is not compared */
};

struct outcome {
    const struct dataset *data;
    const struct participant *participants;
    struct compare compare;
    struct outcome_cell *cells; /* [metric × participant count + participant] */
    size_t headline;            /* of the metrics; DATASET_NONE when there is none of that name */
};

/* The table and the participants must outlive the outcome, which must not move. */
void outcome_judge(struct outcome *o, const struct dataset *d,
                   const struct participant *participants, const char *headline);
void outcome_done(struct outcome *o);

static inline const struct outcome_cell *outcome_cell(const struct outcome *o, size_t metric,
                                                      size_t participant)
{
    return &o->cells[metric * o->data->cell_count + participant];
}

/* The reference of the participant's group. */
size_t outcome_reference(const struct outcome *o, size_t participant);

/* The widest of the half widths of the metric's intervals, relative: of all comparisons, or of the
 * median where there is nothing to compare.  NAN when it cannot be told. */
double outcome_half_width(const struct outcome *o, size_t metric);

/* Whether every comparison (every centre where there is nothing to compare) is so well known that
 * measuring may stop.  Only of a table of an adaptive experiment. */
bool outcome_is_precise(const struct outcome *o, size_t metric, double half_width);

/* Whether some participant differs by this metric. */
bool outcome_differs(const struct outcome *o, size_t metric);
/* Whether every comparison of this metric says that there is no difference. */
bool outcome_is_same(const struct outcome *o, size_t metric);

#endif

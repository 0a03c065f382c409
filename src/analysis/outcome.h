/* SPDX-License-Identifier: MIT */
/*
 * What measured values say: each contestant's median and spread, its comparison with the reference
 * of its group, and the verdict.  One metric is the headline, and its verdicts stand by themselves.
 * The others are many, and some of many always look different by chance: their differences stand
 * only after Benjamini & Hochberg's correction.
 */
#ifndef ASSAY_ANALYSIS_OUTCOME_H
#define ASSAY_ANALYSIS_OUTCOME_H

#include "analysis/series.h"
#include "stats/median.h"
#include "stats/summary.h"
#include "stats/verdict.h"

/* Who took part, whether it was run here or read from a file. */
struct participant {
    char *name;
    char *command;
    char *parameters; /* "size=64", or "" */
    size_t group;
    bool is_reference; /* the first of its group unless told otherwise */
};

struct outcome_cell {
    struct summary summary;        /* count 0: there are no values, and nothing below is set */
    struct median_interval median; /* of this contestant alone, at 95 % or what its count gives */
    bool is_compared;              /* with the group's reference: the rest is set */
    struct comparison comparison;
    struct verdict verdict;
    double adjusted_p; /* over all metrics but the headline; the headline's own p */
    bool stands;       /* a difference that is still one after the adjustment */
};

struct outcome {
    const struct series_set *set;
    const struct participant *participants;
    struct outcome_cell *cells; /* [series × participant count + participant] */
    size_t headline;            /* of the series; SIZE_MAX when the set does not have it */
    double round_seconds;       /* what one more round costs, 0 when unknown */
};

/* The set and the participants must outlive the outcome. */
int outcome_judge(struct outcome *o, const struct series_set *set,
                  const struct participant *participants, const char *headline,
                  double round_seconds, struct error *err);
void outcome_done(struct outcome *o);

static inline const struct outcome_cell *outcome_cell(const struct outcome *o, size_t series,
                                                      size_t participant)
{
    return &o->cells[series * o->set->contestant_count + participant];
}

/* The reference of the participant's group. */
size_t outcome_reference(const struct outcome *o, size_t participant);

/* The widest of the half widths of the series' intervals, relative: of all comparisons, or of the
 * median where there is nothing to compare.  NAN when it cannot be told. */
double outcome_half_width(const struct outcome *o, size_t series);

/* Whether some participant's difference stands in this series. */
bool outcome_differs(const struct outcome *o, size_t series);
/* Whether every comparison of this series says that there is no difference. */
bool outcome_is_same(const struct outcome *o, size_t series);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Where is the centre of these values, and how sure is that?  Two exact rank tests are at hand: the
 * sign test, which holds for noise of any shape, and Wilcoxon's signed-rank test, which wants a
 * third fewer values where the noise is symmetric and not too wild.  Which of the two speaks is
 * decided by the shape of the values alone, before anything is asked about the centre.
 */
#ifndef ASSAY_STATS_LOCATION_H
#define ASSAY_STATS_LOCATION_H

#include "stats/signedrank.h"

#include <stdbool.h>

struct location {
    const double *sorted; /* the caller's */
    size_t count;
    bool is_ranked;   /* by signed ranks, else by signs */
    double centre;    /* the median of the values, or of the means of all pairs */
    double alpha_min; /* no exact interval of fewer misses than this */
    struct signed_rank test;
};

/* `sorted` ascends, holds at least one value and outlives the location; `scratch` holds 2 count. */
void location_init(struct location *location, const double *sorted, size_t count, double *scratch);

/* The interval that misses the centre with probability alpha, alpha_min where that is more. */
void location_interval(const struct location *location, double alpha, double *ret_low,
                       double *ret_high);

/* The two-sided p of "the centre is `value`": at most alpha exactly when the value lies outside of
 * the interval for alpha. */
double location_p(const struct location *location, double value);

#endif

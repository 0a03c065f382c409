/* SPDX-License-Identifier: MIT */
/*
 * Wilcoxon's signed-rank test of "the values lie evenly around a centre": the centre (Hodges &
 * Lehmann's: the median of the means of all pairs), the interval of centres that the test does not
 * reject, and the p-value.  It takes the noise to be symmetric, and is then nearly as sharp as
 * Student's t for a bell curve and sharper for most others; it is exact up to 60 values.
 */
#ifndef ASSAY_STATS_SIGNEDRANK_H
#define ASSAY_STATS_SIGNEDRANK_H

#include <stddef.h>

enum { SIGNED_RANK_EXACT_MAX = 60 };

/* How the smaller of the two rank sums is spread when there is no difference. */
struct signed_rank {
    double mean, stddev;
    const double *tail; /* P(sum <= k), counted out; NULL where there are too many values */
};

void signed_rank_init(struct signed_rank *test, size_t count);

/* Two-sided p of a smaller rank sum k, interpolated between whole sums. */
double signed_rank_p(const struct signed_rank *test, double k);

/* The largest k, interpolated, whose p is at most alpha; -1 where even 0 is not that rare. */
double signed_rank_critical(const struct signed_rank *test, double alpha);

/* The median of the means of all pairs, and where the interval of all centres with p above alpha
 * ends.  Where the test cannot be that sure of so few values, the ends are the least and the
 * largest value.  `sorted` ascends and holds at least one value. */
void signed_rank_locate(const struct signed_rank *test, const double *sorted, size_t count,
                        double alpha, double *ret_centre, double *ret_low, double *ret_high);

/* The p of one centre: at most alpha exactly when it lies outside of the interval for alpha. */
double signed_rank_p_of(const struct signed_rank *test, const double *sorted, size_t count,
                        double centre, double value);

#endif

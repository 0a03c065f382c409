/* SPDX-License-Identifier: MIT */
/*
 * The median of a sample with an interval that holds for noise of any shape: its ends are order
 * statistics, so only the signs of the deviations count, and the level is exact (binomial).
 */
#ifndef ASSAY_STATS_MEDIAN_H
#define ASSAY_STATS_MEDIAN_H

#include <stddef.h>

struct median_interval {
    double median, low, high;
    double level; /* `level`, or less where the whole range of the values is less sure than that */
};

/* `sorted` ascends and holds at least one value. */
void median_interval(const double *sorted, size_t count, double level,
                     struct median_interval *ret_interval);

/* The two-sided p of "the median is `value`": the exact sign test, interpolated as the interval is,
 * so that p is below 1 - level exactly when the value lies outside of the interval. */
double median_p(const double *sorted, size_t count, double value);

#endif

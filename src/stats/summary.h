/* SPDX-License-Identifier: MIT */
/* One sample in a few numbers. */
#ifndef ASSAY_STATS_SUMMARY_H
#define ASSAY_STATS_SUMMARY_H

#include "base/error.h"

#include <stddef.h>

struct summary {
    size_t count;
    double min, max, mean;
    double stddev; /* of the sample (n - 1); NaN below two values */
    double median, q1, q3;
    double mad; /* median distance from the median, times 1.4826: the stddev of normal noise */
};

/* Fills every field; with no values all but count are NaN.  Fails with -EINVAL on a value that is
 * not finite; the message says which. */
int stats_summarise(const double *values, size_t count, struct summary *ret_summary,
                    struct error *err);

/* The value below which a share q of the sorted values lies, 0 <= q <= 1: type 7 of Hyndman & Fan
 * 1996, as R and NumPy do by default.  NaN with no values. */
double stats_quantile(const double *sorted, size_t count, double q);

/* The median of values in any order; `scratch` holds count doubles.  NaN with no values. */
double stats_median(const double *values, size_t count, double *scratch);

/* 0, or -EINVAL with a message that names the first value that is not finite. */
int stats_check_finite(const double *values, size_t count, const char *what, struct error *err);

/* Mean and spread of values as they come, without keeping them (Welford 1962).  Start with {0}. */
struct running {
    size_t count;
    double mean, squares, min, max;
};

void running_add(struct running *running, double value);
/* Of the sample (n - 1); NaN below two values. */
double running_stddev(const struct running *running);

#endif

/* SPDX-License-Identifier: MIT */
/* Several benchmarks, one figure: the geometric mean of their ratios with an interval. */
#ifndef ASSAY_STATS_SUITE_H
#define ASSAY_STATS_SUITE_H

#include "stats/comparison.h"

struct suite {
    double estimate, low, high; /* the geometric mean of new / base; NaN where there is none */
    double level, p;
    size_t count;           /* benchmarks that entered it */
    size_t left_out;        /* on the scale of differences, or without an interval */
    size_t larger, smaller; /* of those, whose own intervals exclude 1 */
};

/* The rows are different benchmarks, each with the interval it is shown with.  The errors of paired
 * rows are taken to be independent of each other, those of unpaired ones to go together. */
void stats_suite(const struct comparison *rows, size_t count, double level,
                 struct suite *ret_suite);

#endif

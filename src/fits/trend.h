/* SPDX-License-Identifier: MIT */
/*
 * Does the ratio move from round to round?  A program that gets slower and slower relative to the
 * other has no single ratio, and an interval for one says little; but where every round says
 * "slower", that much is sure.  Mann (1945) and Kendall's test finds the trend, Theil and Sen's
 * slope (1968) its size; both look at order only.
 */
#ifndef ASSAY_FITS_TREND_H
#define ASSAY_FITS_TREND_H

#include "base/error.h"
#include "stats/comparison.h"

struct trend {
    enum comparison_scale scale;
    double p;           /* of "no trend" */
    bool found;         /* p below 1 %, and the movement is as large as the noise around it */
    double first, last; /* the ratio (difference) at the first and the last round, on the line */
    size_t above, below, count; /* rounds in which the new value is larger, or smaller */
    double least, most;         /* the smallest and the largest ratio (difference) of any round */
    double agree_p;             /* of "either is as likely" by the sign test */
    bool all_agree;             /* every round says the same, and there are at least 8 */
};

/* Rounds in the order in which they ran.  Fails as stats_compare_paired. */
int stats_trend(const double *base_values, const double *new_values, size_t round_count,
                struct trend *ret_trend, struct error *err);

#endif

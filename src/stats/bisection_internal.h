/* SPDX-License-Identifier: MIT */
/* What the files of the search share. */
#ifndef ASSAY_STATS_BISECTION_INTERNAL_H
#define ASSAY_STATS_BISECTION_INTERNAL_H

#include "stats/bisection.h"

/* A comparison as a relative change: logarithms of ratios, or differences as a share of the base's
 * median (of one where that is zero). */
struct relative {
    double estimate, low, high;
};

struct relative comparison_shift(const struct comparison *c);

/* Looks at the step: sets its outcome and comparisons, or the round of the next look.  `expected`
 * is what was known of hi to lo before; NULL for nothing. */
void bisection_judge(struct bisection_step *step, const struct bisection_options *o,
                     const struct comparison *expected);

#endif

/* SPDX-License-Identifier: MIT */
/* What the files of the search share. */
#ifndef ASSAY_BISECT_BISECTION_INTERNAL_H
#define ASSAY_BISECT_BISECTION_INTERNAL_H

#include "bisect/bisection.h"

/* A comparison as a relative change: logarithms of ratios, or differences as a share of the base's
 * median (of one where that is zero). */
struct relative {
    double estimate, low, high;
};

struct relative comparison_shift(const struct comparison *c);

/* Logarithms of likelihood ratios, after the rounds of a step with a candidate. */
struct split_weights {
    double is_hi;   /* that mid is as hi, to that it is as lo */
    double differs; /* that hi and lo are apart by the shift, to that they are alike */
};

/* shift is what is known of hi to lo, as comparison_shift gives it; not zero. */
struct split_weights bisection_weigh(const struct bisection_step *step, double shift);

/* What was known of hi to lo before a step. */
struct expectation {
    double shift;  /* as comparison_shift gives it */
    double weight; /* one over its variance, but for a factor */
};

/* What one comparison says of the shift. */
struct expectation expectation_from(const struct comparison *c);
/* With one more comparison, unless that speaks of something else: a stretch that does not differ
 * shall not make the search look for smaller and smaller changes. */
struct expectation expectation_join(struct expectation a, const struct comparison *more);

/* Looks at the step: sets its outcome and comparisons, or the round of the next look.  NULL where
 * nothing is known before. */
void bisection_judge(struct bisection_step *step, const struct bisection_options *o,
                     const struct expectation *expected);

#endif

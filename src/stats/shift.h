/* SPDX-License-Identifier: MIT */
/* The shift between two samples: the median of their differences, the interval that Mann &
 * Whitney's test leaves around it, and the p-value. */
#ifndef ASSAY_STATS_SHIFT_H
#define ASSAY_STATS_SHIFT_H

#include "numbers/pairsums.h"
#include "stats/ranksum.h"

#include <stdbool.h>

struct shift {
    double estimate, low, high;
    double level; /* what the interval achieves: `level`, or less where there are too few values */
    double p;     /* of "the centre is 0" */
    bool is_beyond; /* 0 lies beyond all differences, stretched: no p by ranks is smaller */
};

/* `sums` are the differences; `scratch` as in pair_sums_select. */
double shift_centre(const struct pair_sums *sums, double *scratch, size_t scratch_count);

/* Ends are moved away from the centre by the factor `widening`, 1 or more, and the p-value is taken
 * on the same stretched scale: it is below 1 - level exactly when 0 lies outside of the interval.
 */
void shift_interval(const struct pair_sums *sums, double centre, double level, double widening,
                    double *scratch, size_t scratch_count, struct shift *ret_shift);

#endif

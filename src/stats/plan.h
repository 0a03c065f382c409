/* SPDX-License-Identifier: MIT */
/* How much more measuring is needed, told from what was measured so far. */
#ifndef ASSAY_STATS_PLAN_H
#define ASSAY_STATS_PLAN_H

#include "stats/comparison.h"

/* Half the width of the interval: relative (0.01 = 1 %) on the scale of ratios, else absolute.
 * NaN where there is no interval. */
double plan_half_width(const struct comparison *comparison);

/* Whether measuring may stop because half the width is at most `half_width`, with what
 * stats_compare_paired_stopped will add to it, from 8 rounds on.  To be asked of ordinary
 * comparisons. */
bool plan_narrow_enough(const struct comparison *comparison, double half_width);

/*
 * How many rounds (paired) or values on each side (unpaired) there have to be in all, those that
 * are there included, until half the width of the interval is at most `half_width`.  At least the
 * number for a 95 % interval; infinity where nothing can be told yet.
 */
double plan_rounds_for_width(const struct comparison *comparison, double half_width);

/* How many there have to be in all so that a true change of `change` (0.02 = 2 %) is found with
 * probability `power` (0.9). */
double plan_rounds_for_change(const struct comparison *comparison, double change, double power);

#endif

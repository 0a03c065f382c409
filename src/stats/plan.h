/* SPDX-License-Identifier: MIT */
/* How much more measuring is needed, told from what was measured so far. */
#ifndef ASSAY_STATS_PLAN_H
#define ASSAY_STATS_PLAN_H

#include "stats/comparison.h"

/* Half the width of the interval: relative (0.01 = 1 %) on the scale of ratios, else absolute.
 * NaN where there is no interval. */
double plan_half_width(const struct comparison *comparison);

enum { PLAN_STOP_ROUNDS_MIN = 20 };

/* Whether measuring may stop because half the width is at most `half_width` (relative: of the
 * base's median on the scale of differences), from 20 rounds on: fewer cannot show whether rounds
 * depend on each other.  Rounds that are all alike need no more than an interval needs.  Only of
 * stats_compare_paired_running. */
bool plan_may_stop(const struct comparison *running, double half_width);

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

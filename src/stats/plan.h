/* SPDX-License-Identifier: MIT */
/* How much more measuring is needed, told from what was measured so far. */
#ifndef ASSAY_STATS_PLAN_H
#define ASSAY_STATS_PLAN_H

#include "stats/comparison.h"

/* Half the width of the interval: relative (0.01 = 1 %) on the scale of ratios, else absolute.
 * NaN where there is no interval. */
double plan_half_width(const struct comparison *comparison);

enum {
    PLAN_STOP_ROUNDS_MIN = 20,
    /* Where slow runs count, which are rare: of a program that is slow in one run of ten, this many
     * rounds show some slow runs for certain, and enough of them to tell in 99 of 100 cases. */
    PLAN_TAILS_ROUNDS_MIN = 100,
};

/*
 * Figures other than the centre (means, quantiles) have no interval that holds whenever one looks.
 * They are looked at after 100, 150, 225, … rounds, and once more where the rounds end.  Half of
 * the error is divided among the looks (the k-th of them gets 1/(k (k+1))), the other half is for
 * the end, so that all intervals hold together, whatever decides which look is the last.
 */
bool plan_is_look(size_t round_count);
/* The level of the interval after this many rounds, for one of `level` in the end. */
double plan_look_level(double level, size_t round_count);

/* Whether measuring may stop because half the width is at most `half_width` (relative: of the
 * base's median on the scale of differences), from 20 rounds on: fewer cannot show whether rounds
 * depend on each other.  Rounds that are all alike need no more than an interval needs.  Only of
 * comparisons of running rounds (stats_compared_paired). */
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

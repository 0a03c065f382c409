/* SPDX-License-Identifier: MIT */
/*
 * Values of a clock that ticks: whole multiples of one step, with many ties.  Where the step is not
 * small beside the noise, a median can only be a tick (or half of one), and a difference of a
 * quarter of a tick is shown as none or as a half.  So each value is taken for an unknown one
 * within half a tick: equal values are spread evenly over the tick, in an order drawn at random,
 * which is the median of grouped data.  What noise much smaller than a tick hides is known by its
 * bound only.
 */
#ifndef ASSAY_NUMBERS_TICKS_H
#define ASSAY_NUMBERS_TICKS_H

#include <stddef.h>
#include <stdint.h>

/* The step of both samples, 0 for values that are no ticks: where one side is always the same,
 * where few values are equal, or where the step is a large part of a value. */
double ticks_find(const double *base_values, size_t base_count, const double *new_values,
                  size_t new_count);

/* Spreads equal values over the tick around them, in an order that follows from the salt: another
 * one for each side, so that the parts of a tick do not cancel within a round. */
void ticks_spread(double *values, size_t count, double tick, uint64_t salt);

/* How far the centre of the spread values may be from the true one, because the noise seldom
 * crosses from one tick to the next. */
double ticks_hidden(double *values, size_t count, double tick);

#endif

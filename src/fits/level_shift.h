/* SPDX-License-Identifier: MIT */
/*
 * Does a series shift its level once, and stay there, although each value resembles the one before
 * it?  The likelihood ratio of a shift in an autoregressive series (Tsay 1988), over all places of
 * the shift, judged by series made of the same innovations in another order.
 */
#ifndef ASSAY_FITS_LEVEL_SHIFT_H
#define ASSAY_FITS_LEVEL_SHIFT_H

#include "numbers/random.h"

#include <stdbool.h>
#include <stddef.h>

enum { LEVEL_SHIFT_SIDE_MIN = 4 }; /* values on each side of a shift */

struct level_shift {
    size_t index; /* the first value of the new level */
    double p;     /* how often chance shows as much */
};

/* The clearest shift in finite values[0..count), if chance shows as much in at most `chance` of the
 * cases; else false, and ret_shift is untouched. */
bool level_shift_find(const double *values, size_t count, double chance, struct rng *rng,
                      struct level_shift *ret_shift);

/* Where in values[0..count) the level shifts, given that it does.  There is room on both sides. */
size_t level_shift_place(const double *values, size_t count);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * At what size does one variant overtake the other?  Two programs measured at several sizes; the
 * answer is a size with an interval, not the first row of a table whose sign has changed.
 */
#ifndef ASSAY_FITS_CROSSOVER_H
#define ASSAY_FITS_CROSSOVER_H

#include "base/error.h"
#include "stats/comparison.h"

#include <stdbool.h>
#include <stddef.h>

/* What was found at one size: the comparison of new with base there, on the scale of ratios. */
struct crossover_point {
    double size;
    struct comparison comparison;
};

struct crossover {
    double size, low, high; /* where the ratio passes 1, with its 95 % interval */
    bool rises;             /* the ratio new / base goes from below 1 to above 1 */
};

enum crossover_state {
    CROSSOVER_FOUND,
    CROSSOVER_NEW_LOWER,   /* new is lower wherever there is a difference */
    CROSSOVER_NEW_HIGHER,  /* new is higher wherever there is a difference */
    CROSSOVER_CANNOT_TELL, /* no size shows a difference */
};

struct crossovers {
    enum crossover_state state;
    struct crossover *items; /* by size; more than one where they overtake each other repeatedly */
    size_t count;
};

/*
 * Looks for crossovers between points in order of size.  A crossover lies between two sizes that
 * show differences of opposite sign, each by itself; sizes between them that show none widen its
 * interval.  Fails with -EINVAL on sizes that are not positive and ascending, and on comparisons
 * without a ratio or an interval.
 */
int crossovers_find(const struct crossover_point *points, size_t count,
                    struct crossovers *ret_crossovers, struct error *err);
void crossovers_done(struct crossovers *crossovers);

#endif

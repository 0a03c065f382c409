/* SPDX-License-Identifier: MIT */
/*
 * Where did the history of a metric change its level?  E-divisive (Matteson & James 2014): the
 * split whose two sides differ most in energy distance, judged by a permutation test, then the same
 * within each side, until nothing is left that chance would not do.  Beside it, in histories that
 * are long enough, the likelihood ratio of a lasting shift (level_shift.h).
 */
#ifndef ASSAY_FITS_CHANGEPOINT_H
#define ASSAY_FITS_CHANGEPOINT_H

#include "base/error.h"
#include "stats/comparison.h"

#include <stddef.h>
#include <stdint.h>

enum {
    CHANGE_POINT_SEGMENT_MIN = 4,   /* values on each side of a change */
    CHANGE_POINT_VALUES_MAX = 2000, /* memory and time grow with the square */
};

struct change_point {
    size_t index;             /* the first value of the new level */
    double p;                 /* of the test that found it */
    struct comparison change; /* the level after it against the level before it */
};

struct change_points {
    struct change_point *points; /* in order of index */
    size_t count;
};

/*
 * Finds the changes in values[0..count), in the order in which they were measured.  `chance` is
 * how often a history without any change may show one (0.05; not below 1/400, which is as far as
 * the permutations go).  Fewer than eight values have none.
 * Fails with -EINVAL on a value that is not finite and -E2BIG on more values than it can take.
 */
int change_points_find(const double *values, size_t count, double chance, uint64_t seed,
                       struct change_points *ret_points, struct error *err);
void change_points_done(struct change_points *points);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Does time grow with n as it is said to?  With t = c f(n)^b, b is 1 where the law f holds.  b is
 * the slope of log t on log f(n), by least squares, with Student's interval: what the law does not
 * explain (caches, constant parts) widens it.
 */
#ifndef ASSAY_FITS_COMPLEXITY_H
#define ASSAY_FITS_COMPLEXITY_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { COMPLEXITY_POINTS_MIN = 3 };

struct complexity {
    double exponent, low, high; /* of the law; for "1", of n, and expected to be 0 */
    bool holds;                 /* the interval has a value within 0.1 of what is expected */
    bool is_certain;            /* and few others: it is no wider than 1; or it does not hold */
    const char *best;           /* the law that leaves the least unexplained */
    size_t count;
};

/* `law` is "1", "log n", "n", "n log n", "n^2" or "n^3".  -EINVAL for another one and for values
 * that are not positive; -ENODATA below three different n. */
int complexity_fit(const double *n, const double *time, size_t count, const char *law,
                   struct complexity *ret, struct error *err);

#endif

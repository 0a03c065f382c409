/* SPDX-License-Identifier: MIT */
/*
 * How much of a difference is the layout's?  Each layout was measured by itself and gives a ratio
 * of new to base.  How much of its variation is noise is told by half of a layout's measurements
 * against the other half, or by measurements in which the layout did not change.
 */
#ifndef ASSAY_FITS_LAYOUT_SPREAD_H
#define ASSAY_FITS_LAYOUT_SPREAD_H

#include <stdbool.h>
#include <stddef.h>

enum { LAYOUTS_MIN = 10, LAYOUTS_MAX = 1000 };

struct layout_spread {
    size_t count;
    double low, high; /* 95 % of the layouts lie between: ratios of new to base */
    double share;     /* of the variation between layouts that is not noise within them, 0 to 1;
                         NAN when it was not looked for */
    bool is_noise;    /* noise alone may explain the variation: the share is not certain at 5 % */
};

/* From the logarithms of each layout's ratio, and of the ratio of its one half to its other.  What
 * is not finite is left out.  False for fewer than LAYOUTS_MIN layouts. */
bool layout_spread(const double *ratios, const double *halves, size_t count,
                   struct layout_spread *ret);
/* From measurements of which each had a layout of its own, and others that all had the same. */
bool layout_spread_still(const double *ratios, size_t count, const double *still,
                         size_t still_count, struct layout_spread *ret);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Many metrics at once: of 500 that did not change, 25 look changed at 5 %.  Benjamini & Hochberg
 * (1995) choose a stricter limit, such that of those called changed at most a share `rate` is
 * expected to be noise.
 */
#ifndef ASSAY_STATS_FDR_H
#define ASSAY_STATS_FDR_H

#include <stddef.h>

/*
 * The adjusted p-value of each test: it counts as a discovery when this is at most the rate (0.05).
 * A p that is NaN (nothing could be tested) stays NaN and is not counted among the tests.
 * ret_adjusted may be p itself.  Returns how many tests there were.
 */
size_t fdr_adjust(const double *p, size_t count, double *ret_adjusted);

#endif

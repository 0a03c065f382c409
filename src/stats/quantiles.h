/* SPDX-License-Identifier: MIT */
/*
 * The ratio of an upper quantile (the 90th percentile and the like) of two programs, without an
 * assumption about shapes: at the right ratio, as many runs of the one as of the other lie above
 * the common quantile.  Paired: only rounds count in which exactly one of the two lies above
 * (McNemar 1947), so that a slow machine, which hits both, counts for neither.  Unpaired: Fisher's
 * exact test of the four counts.
 */
#ifndef ASSAY_STATS_QUANTILES_H
#define ASSAY_STATS_QUANTILES_H

#include "stats/comparison.h"

/* `q` is above 0.5 and below 1.  too_few is set, and the interval NaN, where so few values above
 * the quantile can never be that sure: for 95 % it takes 30 rounds for the 90th percentile, 60 for
 * the 95th, 300 for the 99th.  Positive values only (else too_few).  Fails as stats_compare_paired.
 */
int stats_compare_quantile_paired(const double *base_values, const double *new_values,
                                  size_t round_count, double q, double level,
                                  struct comparison *ret_comparison, struct error *err);
int stats_compare_quantile_unpaired(const double *base_values, size_t base_count,
                                    const double *new_values, size_t new_count, double q,
                                    double level, struct comparison *ret_comparison,
                                    struct error *err);

#endif

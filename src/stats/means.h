/* SPDX-License-Identifier: MIT */
/*
 * The ratio of two means.  The median does not see that one run in ten takes ten times as long;
 * the mean does, and so does whoever pays for the total.  Noise that makes means differ is skewed,
 * so Student's t is corrected for skewness (Hall 1992).  The interval holds what either t,
 * corrected or not, allows: the correction is right for skewed noise and too bold for noise with
 * long tails on both sides, where plain t errs on the safe side.  docs/METHOD.md shows how often it
 * holds.
 */
#ifndef ASSAY_STATS_MEANS_H
#define ASSAY_STATS_MEANS_H

#include "stats/comparison.h"

/*
 * As stats_compare_paired and stats_compare_unpaired, but estimate, low and high are of
 * mean(new) / mean(base); the medians are filled in as there.  On the scale of differences (some
 * value is zero or negative) it is mean(new) - mean(base).  An end that the values leave open (the
 * mean of the base may be zero) is infinite.  At least two values on each side; `too_few` below 8
 * rounds, or 8 values on a side.
 */
int stats_compare_means_paired(const double *base_values, const double *new_values,
                               size_t round_count, double level, struct comparison *ret_comparison,
                               struct error *err);
int stats_compare_means_unpaired(const double *base_values, size_t base_count,
                                 const double *new_values, size_t new_count, double level,
                                 struct comparison *ret_comparison, struct error *err);

/* The p of "both means are equal" by the corrected t alone: sharper where few runs are slow, and
 * meant for alarms at small error rates (tails.h).  After one of the two above said that the values
 * can be compared; 1 where they cannot.  `sure`: the correlation from round to round that is known
 * from elsewhere (dependence.h), 0 for none. */
double stats_means_p_paired(const double *base_values, const double *new_values, size_t round_count,
                            double sure);
double stats_means_p_unpaired(const double *base_values, size_t base_count,
                              const double *new_values, size_t new_count);

#endif

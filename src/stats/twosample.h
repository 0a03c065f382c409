/* SPDX-License-Identifier: MIT */
/*
 * Do two samples come from the same distribution?  Anderson & Darling's distance (as Pettitt 1976
 * has it for two samples) sees differences anywhere, in the tails too; how large it is by chance is
 * found by exchanging the labels, so nothing is assumed about shapes or ties.
 */
#ifndef ASSAY_STATS_TWOSAMPLE_H
#define ASSAY_STATS_TWOSAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* The p of "equal": paired, labels are exchanged within rounds only, so that what hits both runs of
 * a round counts for neither.  Where rounds depend on those before them, `block` neighbouring
 * rounds are exchanged together (1 for none).  Down to 1/2000; the seed decides which exchanges are
 * tried. */
double two_sample_p_paired(const double *base_values, const double *new_values, size_t round_count,
                           size_t block, uint64_t seed);
double two_sample_p_unpaired(const double *base_values, size_t base_count, const double *new_values,
                             size_t new_count, uint64_t seed);

/* The distance itself. */
double two_sample_distance(const double *base_values, size_t base_count, const double *new_values,
                           size_t new_count);

#endif

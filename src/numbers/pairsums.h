/* SPDX-License-Identifier: MIT */
/*
 * The sums of all pairs of two sorted lists, without making them: counting and selecting among
 * n·m sums takes a few passes of n + m steps.  With one list negated these are the differences
 * between two samples, whose median is the Hodges-Lehmann estimate of the shift.
 */
#ifndef ASSAY_NUMBERS_PAIRSUMS_H
#define ASSAY_NUMBERS_PAIRSUMS_H

#include <stddef.h>
#include <stdint.h>

/* Both lists ascend and hold at least one value. */
struct pair_sums {
    const double *rows, *cols;
    size_t row_count, col_count;
};

uint64_t pair_sums_total(const struct pair_sums *sums);

/* How many sums are at or below a value; the largest of them and the smallest above it
 * (-infinity and +infinity where there is none). */
uint64_t pair_sums_count(const struct pair_sums *sums, double value, double *ret_at_or_below,
                         double *ret_above);

/* The sum at a place of the sorted order, place < total.  `scratch` holds scratch_count
 * doubles; the more, the quicker, row_count + col_count is plenty. */
double pair_sums_select(const struct pair_sums *sums, uint64_t place, double *scratch,
                        size_t scratch_count);

#endif

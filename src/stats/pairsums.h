/* SPDX-License-Identifier: MIT */
/*
 * The sums of all pairs of two sorted lists, without making them: counting and selecting among
 * n·m sums takes a few passes of n + m steps.  The Walsh averages of one sample, whose median is
 * the Hodges-Lehmann estimate, and the differences between two samples are of this kind.
 */
#ifndef ASSAY_STATS_PAIRSUMS_H
#define ASSAY_STATS_PAIRSUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Element (row, col) is (rows[row] + cols[col]) * scale.  Both lists ascend. */
struct pair_sums {
    const double *rows, *cols;
    size_t row_count, col_count;
    double scale;
    bool upper; /* only col >= row: rows and cols are the same list */
};

uint64_t pair_sums_total(const struct pair_sums *sums);

/* How many elements are at or below a value; the largest of them and the smallest above it
 * (-infinity and +infinity where there is none).  Either output may be NULL. */
uint64_t pair_sums_count(const struct pair_sums *sums, double value, double *ret_at_or_below,
                         double *ret_above);

/* The element at a place of the sorted order, place < total.  `scratch` holds scratch_count
 * doubles, at least row_count of them; more makes it quicker. */
double pair_sums_select(const struct pair_sums *sums, uint64_t place, double *scratch,
                        size_t scratch_count);

#endif

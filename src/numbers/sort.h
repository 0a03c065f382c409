/* SPDX-License-Identifier: MIT */
/* Order: sorting, selecting and ranking of numbers.  NaN must have been refused before. */
#ifndef ASSAY_NUMBERS_SORT_H
#define ASSAY_NUMBERS_SORT_H

#include <stdbool.h>
#include <stddef.h>

/* Sorts ascending in place, without allocating; never slower than n log n. */
void sort_doubles(double *values, size_t count);

/* The value that would stand at values[index] if they were sorted; reorders them. */
double select_double(double *values, size_t count, size_t index);

/* Ranks 1..count of values[] given the same values sorted; equal values share their mean rank. */
void rank_doubles(const double *values, const double *sorted, size_t count, double *ret_ranks);

#endif

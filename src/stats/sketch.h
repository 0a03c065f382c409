/* SPDX-License-Identifier: MIT */
/* The shape of a sample in one line: "▁▂▇▂▁    ▁". */
#ifndef ASSAY_STATS_SKETCH_H
#define ASSAY_STATS_SKETCH_H

#include <stddef.h>
#include <stdint.h>

enum { SKETCH_BINS_MAX = 64, SKETCH_LEVELS = 8 };

/* How full each of `bin_count` equal bins from low to high is: 0 for empty, else 1 to 8, the
 * fullest 8; values outside count for the bin at the end.  Bins are equal on the scale of logs
 * where low is above 0 and high at least 4 times as much, so that a second mode far out does not
 * squeeze the first into one bin.  All values are finite; at most 64 bins. */
void sketch_levels(const double *values, size_t count, double low, double high, size_t bin_count,
                   uint8_t *ret_levels);

/* The levels as block characters (UTF-8), a blank for empty bins; cut where `out` is full. */
void sketch_text(const uint8_t *levels, size_t bin_count, char *out, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * How Mann & Whitney's U (Wilcoxon's rank sum) is distributed when nothing differs: exact for small
 * samples, counted out; the normal approximation with continuity correction beyond.
 */
#ifndef ASSAY_STATS_RANKSUM_H
#define ASSAY_STATS_RANKSUM_H

#include <stdbool.h>
#include <stddef.h>

enum {
    RANK_SUM_EXACT_MAX = 20, /* values in each of the two samples */
    RANK_SUM_TABLE_SIZE = RANK_SUM_EXACT_MAX * RANK_SUM_EXACT_MAX + 1,
};

/* Placed by the caller (3.2 KiB); set up once for two sample sizes, then asked at will. */
struct rank_sum {
    bool exact;
    double mean, stddev;
    double tail[RANK_SUM_TABLE_SIZE]; /* P(U <= k), where exact */
};

void rank_sum_init(struct rank_sum *sum, size_t count_1, size_t count_2);

/* Two-sided probability 2 P(U <= k), at most 1.  k may lie between two whole numbers (then it is
 * interpolated); below 0 it counts as 0. */
double rank_sum_p(const struct rank_sum *sum, double k);

/* The k with rank_sum_p(k) == alpha, or -1 when even k = 0 is likelier than alpha. */
double rank_sum_critical(const struct rank_sum *sum, double alpha);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * How Wilcoxon's two statistics are distributed when nothing differs: the signed rank of one
 * sample (paired rounds) and the rank sum of two samples (Mann & Whitney's U).  Exact for small
 * samples, counted out; the normal approximation with continuity correction beyond.
 */
#ifndef ASSAY_STATS_RANKTESTS_H
#define ASSAY_STATS_RANKTESTS_H

#include <stdbool.h>
#include <stddef.h>

enum {
    SIGNED_RANK_EXACT_MAX = 40, /* values in the sample */
    RANK_SUM_EXACT_MAX = 20,    /* values in each of the two samples */
    RANK_TABLE_SIZE = SIGNED_RANK_EXACT_MAX * (SIGNED_RANK_EXACT_MAX + 1) / 2 + 1,
};

/*
 * tail[k] = P(statistic <= k) up to the middle of the distribution, which is symmetric about
 * total / 2.  Placed by the caller (6.4 KiB); set up once for a sample, then asked at will.
 */
struct rank_table {
    bool exact;
    double total;        /* the largest value of the statistic */
    double mean, stddev; /* for the normal approximation */
    double tail[RANK_TABLE_SIZE];
};

void rank_table_signed(struct rank_table *table, size_t count);
void rank_table_sum(struct rank_table *table, size_t count_1, size_t count_2);

/* Two-sided probability 2 P(statistic <= k), at most 1.  k may lie between two whole numbers (then
 * it is interpolated), below 0 it counts as 0. */
double rank_table_p(const struct rank_table *table, double k);

/* The k with rank_table_p(k) == alpha, or -1 when even k = 0 is likelier than alpha. */
double rank_table_critical(const struct rank_table *table, double alpha);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * See ranktests.h.  The exact distributions are counted with one pass per value: adding rank i
 * either leaves the signed-rank statistic or raises it by i, so the generating function is the
 * product of (1 + x^i); the rank sum's is a Gaussian binomial coefficient, the product of
 * (1 - x^(m+i)) / (1 - x^i).  All counts stay below 2^53, so doubles hold them exactly.
 */
#include "stats/ranktests.h"
#include "stats/distributions.h"

#include <math.h>
#include <string.h>

/* Counts of each value of the statistic become probabilities of it or less. */
static void accumulate(struct rank_table *t, size_t size)
{
    for (size_t k = 1; k < size; k++)
        t->tail[k] += t->tail[k - 1];
    double all = t->tail[size - 1];
    for (size_t k = 0; k < size; k++)
        t->tail[k] /= all;
}

void rank_table_signed(struct rank_table *t, size_t count)
{
    double n = (double)count;
    t->total = n * (n + 1) / 2;
    t->mean = t->total / 2;
    t->stddev = sqrt(n * (n + 1) * (2 * n + 1) / 24);
    t->exact = count <= SIGNED_RANK_EXACT_MAX;
    if (!t->exact)
        return;
    size_t size = count * (count + 1) / 2 + 1;
    memset(t->tail, 0, size * sizeof(t->tail[0]));
    t->tail[0] = 1;
    for (size_t rank = 1, reached = 0; rank <= count; rank++) {
        reached += rank;
        for (size_t k = reached + 1; k-- > 0;)
            t->tail[k] += k >= rank ? t->tail[k - rank] : 0;
    }
    accumulate(t, size);
}

void rank_table_sum(struct rank_table *t, size_t count_1, size_t count_2)
{
    double m = (double)count_1, n = (double)count_2;
    t->total = m * n;
    t->mean = t->total / 2;
    t->stddev = sqrt(m * n * (m + n + 1) / 12);
    t->exact = count_1 <= RANK_SUM_EXACT_MAX && count_2 <= RANK_SUM_EXACT_MAX;
    if (!t->exact)
        return;
    size_t size = count_1 * count_2 + 1;
    memset(t->tail, 0, size * sizeof(t->tail[0]));
    t->tail[0] = 1;
    for (size_t i = 1; i <= count_2; i++) {
        for (size_t k = size; k-- > count_1 + i;)
            t->tail[k] -= t->tail[k - count_1 - i];
        for (size_t k = i; k < size; k++)
            t->tail[k] += t->tail[k - i];
    }
    accumulate(t, size);
}

double rank_table_p(const struct rank_table *t, double k)
{
    k = fmax(k, 0);
    if (k >= t->mean)
        return 1;
    if (!t->exact)
        return fmin(1, 2 * dist_normal_cdf((k + 0.5 - t->mean) / t->stddev));
    size_t whole = (size_t)k;
    double part = k - (double)whole;
    double tail = t->tail[whole];
    if (part > 0)
        tail += part * (t->tail[whole + 1] - tail);
    return fmin(1, 2 * tail);
}

double rank_table_critical(const struct rank_table *t, double alpha)
{
    if (!t->exact)
        return fmax(0, t->mean - 0.5 + t->stddev * dist_normal_quantile(alpha / 2));
    if (2 * t->tail[0] > alpha)
        return -1;
    size_t k = 0;
    while (2 * t->tail[k + 1] <= alpha)
        k++;
    return (double)k + (alpha / 2 - t->tail[k]) / (t->tail[k + 1] - t->tail[k]);
}

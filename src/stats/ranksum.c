/* SPDX-License-Identifier: MIT */
/*
 * See ranksum.h.  The generating function of U is a Gaussian binomial coefficient, the product of
 * (1 - x^(m+i)) / (1 - x^i) for i = 1 … n.  All counts stay below 2^53 (C(40, 20) is 1.4e11), so
 * doubles hold them exactly.
 */
#include "stats/ranksum.h"
#include "numbers/distributions.h"

#include <math.h>
#include <string.h>

static void count_out(struct rank_sum *s, size_t count_1, size_t count_2)
{
    size_t size = count_1 * count_2 + 1;
    memset(s->tail, 0, sizeof(s->tail));
    s->tail[0] = 1;
    for (size_t i = 1; i <= count_2; i++) {
        for (size_t k = size; k-- > count_1 + i;)
            s->tail[k] -= s->tail[k - count_1 - i];
        for (size_t k = i; k < size; k++)
            s->tail[k] += s->tail[k - i];
    }
    for (size_t k = 1; k < size; k++)
        s->tail[k] += s->tail[k - 1];
    double all = s->tail[size - 1];
    for (size_t k = 0; k < size; k++)
        s->tail[k] /= all;
}

void rank_sum_init(struct rank_sum *s, size_t count_1, size_t count_2)
{
    double m = (double)count_1, n = (double)count_2;
    s->mean = m * n / 2;
    s->stddev = sqrt(m * n * (m + n + 1) / 12);
    s->exact = count_1 <= RANK_SUM_EXACT_MAX && count_2 <= RANK_SUM_EXACT_MAX;
    if (s->exact)
        count_out(s, count_1, count_2);
}

double rank_sum_p(const struct rank_sum *s, double k)
{
    k = fmax(k, 0);
    if (k >= s->mean)
        return 1;
    if (!s->exact)
        return fmin(1, 2 * dist_normal_cdf((k + 0.5 - s->mean) / s->stddev));
    size_t whole = (size_t)k;
    double part = k - (double)whole, tail = s->tail[whole];
    if (part > 0)
        tail += part * (s->tail[whole + 1] - tail);
    return fmin(1, 2 * tail);
}

double rank_sum_critical(const struct rank_sum *s, double alpha)
{
    if (!s->exact) {
        double k = s->mean - 0.5 + s->stddev * dist_normal_quantile(alpha / 2);
        return k < 0 ? -1 : k;
    }
    if (2 * s->tail[0] > alpha)
        return -1;
    size_t k = 0;
    while (2 * s->tail[k + 1] <= alpha)
        k++;
    return (double)k + (alpha / 2 - s->tail[k]) / (s->tail[k + 1] - s->tail[k]);
}

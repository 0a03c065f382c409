/* SPDX-License-Identifier: MIT */
/*
 * See signedrank.h.  The sum of the ranks of the positive values is at most k in as many of the 2^n
 * sign patterns as the product of (1 + x^i), i = 1 … n, has terms up to x^k (Hollander & Wolfe,
 * Nonparametric Statistical Methods, chapter 3).  That sum is the number of means of pairs (i <= j,
 * a value with itself included) above the centre, so the ends of the interval are means of pairs at
 * the critical place from either end.  They are found by counting passes of n steps, without
 * forming all pairs.
 */
#include "stats/signedrank.h"
#include "numbers/distributions.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>

/* The tables of all counts that are counted out, one after the other, made once. */
enum { TABLES_SIZE = 37881 }; /* the sum of n (n + 1) / 2 + 1, n = 0 … SIGNED_RANK_EXACT_MAX */
static double tables[TABLES_SIZE];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

/* Where the table of a count begins: the sum of the sizes of those before it. */
static size_t table_start(size_t count)
{
    return count * (count * count + 5) / 6;
}
static_assert(TABLES_SIZE == (SIGNED_RANK_EXACT_MAX + 1) *
                                 ((SIGNED_RANK_EXACT_MAX + 1) * (SIGNED_RANK_EXACT_MAX + 1) + 5) /
                                 6,
              "one table for each count from 0 on");

/* The shares of one count follow from those of the count before. */
static void count_out(void)
{
    tables[0] = 1;
    for (size_t n = 1; n <= SIGNED_RANK_EXACT_MAX; n++) {
        const double *before = tables + table_start(n - 1);
        double *shares = tables + table_start(n);
        size_t size = n * (n - 1) / 2 + 1;
        for (size_t k = 0; k < size; k++) {
            shares[k] += before[k] / 2;
            shares[k + n] += before[k] / 2;
        }
    }
    for (size_t n = 1; n <= SIGNED_RANK_EXACT_MAX; n++)
        for (size_t k = table_start(n) + 1; k < table_start(n + 1); k++)
            tables[k] += tables[k - 1];
}

void signed_rank_init(struct signed_rank *test, size_t count)
{
    double n = (double)count;
    pthread_once(&tables_once, count_out);
    test->mean = n * (n + 1) / 4;
    test->stddev = sqrt(n * (n + 1) * (2 * n + 1) / 24);
    test->tail = count <= SIGNED_RANK_EXACT_MAX ? tables + table_start(count) : NULL;
}

double signed_rank_p(const struct signed_rank *test, double k)
{
    k = fmax(k, 0);
    if (k >= test->mean)
        return 1;
    if (!test->tail)
        return fmin(1, 2 * dist_normal_cdf((k + 0.5 - test->mean) / test->stddev));
    size_t whole = (size_t)k;
    double part = k - (double)whole, tail = test->tail[whole];
    if (part > 0)
        tail += part * (test->tail[whole + 1] - tail);
    return fmin(1, 2 * tail);
}

double signed_rank_critical(const struct signed_rank *test, double alpha)
{
    if (!test->tail) {
        double k = test->mean - 0.5 + test->stddev * dist_normal_quantile(alpha / 2);
        return k < 0 ? -1 : k;
    }
    if (2 * test->tail[0] > alpha)
        return -1;
    size_t k = 0;
    while (2 * test->tail[k + 1] <= alpha)
        k++;
    return (double)k + (alpha / 2 - test->tail[k]) / (test->tail[k + 1] - test->tail[k]);
}

/* How many sums of pairs, i <= j, are at or below a value; the largest of these, and the smallest
 * of the others. */
static double count_sums(const double *sorted, size_t count, double value, double *ret_at_or_below,
                         double *ret_above)
{
    double below = -INFINITY, above = INFINITY;
    uint64_t sums = 0;
    size_t end = count; /* partners [row, end) of this row are at or below the value */
    for (size_t row = 0; row < count; row++) {
        double own = sorted[row];
        while (end > row && own + sorted[end - 1] > value)
            end--;
        if (end < count && own + sorted[end > row ? end : row] < above)
            above = own + sorted[end > row ? end : row];
        if (end <= row)
            break; /* so it is for all further rows */
        if (own + sorted[end - 1] > below)
            below = own + sorted[end - 1];
        sums += end - row;
    }
    *ret_at_or_below = below;
    *ret_above = above;
    return (double)sums;
}

static double last_place(size_t count)
{
    return (double)count * ((double)count + 1) / 2 - 1;
}

/* The sum of a pair at a whole place, counted from 0.  Counts rise smoothly with the value, so a
 * guess by proportion comes near at once; every third one halves the range, whatever the values
 * are. */
static double select_sum(const double *sorted, size_t count, double place)
{
    double low = 2 * sorted[0], high = 2 * sorted[count - 1], below, above;
    double low_count = 0, high_count = last_place(count) + 1;
    for (size_t pass = 0; low < high; pass++) {
        double part = pass % 3 == 2 ? 0.5 : (place + 0.5 - low_count) / (high_count - low_count);
        double middle = low + (high - low) * fmin(fmax(part, 0), 1);
        middle = middle < high ? middle : nextafter(high, low);
        double at_or_below = count_sums(sorted, count, middle, &below, &above);
        if (at_or_below > place) {
            high = below;
            high_count = at_or_below;
        } else {
            low = above;
            low_count = at_or_below;
        }
    }
    return low;
}

/* The mean of a pair at a place that may lie between two. */
static double select_mean(const double *sorted, size_t count, double place)
{
    double whole = floor(place), value = select_sum(sorted, count, whole), below, above;
    if (place > whole && count_sums(sorted, count, value, &below, &above) <= whole + 1)
        value += (place - whole) * (above - value);
    return value / 2;
}

double signed_rank_centre(const double *sorted, size_t count)
{
    return select_mean(sorted, count, last_place(count) / 2);
}

void signed_rank_interval(const struct signed_rank *test, const double *sorted, size_t count,
                          double alpha, double *ret_low, double *ret_high)
{
    double critical = fmax(0, signed_rank_critical(test, alpha));
    *ret_low = select_mean(sorted, count, critical);
    *ret_high = select_mean(sorted, count, last_place(count) - critical);
}

double signed_rank_p_of(const struct signed_rank *test, const double *sorted, size_t count,
                        double centre, double value)
{
    if (value == centre)
        return 1;
    double total = last_place(count) + 1, below, above;
    double at_or_below = count_sums(sorted, count, 2 * value, &below, &above);
    if (at_or_below < 1 || (at_or_below >= total && below < 2 * value))
        return signed_rank_p(test, 0);
    double part = above > below && isfinite(above) ? (2 * value - below) / (above - below) : 0;
    if (value < centre)
        return signed_rank_p(test, at_or_below - 1 + part);
    if (below < 2 * value)
        return signed_rank_p(test, total - at_or_below - part);
    /* Some means equal the value: place them from the upper end, with all that are equal. */
    at_or_below = count_sums(sorted, count, nextafter(2 * value, -INFINITY), &below, &above);
    return signed_rank_p(test, total - 1 - at_or_below);
}

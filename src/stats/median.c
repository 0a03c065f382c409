/* SPDX-License-Identifier: MIT */
/*
 * See median.h.  The interval from the (k+1)th smallest to the (k+1)th largest value misses the
 * median with probability 2 P(X <= k), X binomial(n, 1/2).  Only a few levels can be had in this
 * way, so the ends are interpolated between two neighbouring order statistics as Hettmansperger &
 * Sheather (1986) do, whose rule is nearly exact for noise of any shape.
 */
#include "stats/median.h"
#include "numbers/distributions.h"

#include <math.h>

static double middle(const double *sorted, size_t count)
{
    double lower = sorted[(count - 1) / 2], upper = sorted[count / 2];
    return lower + (upper - lower) / 2;
}

/* The chance that fewer than depth + 1 of the values lie on one given side, taken twice. */
static double miss(size_t depth, size_t count)
{
    return fmin(1, 2 * dist_binomial_cdf(depth, count, 0.5));
}

/* The largest depth whose interval misses with at most alpha; the caller knows that 0 does. */
static size_t depth_for(size_t count, double alpha)
{
    double n = (double)count;
    double guess = n / 2 + dist_normal_quantile(alpha / 2) * sqrt(n) / 2;
    size_t depth = guess > 0 ? (size_t)guess : 0;
    while (depth > 0 && miss(depth, count) > alpha)
        depth--;
    while (miss(depth + 1, count) <= alpha)
        depth++;
    return depth;
}

void median_interval(const double *sorted, size_t count, double level,
                     struct median_interval *ret_interval)
{
    double alpha = 1 - level, n = (double)count, widest = miss(0, count);
    struct median_interval m = {middle(sorted, count), sorted[0], sorted[count - 1], 1 - widest};
    if (widest <= alpha) {
        size_t k = depth_for(count, alpha);
        double outer = miss(k, count), inner = miss(k + 1, count), d = (double)(k + 1);
        double part = (alpha - outer) / (inner - outer);
        double lambda = (n - d) * part / (d + (n - 2 * d) * part);
        m.level = level;
        m.low = sorted[k] + lambda * (sorted[k + 1] - sorted[k]);
        m.high = sorted[count - 1 - k] - lambda * (sorted[count - 1 - k] - sorted[count - 2 - k]);
    }
    *ret_interval = m;
}

/* How many of the sorted values are at or below (or, if strictly, below) a value. */
static size_t count_below(const double *sorted, size_t count, double value, int strictly)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t at = low + (high - low) / 2;
        if (sorted[at] < value || (!strictly && sorted[at] == value))
            low = at + 1;
        else
            high = at;
    }
    return low;
}

double median_p(const double *sorted, size_t count, double value)
{
    double centre = middle(sorted, count), n = (double)count, lambda = 0;
    if (value == centre)
        return 1;
    /* How many values stand on the short side, those equal to `value` with them, and how far it is
     * from the last of these towards the next. */
    size_t side;
    if (value < centre) {
        side = count_below(sorted, count, value, 0);
        if (side > 0)
            lambda = (value - sorted[side - 1]) / (sorted[side] - sorted[side - 1]);
    } else {
        side = count - count_below(sorted, count, value, 1);
        if (side > 0)
            lambda =
                (sorted[count - side] - value) / (sorted[count - side] - sorted[count - side - 1]);
    }
    if (side == 0)
        return miss(0, count);
    double d = (double)side, outer = miss(side - 1, count), inner = miss(side, count);
    double part = lambda * d / (n - d - lambda * (n - 2 * d));
    return outer + part * (inner - outer);
}

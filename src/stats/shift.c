/* SPDX-License-Identifier: MIT */
/*
 * See shift.h.  The interval holds those shifts that the rank-sum test does not reject: its ends
 * are the differences at the critical place from either end (Hodges & Lehmann 1963; Hollander &
 * Wolfe, Nonparametric Statistical Methods).  Between two places the end is interpolated, so that
 * the level is the wanted one and not the next larger of a few.
 */
#include "stats/shift.h"

#include <math.h>

/* The sum at a place between two whole places, counted from 0. */
static double select_between(const struct pair_sums *sums, double place, double *scratch,
                             size_t scratch_count)
{
    uint64_t whole = (uint64_t)place;
    double part = place - (double)whole;
    double value = pair_sums_select(sums, whole, scratch, scratch_count);
    if (part > 0) {
        double below, above;
        bool twice = pair_sums_count(sums, value, &below, &above) > whole + 1;
        value += twice ? 0 : part * (above - value);
    }
    return value;
}

double shift_centre(const struct pair_sums *sums, double *scratch, size_t scratch_count)
{
    double last = (double)pair_sums_total(sums) - 1;
    return select_between(sums, last / 2, scratch, scratch_count);
}

/* p of the hypothesis that the centre is `value`: how far out it stands among the sums.  Sums
 * equal to it count as agreeing with it. */
static double p_of(const struct pair_sums *sums, const struct rank_sum *test, double value,
                   double centre)
{
    if (value == centre)
        return 1;
    double total = (double)pair_sums_total(sums), below, above;
    double count = (double)pair_sums_count(sums, value, &below, &above);
    if (count < 1 || (count >= total && below < value))
        return rank_sum_p(test, 0);
    double part = above > below && isfinite(above) ? (value - below) / (above - below) : 0;
    if (value < centre)
        return rank_sum_p(test, count - 1 + part);
    if (below < value)
        return rank_sum_p(test, total - count - part);
    /* Some sums equal the value: place them from the upper end, with all that are equal. */
    count = (double)pair_sums_count(sums, nextafter(value, -INFINITY), &below, &above);
    return rank_sum_p(test, total - 1 - count);
}

void shift_interval(const struct pair_sums *sums, double centre, double level, double widening,
                    double *scratch, size_t scratch_count, struct shift *ret_shift)
{
    struct rank_sum test;
    rank_sum_init(&test, sums->row_count, sums->col_count);
    double last = (double)pair_sums_total(sums) - 1;
    double critical = rank_sum_critical(&test, 1 - level);
    struct shift s = {.estimate = centre, .level = level};
    if (critical < 0) { /* even the whole range of the differences is less sure than was asked */
        s.level = fmin(level, 1 - rank_sum_p(&test, 0));
        critical = 0;
    }
    double low = select_between(sums, critical, scratch, scratch_count);
    double high = select_between(sums, last - critical, scratch, scratch_count);
    s.low = centre - widening * (centre - low);
    s.high = centre + widening * (high - centre);
    double least = select_between(sums, 0, scratch, scratch_count);
    double most = select_between(sums, last, scratch, scratch_count);
    s.is_beyond =
        centre - widening * (centre - least) > 0 || centre + widening * (most - centre) < 0;
    s.p = p_of(sums, &test, centre - centre / widening, centre);
    *ret_shift = s;
}

/* SPDX-License-Identifier: MIT */
/*
 * Which end is the candidate like?  A sequential test that knows what it looks for.
 *
 * Asking "does the candidate differ from the middle of both ends, surely?" after 10, 15, 23 …
 * rounds wastes what is known by then: that the ends differ, and by how much.  So two hypotheses
 * are weighed, the candidate is as lo or it is as hi, by Wald's ratio of likelihoods, which may be
 * looked at after every round and needs the fewest rounds of all tests with the same errors (Wald
 * & Wolfowitz 1948).
 *
 * Within a round, mid - lo is spread evenly around 0 or around the shift, and mid - hi around minus
 * the shift or 0, whatever the noise of a run is like, because both have the same and the order in
 * a round is drawn.  Both are taken from half of the shift and scored by tanh, which bounds what
 * one run can say; the two hypotheses are then mirror images.  The sum of scores moves by ±mean
 * with a known variance, and its likelihood ratio is 2 · mean · sum / variance (Whitehead 1997, ch.
 * 3).  How soon the score levels off is taken from the data: the width that tells most.
 *
 * The same of hi - lo says whether the ends differ at all: a decision that was wrong earlier shows.
 */
#include "base/memory.h"
#include "bisect/bisection_internal.h"
#include "stats/summary.h"

#include <math.h>

enum { CONTRASTS = 3 };

/* Of a scored contrast no more than this is expected: tanh ends at 1. */
#define MEAN_MOST 0.9

static double score(double value, double width)
{
    return tanh(value / (2 * width));
}

/* Distances within the rounds, mid - lo, mid - hi and hi - lo, in the direction of the shift. */
struct contrasts {
    double *values[CONTRASTS];
    size_t count;
};

static void fill_contrasts(struct contrasts *c, const struct bisection_step *step, double sign,
                           double *scratch)
{
    const double *lo = step->values[0], *hi = step->values[1], *mid = step->values[2];
    bool positive = true;
    for (size_t i = 0; i < c->count; i++)
        positive = positive && lo[i] > 0 && hi[i] > 0 && mid[i] > 0;
    double median = fabs(stats_median(lo, c->count, scratch)), unit = median > 0 ? median : 1;
    for (size_t i = 0; i < c->count; i++) {
        c->values[0][i] = sign * (positive ? log(mid[i] / lo[i]) : (mid[i] - lo[i]) / unit);
        c->values[1][i] = sign * (positive ? log(mid[i] / hi[i]) : (mid[i] - hi[i]) / unit);
        c->values[2][i] = sign * (positive ? log(hi[i] / lo[i]) : (hi[i] - lo[i]) / unit);
    }
}

/* The contrasts' distances from their medians, all together. */
static void fill_residuals(const struct contrasts *c, double *residuals, double *scratch)
{
    for (size_t k = 0; k < CONTRASTS; k++) {
        double centre = stats_median(c->values[k], c->count, scratch);
        for (size_t i = 0; i < c->count; i++)
            residuals[k * c->count + i] = c->values[k][i] - centre;
    }
}

/* How steeply the mean score rises with the shift, for a width; *ret_told is how much a round
 * says. */
static double slope_at(const double *residuals, size_t count, double width, double *ret_told)
{
    double slope = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        double s = score(residuals[i], width);
        slope += (1 - s * s) / (2 * width);
        squares += s * s;
    }
    slope /= (double)count;
    *ret_told = squares > 0 ? slope * slope * (double)count / squares : INFINITY;
    return slope;
}

/* The width that tells most, and its slope. */
static double choose_width(const double *residuals, size_t count, double shift, double *scratch,
                           double *ret_slope)
{
    static const double shares[] = {1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1, 2};
    double *sizes = scratch + count, best = -1, best_width = 0;
    for (size_t i = 0; i < count; i++)
        sizes[i] = fabs(residuals[i]);
    double spread = fmax(stats_median(sizes, count, scratch), shift * 1e-3);
    for (size_t i = 0; i < ARRAY_COUNT(shares); i++) {
        double told, slope = slope_at(residuals, count, shares[i] * spread, &told);
        if (told <= best)
            continue;
        best = told;
        best_width = shares[i] * spread;
        *ret_slope = slope;
    }
    return best_width;
}

static double likelihood_ratio(double mean, double sum, double squares, size_t count)
{
    return squares > 0 ? 2 * mean * sum * (double)count / squares : 0;
}

struct split_weights bisection_weigh(const struct bisection_step *step, double shift)
{
    size_t n = step->round_count;
    CLEANUP(memory_freep) double *room = memory_alloc(12 * n * sizeof(*room));
    struct contrasts c = {{room, room + n, room + 2 * n}, n};
    double *residuals = room + 3 * n, *scratch = room + 6 * n;
    double size = fabs(shift), slope = 0;
    fill_contrasts(&c, step, shift < 0 ? -1 : 1, scratch);
    fill_residuals(&c, residuals, scratch);
    double width = choose_width(residuals, CONTRASTS * n, size, scratch, &slope);
    double mean = fmin(slope * size / 2, MEAN_MOST);
    double side = 0, side_squares = 0, ends = 0, ends_squares = 0;
    for (size_t i = 0; i < n; i++) {
        double u =
            score(c.values[0][i] - size / 2, width) + score(c.values[1][i] + size / 2, width);
        double e = score(c.values[2][i] - size / 2, width);
        side += u;
        side_squares += u * u;
        ends += e;
        ends_squares += e * e;
    }
    return (struct split_weights){likelihood_ratio(2 * mean, side, side_squares, n),
                                  likelihood_ratio(mean, ends, ends_squares, n)};
}

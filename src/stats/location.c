/* SPDX-License-Identifier: MIT */
/*
 * See location.h.  Signed ranks are taken when their interval is not much wider than the sign
 * test's and nothing speaks against symmetry: both centres agree, and values far out lie about
 * equally often on either side.  All of these are even in the values (turning them round changes
 * none of them) while the error of a centre is odd, so choosing in this way hardly disturbs the
 * level; the limits were chosen by simulation (bench/stats-coverage, docs/METHOD.md).
 */
#include "stats/location.h"
#include "numbers/distributions.h"
#include "stats/median.h"
#include "stats/summary.h"

#include <math.h>

static const double reference_alpha = 0.05;
static const double centres_limit = 2.5; /* between both centres, in standard errors */
static const double far_mads = 3;        /* what counts as far out, in scaled MADs */
static const double balance_limit = 2;   /* of the far values, in standard deviations */
static const double balance_count_min = 4;
static const double mad_to_stddev = 1.4826022185056018;

/* Whether the values far out lie on both sides about equally often. */
static bool is_balanced(const double *sorted, size_t count, double median, double *scratch)
{
    double above = 0, below = 0, *distances = scratch + count;
    for (size_t i = 0; i < count; i++)
        distances[i] = fabs(sorted[i] - median);
    double far = far_mads * mad_to_stddev * stats_median(distances, count, scratch);
    for (size_t i = 0; i < count; i++) {
        above += sorted[i] - median > far;
        below += median - sorted[i] > far;
    }
    double all = above + below;
    return all < balance_count_min || fabs(above - below) <= balance_limit * sqrt(all);
}

/* How wide the interval by ranks may be beside that by signs: with few values the latter's width is
 * itself a matter of luck, and following it would cost coverage. */
static double width_limit(size_t count)
{
    return 1.2 + 1 / sqrt((double)count);
}

static bool ranks_fit(const struct location *l, const struct median_interval *m, double *ret_centre,
                      double *scratch)
{
    double low, high, centre;
    signed_rank_locate(&l->test, l->sorted, l->count, reference_alpha, &centre, &low, &high);
    *ret_centre = centre;
    double error = (high - low) / (2 * dist_normal_quantile(1 - reference_alpha / 2));
    return high - low <= width_limit(l->count) * (m->high - m->low) &&
           fabs(centre - m->median) <= centres_limit * error &&
           is_balanced(l->sorted, l->count, m->median, scratch);
}

void location_init(struct location *l, const double *sorted, size_t count, double *scratch)
{
    struct median_interval m;
    median_interval(sorted, count, 1 - reference_alpha, &m);
    l->sorted = sorted;
    l->count = count;
    l->alpha_min = ldexp(1, 1 - (int)(count < 1000 ? count : 1000));
    signed_rank_init(&l->test, count);
    double centre;
    l->is_ranked = ranks_fit(l, &m, &centre, scratch);
    l->centre = l->is_ranked ? centre : m.median;
}

void location_interval(const struct location *l, double alpha, double *ret_low, double *ret_high)
{
    if (l->is_ranked) {
        double centre;
        signed_rank_locate(&l->test, l->sorted, l->count, alpha, &centre, ret_low, ret_high);
        return;
    }
    struct median_interval m;
    median_interval(l->sorted, l->count, 1 - alpha, &m);
    *ret_low = m.low;
    *ret_high = m.high;
}

double location_p(const struct location *l, double value)
{
    return l->is_ranked ? signed_rank_p_of(&l->test, l->sorted, l->count, l->centre, value)
                        : median_p(l->sorted, l->count, value);
}

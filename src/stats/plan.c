/* SPDX-License-Identifier: MIT */
/*
 * See plan.h.  Intervals narrow with the root of the number of rounds.  What chance made of a small
 * sample's widening is left out, because more rounds take it away; a dependence that was found
 * stays.
 */
#include "stats/plan.h"
#include "numbers/distributions.h"

#include <math.h>

/* Half the width on the scale of logs (or of differences). */
static double half_width_of(const struct comparison *c)
{
    return c->scale == COMPARISON_RATIO ? (log(c->high) - log(c->low)) / 2 : (c->high - c->low) / 2;
}

static double count_of(const struct comparison *c)
{
    return (double)(c->base_count < c->new_count ? c->base_count : c->new_count);
}

static double least_of(const struct comparison *c)
{
    return c->paired ? COMPARISON_ROUNDS_MIN : COMPARISON_VALUES_MIN;
}

double plan_half_width(const struct comparison *c)
{
    double half = half_width_of(c);
    return c->scale == COMPARISON_RATIO ? expm1(half) : half;
}

bool plan_may_stop(const struct comparison *c, double half_width)
{
    double wanted =
        c->scale == COMPARISON_RATIO ? log1p(half_width) : half_width * fabs(c->base_median);
    double half = half_width_of(c), least = half == 0 ? least_of(c) : PLAN_STOP_ROUNDS_MIN;
    return c->running && count_of(c) >= least && half <= wanted;
}

/* Which look this is, from 1 on; 0 for none. */
static size_t look_number(size_t round_count)
{
    size_t look = PLAN_TAILS_ROUNDS_MIN, number = 1;
    for (; look < round_count; number++)
        look += look / 2;
    return look == round_count ? number : 0;
}

bool plan_is_look(size_t round_count)
{
    return look_number(round_count) > 0;
}

double plan_look_level(double level, size_t round_count)
{
    double half = (1 - level) / 2, number = (double)look_number(round_count);
    return 1 - (number > 0 ? half / (number * (number + 1)) : half);
}

static double rounds_for(const struct comparison *c, double wanted)
{
    double half = half_width_of(c) / (c->autocorrelated ? 1 : c->widening);
    if (isnan(half) || !(wanted > 0))
        return half == 0 ? least_of(c) : INFINITY;
    double share = half / wanted;
    return fmax(least_of(c), ceil(count_of(c) * share * share));
}

double plan_rounds_for_width(const struct comparison *c, double half_width)
{
    return rounds_for(c, c->scale == COMPARISON_RATIO ? log1p(half_width) : half_width);
}

double plan_rounds_for_change(const struct comparison *c, double change, double power)
{
    double limit = dist_normal_quantile(0.975);
    double size = c->scale == COMPARISON_RATIO ? log1p(change) : change;
    return rounds_for(c, size * limit / (limit + dist_normal_quantile(power)));
}

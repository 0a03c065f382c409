/* SPDX-License-Identifier: MIT */
/* See judge_trend.h. */
#include "analysis/judge_trend.h"
#include "base/memory.h"
#include "fits/trend.h"
#include "stats/dependence.h"

#include <math.h>

/* The new values as they would be if every round were like the one in the middle. */
static double *without_movement(const struct judge_values *v, const struct trend *t)
{
    double *values = memory_alloc(v->new_count * sizeof(*values));
    bool ratio = t->scale == COMPARISON_RATIO;
    double first = ratio ? log(t->first) : t->first, last = ratio ? log(t->last) : t->last;
    double middle = (double)(v->new_count - 1) / 2;
    for (size_t i = 0; i < v->new_count; i++) {
        double moved = (last - first) * ((double)i - middle) / (2 * middle);
        values[i] = ratio ? v->new[i] * exp(-moved) : v->new[i] - moved;
    }
    return values;
}

/* Cheaper than the movement itself, and seldom so where there is nothing. */
static bool all_agree(const struct judge_values *v)
{
    size_t above = 0, below = 0;
    for (size_t i = 0; i < v->new_count && !(above && below); i++) {
        above += v->new[i] > v->base[i];
        below += v->new[i] < v->base[i];
    }
    return !above || !below;
}

/* So many other series tell whether wandering is this row's own. */
enum { OTHERS_MIN = 4 };

/* Where all rows wander, one that goes one way all the time is no movement of its own. */
static bool all_wander(const struct judge_values *v)
{
    return v->family_series >= OTHERS_MIN &&
           dependence_sure(v->family_lag1, v->new_count, v->family_series) > 0;
}

void judge_trend(const struct judge_values *v, double level, struct comparison *comparison)
{
    struct trend t;
    if (!v->paired || !comparison->autocorrelated || comparison_excludes_same(comparison) ||
        all_wander(v) || !all_agree(v) ||
        stats_trend(v->base, v->new, v->base_count, &t, NULL) < 0 || !t.found || !t.all_agree)
        return;
    CLEANUP(memory_freep) double *still = without_movement(v, &t);
    struct judge_values values = *v;
    struct comparison c;
    values.new = still;
    values.family_series = 0; /* the movement was a part of that dependence */
    if (judge_values(&values, level, &c, NULL) < 0 || c.scale != comparison->scale ||
        !comparison_excludes_same(&c))
        return;
    c.new_median = comparison->new_median;
    c.least = comparison->least;
    c.most = comparison->most;
    c.moves = true;
    c.first = t.first;
    c.last = t.last;
    *comparison = c;
}

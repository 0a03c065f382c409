/* SPDX-License-Identifier: MIT */
/* See comparison.h: what both comparisons share. */
#include "stats/comparison.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Turns estimate, low and high from logarithms into ratios. */
static void from_logs(struct comparison *c)
{
    if (c->scale != COMPARISON_RATIO)
        return;
    c->estimate = exp(c->estimate);
    c->low = exp(c->low);
    c->high = exp(c->high);
    c->least = exp(c->least);
    c->most = exp(c->most);
}

/* An interval that includes "no difference" and is wider than this says nothing. */
static const double useless_width = 30;

static bool is_useless(const struct comparison *c)
{
    return c->scale == COMPARISON_RATIO && !comparison_excludes_same(c) &&
           c->high > useless_width * c->low;
}

bool comparison_excludes_same(const struct comparison *c)
{
    double same = c->scale == COMPARISON_RATIO ? 1 : 0;
    return c->low > same || c->high < same;
}

bool comparison_is_tested(const struct comparison *c)
{
    return !c->too_few || (isfinite(c->low) && isfinite(c->high) && c->level > 0.9499);
}

bool comparison_has_interval(const struct comparison *c)
{
    return comparison_is_tested(c) && !(c->too_few && is_useless(c));
}

bool comparison_shows_interval(const struct comparison *c)
{
    return comparison_is_tested(c) && !is_useless(c);
}

bool comparison_differs(const struct comparison *c)
{
    return comparison_has_interval(c) && comparison_excludes_same(c);
}

void compared_at(const struct compared *compared, double level, struct comparison *ret_comparison)
{
    struct comparison c = compared->known;
    compared->at(compared, level, &c);
    from_logs(&c);
    *ret_comparison = c;
}

int compared_ask(struct compared *compared, double level, struct comparison *ret_comparison,
                 struct error *err)
{
    bool in_range = level > 0 && level < 1;
    if (in_range)
        compared_at(compared, level, ret_comparison);
    compared_free(compared);
    return in_range ? 0 : error_set(err, -EINVAL, "the level %g is not between 0 and 1", level);
}

void compared_free(struct compared *compared)
{
    free(compared);
}

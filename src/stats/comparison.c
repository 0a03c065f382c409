/* SPDX-License-Identifier: MIT */
/* See comparison.h: what both comparisons share. */
#include "stats/comparison.h"

#include <math.h>

void comparison_from_logs(struct comparison *c)
{
    if (c->scale != COMPARISON_RATIO)
        return;
    c->estimate = exp(c->estimate);
    c->low = exp(c->low);
    c->high = exp(c->high);
}

bool comparison_excludes_same(const struct comparison *c)
{
    double same = c->scale == COMPARISON_RATIO ? 1 : 0;
    return c->low > same || c->high < same;
}

bool comparison_has_interval(const struct comparison *c)
{
    return !c->too_few || (isfinite(c->low) && isfinite(c->high) && c->level > 0.9499);
}

bool comparison_differs(const struct comparison *c)
{
    return comparison_has_interval(c) && comparison_excludes_same(c);
}

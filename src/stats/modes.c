/* SPDX-License-Identifier: MIT */
/* See modes.h. */
#include "stats/modes.h"

#include <math.h>

static const double factor = 1.5;
static const double strict_alpha = 0.04; /* below what a single row asks for */

double modes_distance(void)
{
    return log(factor);
}

double modes_reserve(size_t rounds, double alpha)
{
    return rounds == 2 || (rounds == 3 && alpha < strict_alpha) ? modes_distance() : 0;
}

double modes_p(size_t rounds, double plain_p, double reserved_p)
{
    if (rounds == 2)
        return reserved_p;
    return rounds == 3 && plain_p < strict_alpha ? fmin(strict_alpha, reserved_p) : plain_p;
}

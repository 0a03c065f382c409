/* SPDX-License-Identifier: MIT */
/* See modes.h. */
#include "stats/modes.h"

#include <math.h>

/* One that takes twice as long now and then is not rare; of a single row of two rounds less is
 * asked, whose verdict says what it assumes. */
static const double factor_of_two = 1.5, factor = 2.1;

/* Modes that are equally frequent show the same pair in all of n rounds in 2/4^n of cases; below a
 * little more than that nothing is certain.  For three rounds that is less than a single row asks
 * for. */
double modes_strict_alpha(size_t rounds)
{
    return 0.04 * pow(0.25, (double)rounds - 3);
}

double modes_distance(size_t rounds)
{
    return log(rounds == 2 ? factor_of_two : factor);
}

double modes_distance_emulated(void)
{
    return log(1.005);
}

double modes_reserve(size_t rounds, double alpha)
{
    return rounds == 2 || (rounds > 2 && alpha < modes_strict_alpha(rounds))
               ? modes_distance(rounds)
               : 0;
}

double modes_p(size_t rounds, double plain_p, double reserved_p)
{
    if (rounds == 2)
        return reserved_p;
    return rounds > 2 && plain_p < modes_strict_alpha(rounds)
               ? fmin(modes_strict_alpha(rounds), reserved_p)
               : plain_p;
}

/* SPDX-License-Identifier: MIT */
/* See normality.h. */
#include "fits/normality.h"

#include <math.h>

#define NORMAL_MOST 9.2 /* of a chi square of two, exceeded in 1 % of the cases */

bool look_normal(const double *values, size_t count)
{
    double n = (double)count, mean = 0, squares = 0, cubes = 0, fourths = 0;
    for (size_t i = 0; i < count; i++)
        mean += values[i] / n;
    for (size_t i = 0; i < count; i++) {
        double distance = values[i] - mean, square = distance * distance;
        squares += square / n;
        cubes += square * distance / n;
        fourths += square * square / n;
    }
    if (count < NORMALITY_VALUES_MIN || !(squares > 0))
        return false;
    double skewness = cubes / pow(squares, 1.5), excess = fourths / (squares * squares) - 3;
    return n / 6 * (skewness * skewness + excess * excess / 4) <= NORMAL_MOST;
}

/* SPDX-License-Identifier: MIT */
/* See dependence.h. */
#include "stats/dependence.h"

#include <math.h>

static double autocorrelation(const double *scores, size_t count, size_t lag)
{
    double mean = 0, square = 0, product = 0;
    for (size_t i = 0; i < count; i++)
        mean += scores[i];
    mean /= (double)count;
    for (size_t i = 0; i < count; i++) {
        double d = scores[i] - mean;
        square += d * d;
        if (i >= lag)
            product += d * (scores[i - lag] - mean);
    }
    return square > 0 ? product / square : 0;
}

void dependence_estimate(const double *scores, size_t count, struct dependence *ret_dependence)
{
    *ret_dependence = (struct dependence){.widening = 1};
    if (count < 5)
        return;
    double n = (double)count, r = autocorrelation(scores, count, 1);
    /* E[r] is about rho - (1 + 3 rho) / n (Kendall 1954). */
    double rho = fmin(0.95, (n * r + 1) / (n - 3));
    ret_dependence->lag1 = rho;
    ret_dependence->found = r > -1 / n + 2.326 / sqrt(n);
    if (rho > 0)
        ret_dependence->widening = sqrt((1 + rho) / (1 - rho));
}

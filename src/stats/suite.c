/* SPDX-License-Identifier: MIT */
/*
 * See suite.h.  Each row's interval gives its standard error on the scale of logs, at the level
 * that the row says.  Errors of paired rows are independent, since what the machine does to both
 * sides alike is not in them: the mean of k logs has the root of the sum of their squares, over k.
 * What befell one of two samples that were taken apart is in the rows of all benchmarks, so their
 * errors are added as if they were one.  Rows of few rounds have intervals that are wider than
 * normal quantiles say, so nothing is too narrow by it.
 */
#include "stats/suite.h"
#include "numbers/distributions.h"

#include <math.h>

static bool is_usable(const struct comparison *c)
{
    return c->scale == COMPARISON_RATIO && c->low > 0 && isfinite(c->high) && c->level > 0 &&
           c->level < 1;
}

void stats_suite(const struct comparison *rows, size_t count, double level, struct suite *ret_suite)
{
    struct suite s = {.estimate = NAN, .low = NAN, .high = NAN, .level = level, .p = 1};
    double sum = 0, variance = 0, together = 0;
    for (size_t i = 0; i < count; i++) {
        const struct comparison *c = &rows[i];
        if (!is_usable(c)) {
            s.left_out++;
            continue;
        }
        double error = log(c->high / c->low) / (2 * dist_normal_quantile((1 + c->level) / 2));
        sum += log(c->estimate);
        if (c->paired)
            variance += error * error;
        else
            together += error;
        s.count++;
        s.larger += c->low > 1;
        s.smaller += c->high < 1;
    }
    if (s.count) {
        double k = (double)s.count, mean = sum / k, error = hypot(sqrt(variance), together) / k;
        double half = error * dist_normal_quantile((1 + level) / 2);
        s.estimate = exp(mean);
        s.low = exp(mean - half);
        s.high = exp(mean + half);
        if (mean != 0)
            s.p = error > 0 ? 2 * dist_normal_cdf(-fabs(mean) / error) : 0;
    }
    *ret_suite = s;
}

/* SPDX-License-Identifier: MIT */
/* See summary.h. */
#include "stats/summary.h"
#include "base/memory.h"
#include "numbers/sort.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const double mad_to_stddev = 1.4826022185056018; /* 1 / (normal quantile of 3/4) */

int stats_check_finite(const double *values, size_t count, const char *what, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return error_set(err, -EINVAL, "%s %zu of %zu is %g, not a finite number", what, i + 1,
                             count, values[i]);
    return 0;
}

void running_add(struct running *r, double value)
{
    r->min = r->count == 0 || value < r->min ? value : r->min;
    r->max = r->count == 0 || value > r->max ? value : r->max;
    r->count++;
    double before = value - r->mean;
    r->mean += before / (double)r->count;
    r->squares += before * (value - r->mean);
}

double running_stddev(const struct running *r)
{
    return r->count < 2 ? NAN : sqrt(r->squares / (double)(r->count - 1));
}

double stats_quantile(const double *sorted, size_t count, double q)
{
    if (count == 0 || !(q >= 0 && q <= 1))
        return NAN;
    double place = q * (double)(count - 1);
    size_t whole = (size_t)place;
    if (whole + 1 >= count)
        return sorted[count - 1];
    return sorted[whole] + (place - (double)whole) * (sorted[whole + 1] - sorted[whole]);
}

double stats_median(const double *values, size_t count, double *scratch)
{
    if (count == 0)
        return NAN;
    memcpy(scratch, values, count * sizeof(scratch[0]));
    double upper = select_double(scratch, count, count / 2);
    if (count % 2)
        return upper;
    double lower = scratch[0]; /* all that stands before the upper one is at most that */
    for (size_t i = 1; i < count / 2; i++)
        lower = fmax(lower, scratch[i]);
    return lower + (upper - lower) / 2;
}

int stats_summarise(const double *values, size_t count, struct summary *ret_summary,
                    struct error *err)
{
    int r = stats_check_finite(values, count, "value", err);
    if (r < 0)
        return r;
    struct summary s = {.min = NAN,
                        .max = NAN,
                        .mean = NAN,
                        .stddev = NAN,
                        .median = NAN,
                        .q1 = NAN,
                        .q3 = NAN,
                        .mad = NAN};
    if (count == 0) {
        *ret_summary = s;
        return 0;
    }
    double *sorted CLEANUP(memory_freep) = memory_alloc(2 * count * sizeof(double));
    double *distances = sorted + count;
    struct running running = {0};
    for (size_t i = 0; i < count; i++) {
        running_add(&running, values[i]);
        sorted[i] = values[i];
    }
    sort_doubles(sorted, count);
    s.count = count;
    s.min = sorted[0];
    s.max = sorted[count - 1];
    s.mean = running.mean;
    s.stddev = running_stddev(&running);
    s.median = stats_quantile(sorted, count, 0.5);
    s.q1 = stats_quantile(sorted, count, 0.25);
    s.q3 = stats_quantile(sorted, count, 0.75);
    for (size_t i = 0; i < count; i++)
        distances[i] = fabs(values[i] - s.median);
    s.mad = mad_to_stddev * stats_median(distances, count, sorted);
    *ret_summary = s;
    return 0;
}

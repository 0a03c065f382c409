/* SPDX-License-Identifier: MIT */
/* See quantiles.h. */
#include "stats/quantiles.h"
#include "base/memory.h"
#include "numbers/distributions.h"
#include "numbers/sort.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct samples {
    const double *base_values, *new_values;
    size_t base_count, new_count;
    bool paired;
    double q;
    double *pooled; /* room for all values */
};

/* log of the number of ways to take k of n. */
static double log_ways(double n, double k)
{
    int sign;
    return lgamma_r(n + 1, &sign) - lgamma_r(k + 1, &sign) - lgamma_r(n - k + 1, &sign);
}

/* Fisher's exact test, two-sided by doubling: `above` of all lie above, `mine` of them are of the
 * first sample. */
static double fisher_p(size_t mine, size_t above, size_t first_count, size_t all)
{
    double total = log_ways((double)all, (double)above), at_most = 0, at_least = 0;
    size_t least = above + first_count > all ? above + first_count - all : 0;
    size_t most = above < first_count ? above : first_count;
    for (size_t k = least; k <= most; k++) {
        double share = exp(log_ways((double)first_count, (double)k) +
                           log_ways((double)(all - first_count), (double)(above - k)) - total);
        at_most += k <= mine ? share : 0;
        at_least += k >= mine ? share : 0;
    }
    return fmin(1, 2 * fmin(at_most, at_least));
}

/* The p of "the quantiles differ by the factor `ratio`"; *ret_excess is by how many more values of
 * the new one than of the base lie above the common quantile. */
static double p_of(const struct samples *s, double ratio, double *ret_excess)
{
    size_t all = s->base_count + s->new_count, base_above = 0, new_above = 0, both = 0;
    for (size_t i = 0; i < s->base_count; i++)
        s->pooled[i] = ratio * s->base_values[i];
    memcpy(s->pooled + s->base_count, s->new_values, s->new_count * sizeof(double));
    size_t place = (size_t)ceil(s->q * (double)all) - 1;
    double limit = select_double(s->pooled, all, place);
    for (size_t i = 0; i < s->base_count; i++)
        base_above += ratio * s->base_values[i] > limit;
    for (size_t i = 0; i < s->new_count; i++) {
        bool above = s->new_values[i] > limit;
        new_above += above;
        both += s->paired && above && ratio * s->base_values[i] > limit;
    }
    *ret_excess =
        (double)new_above / (double)s->new_count - (double)base_above / (double)s->base_count;
    if (!s->paired)
        return fisher_p(new_above, base_above + new_above, s->new_count, all);
    base_above -= both;
    new_above -= both;
    size_t fewer = base_above < new_above ? base_above : new_above;
    return fmin(1, 2 * dist_binomial_cdf(fewer, base_above + new_above, 0.5));
}

/* Where, going from the centre, p falls below alpha. */
static double end_of(const struct samples *s, double centre, double alpha, int side)
{
    double excess, near = 0, far = 0.01;
    while (p_of(s, centre * exp(side * far), &excess) >= alpha || side * excess > 0) {
        near = far;
        far *= 2;
        if (far > 100)
            return side < 0 ? 0 : INFINITY;
    }
    for (int i = 0; i < 40; i++) {
        double middle = (near + far) / 2;
        if (p_of(s, centre * exp(side * middle), &excess) >= alpha || side * excess > 0)
            near = middle;
        else
            far = middle;
    }
    return centre * exp(side * near);
}

static double quantile_of(const double *values, size_t count, double q, double *scratch)
{
    memcpy(scratch, values, count * sizeof(double));
    sort_doubles(scratch, count);
    return stats_quantile(scratch, count, q);
}

/* Whether the test could ever be that sure: all values above the quantile of one side. */
static bool is_enough(const struct samples *s, double alpha)
{
    size_t all = s->base_count + s->new_count;
    size_t above = all - (size_t)ceil(s->q * (double)all);
    for (size_t i = 0; i < s->base_count; i++)
        if (!(s->base_values[i] > 0))
            return false;
    for (size_t i = 0; i < s->new_count; i++)
        if (!(s->new_values[i] > 0))
            return false;
    if (s->paired)
        return 2 * ldexp(1, -(int)(above < 1000 ? above : 1000)) < alpha;
    return above <= s->base_count && above <= s->new_count &&
           fisher_p(above, above, s->new_count, all) < alpha &&
           fisher_p(0, above, s->new_count, all) < alpha;
}

static void judge(const struct samples *s, double level, struct comparison *c)
{
    double alpha = 1 - level, excess;
    double base_quantile = quantile_of(s->base_values, s->base_count, s->q, s->pooled);
    double new_quantile = quantile_of(s->new_values, s->new_count, s->q, s->pooled);
    c->estimate = new_quantile / base_quantile;
    c->p = p_of(s, 1, &excess);
    c->low = fmin(c->estimate, end_of(s, c->estimate, alpha, -1));
    c->high = fmax(c->estimate, end_of(s, c->estimate, alpha, 1));
    /* The test moves in steps, and an end can stand on one: p decides. */
    if (c->p >= alpha) {
        c->low = fmin(c->low, 1);
        c->high = fmax(c->high, 1);
    } else if (c->low <= 1 && c->high >= 1) {
        *(c->estimate > 1 ? &c->low : &c->high) = nextafter(1, c->estimate > 1 ? 2 : 0);
    }
}

static int compare(struct samples *s, double level, struct comparison *ret_comparison,
                   struct error *err)
{
    if (s->base_count == 0 || s->new_count == 0)
        return error_set(err, -EINVAL, "no values to compare");
    if (!(level > 0 && level < 1) || !(s->q > 0.5 && s->q < 1))
        return error_set(err, -EINVAL, "a level of %g or a quantile of %g is out of range", level,
                         s->q);
    int r = stats_check_finite(s->base_values, s->base_count, "base value", err);
    if (r == 0)
        r = stats_check_finite(s->new_values, s->new_count, "new value", err);
    if (r < 0)
        return r;
    size_t all = s->base_count + s->new_count;
    double *pooled CLEANUP(memory_freep) = memory_alloc(all * sizeof(double));
    s->pooled = pooled;
    struct comparison c = {.scale = COMPARISON_RATIO,
                           .estimate = NAN,
                           .low = NAN,
                           .high = NAN,
                           .p = 1,
                           .level = level,
                           .base_median = stats_median(s->base_values, s->base_count, pooled),
                           .new_median = stats_median(s->new_values, s->new_count, pooled),
                           .base_count = s->base_count,
                           .new_count = s->new_count,
                           .least = NAN,
                           .most = NAN,
                           .widening = 1,
                           .effective_count = (double)all / 2,
                           .paired = s->paired,
                           .too_few = !is_enough(s, 1 - level),
                           .method = s->paired ? "ratio of quantiles, McNemar's test"
                                               : "ratio of quantiles, Fisher's test"};
    if (!c.too_few)
        judge(s, level, &c);
    *ret_comparison = c;
    return 0;
}

int stats_compare_quantile_paired(const double *base_values, const double *new_values,
                                  size_t round_count, double q, double level,
                                  struct comparison *ret_comparison, struct error *err)
{
    struct samples s = {.base_values = base_values,
                        .new_values = new_values,
                        .base_count = round_count,
                        .new_count = round_count,
                        .paired = true,
                        .q = q};
    return compare(&s, level, ret_comparison, err);
}

int stats_compare_quantile_unpaired(const double *base_values, size_t base_count,
                                    const double *new_values, size_t new_count, double q,
                                    double level, struct comparison *ret_comparison,
                                    struct error *err)
{
    struct samples s = {.base_values = base_values,
                        .new_values = new_values,
                        .base_count = base_count,
                        .new_count = new_count,
                        .q = q};
    return compare(&s, level, ret_comparison, err);
}

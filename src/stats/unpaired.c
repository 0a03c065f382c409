/* SPDX-License-Identifier: MIT */
/*
 * The unpaired comparison: the median of all ratios of a new value to a base value (Hodges &
 * Lehmann's shift of the logs), with the interval that inverts Mann & Whitney's test (exact up to
 * 20 values each).  That test takes both samples to have the same spread; where they have not, the
 * interval is widened to the standard error that Brunner & Munzel (2000) give for unequal ones.
 * Where so few values have no exact interval of the wanted level, Welch's t of the logs takes over,
 * and the result says that it assumes log-normal noise.  See comparison.h and docs/METHOD.md.
 */
#include "base/memory.h"
#include "numbers/distributions.h"
#include "numbers/sort.h"
#include "stats/comparison.h"
#include "stats/dependence.h"
#include "stats/modes.h"
#include "stats/ranksum.h"
#include "stats/shift.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct sample {
    const double *values; /* as they came */
    size_t count;
    double *logs;   /* or the values themselves on the scale of differences */
    double *sorted; /* the logs */
    struct dependence dependence;
};

static void prepare(struct sample *s, bool positive, double *scratch)
{
    for (size_t i = 0; i < s->count; i++)
        s->logs[i] = positive ? log(s->values[i]) : s->values[i];
    memcpy(s->sorted, s->logs, s->count * sizeof(double));
    sort_doubles(s->sorted, s->count);
    rank_doubles(s->logs, s->sorted, s->count, scratch);
    dependence_estimate(scratch, s->count, &s->dependence);
}

/* The variance of the placements of the values of a among those of b once a is moved by `shift`:
 * what share of b lies below each (half of those equal). */
static double placement_variance(const double *a, size_t a_count, const double *b, size_t b_count,
                                 double shift)
{
    size_t below = 0, not_above = 0;
    struct running running = {0};
    for (size_t i = 0; i < a_count; i++) {
        double value = a[i] + shift;
        while (below < b_count && b[below] < value)
            below++;
        not_above = not_above < below ? below : not_above;
        while (not_above < b_count && b[not_above] <= value)
            not_above++;
        running_add(&running, (double)(below + not_above) / (2 * (double)b_count));
    }
    return running.count < 2 ? 0 : running.squares / (double)(running.count - 1);
}

/* How much wider than Mann & Whitney's the interval has to be. */
static double unpaired_widening(const struct sample *base, const struct sample *new, double shift,
                                double *ret_lag1)
{
    double n = (double)base->count, m = (double)new->count;
    size_t all = base->count + new->count;
    double base_part =
        placement_variance(base->sorted, base->count, new->sorted, new->count, shift) / n;
    double new_part =
        placement_variance(new->sorted, new->count, base->sorted, base->count, -shift) / m;
    double share = base_part + new_part > 0 ? base_part / (base_part + new_part) : 0.5;
    double lag1 = share * base->dependence.lag1 + (1 - share) * new->dependence.lag1;
    double block =
        sqrt(share * pow(base->dependence.block, 2) + (1 - share) * pow(new->dependence.block, 2));
    double spread = sqrt((base_part + new_part) / ((n + m + 1) / (12 * n * m)));
    *ret_lag1 = lag1;
    return fmax(1, spread) * dependence_widening(lag1, block, all);
}

/* All differences of a new and a base value: `sums` of the new ones and the negated base ones. */
struct samples {
    struct compared compared; /* first */
    struct pair_sums sums;
    double mean, error, freedom; /* for Welch's t; no error where a side has a single value */
    double values[];             /* what the sums point to, both in ascending order */
};

/* Of logs, or of the values on the scale of differences. */
static void measure_spread(struct samples *s, const struct sample *base, const struct sample *new)
{
    struct running sides[2] = {0};
    for (size_t i = 0; i < base->count; i++)
        running_add(&sides[0], base->logs[i]);
    for (size_t i = 0; i < new->count; i++)
        running_add(&sides[1], new->logs[i]);
    double n = (double)base->count, m = (double)new->count;
    s->mean = sides[1].mean - sides[0].mean;
    s->error = NAN;
    if (base->count < 2 || new->count < 2)
        return;
    double a = sides[0].squares / (n - 1) / n, b = sides[1].squares / (m - 1) / m;
    s->error = sqrt(a + b);
    s->freedom = a + b > 0 ? (a + b) * (a + b) / (a * a / (n - 1) + b * b / (m - 1)) : n + m - 2;
}

/* As many rounds as show as much (modes.h); counts that repeat hide nothing. */
static size_t rounds_like(const struct samples *s, const struct comparison *c)
{
    bool hides = c->scale == COMPARISON_RATIO && s->error > 0;
    return hides ? (c->base_count + c->new_count) / 2 : 0;
}

/* What Welch's t makes of an interval that ranks cannot give. */
static void assume_normal(const struct samples *s, double asked, double level, struct comparison *c)
{
    double half = c->widening * s->error * dist_t_quantile(1 - asked / 2, s->freedom);
    half += modes_reserve(rounds_like(s, c), asked);
    c->low = fmin(c->low, s->mean - half);
    c->high = fmax(c->high, s->mean + half);
    c->level = level;
    c->assumes_normal = true;
    c->method = "unpaired, Welch's t of logs";
}

static double welch_p_of(const struct samples *s, double widening, double distance)
{
    if (!(distance > 0) || isnan(s->error))
        return 1;
    return s->error > 0 ? 2 * dist_t_cdf(-distance / (widening * s->error), s->freedom) : 0;
}

static double welch_p(const struct samples *s, const struct comparison *c)
{
    double distance = fabs(s->mean);
    return modes_p(rounds_like(s, c), welch_p_of(s, c->widening, distance),
                   welch_p_of(s, c->widening, distance - modes_distance(rounds_like(s, c))));
}

static void at(const struct compared *compared, double level, struct comparison *c)
{
    const struct samples *s = (const struct samples *)compared;
    size_t all = c->base_count + c->new_count;
    double *scratch CLEANUP(memory_freep) = memory_alloc(all * sizeof(double));
    double asked = dependence_alpha(1 - level, all);
    struct shift shift;
    shift_interval(&s->sums, c->estimate, 1 - asked, c->widening, scratch, all, &shift);
    c->low = all > 2 ? shift.low : NAN;
    c->high = all > 2 ? shift.high : NAN;
    c->level = level;
    double p = shift.p;
    if (shift.is_beyond)
        p = fmin(p, welch_p(s, c));
    c->p = dependence_p(p, all);
    if (shift.level < 1 - asked) {
        c->level = shift.level;
        if (!isnan(s->error))
            assume_normal(s, asked, level, c);
    }
}

static struct samples *compare(const struct sample *base, const struct sample *new, double *scratch,
                               const struct comparison *known)
{
    size_t n = base->count, m = new->count;
    struct samples *s = memory_alloc(sizeof(*s) + (n + m) * sizeof(double));
    double *negated = s->values, *values = s->values + n;
    *s = (struct samples){.compared = {.known = *known, .at = at}, .sums = {negated, values, n, m}};
    for (size_t i = 0; i < n; i++)
        negated[i] = -base->sorted[n - 1 - i];
    memcpy(values, new->sorted, m * sizeof(double));
    measure_spread(s, base, new);
    struct comparison *c = &s->compared.known;
    c->estimate = shift_centre(&s->sums, scratch, n + m);
    c->widening = unpaired_widening(base, new, c->estimate, &c->autocorrelation);
    c->autocorrelated = base->dependence.found || new->dependence.found;
    c->effective_count = (double)(n + m) / (c->widening * c->widening);
    return s;
}

static int check(const struct sample *s, const char *which, bool *positive, struct error *err)
{
    if (s->count == 0)
        return error_set(err, -EINVAL, "no %ss to compare", which);
    for (size_t i = 0; i < s->count; i++)
        *positive = *positive && s->values[i] > 0;
    return stats_check_finite(s->values, s->count, which, err);
}

int stats_compared_unpaired(const double *base_values, size_t base_count, const double *new_values,
                            size_t new_count, struct compared **ret_compared, struct error *err)
{
    struct sample base = {.values = base_values, .count = base_count};
    struct sample new = {.values = new_values, .count = new_count};
    bool positive = true;
    int r = check(&base, "base value", &positive, err);
    if (r == 0)
        r = check(&new, "new value", &positive, err);
    if (r < 0)
        return r;
    size_t all = base_count + new_count;
    double *room CLEANUP(memory_freep) = memory_alloc(3 * all * sizeof(double));
    double *scratch = room + 2 * all;
    base.logs = room;
    base.sorted = room + base_count;
    new.logs = room + 2 * base_count;
    new.sorted = new.logs + new_count;
    prepare(&base, positive, scratch);
    prepare(&new, positive, scratch);
    bool exact = base_count <= RANK_SUM_EXACT_MAX && new_count <= RANK_SUM_EXACT_MAX;
    struct comparison c = {
        .scale = positive ? COMPARISON_RATIO : COMPARISON_DIFFERENCE,
        .base_median = stats_median(base_values, base_count, scratch),
        .new_median = stats_median(new_values, new_count, scratch),
        .base_count = base_count,
        .new_count = new_count,
        .least = NAN,
        .most = NAN,
        .too_few = base_count < COMPARISON_VALUES_MIN || new_count < COMPARISON_VALUES_MIN,
        .method = exact ? "unpaired, exact rank sum" : "unpaired, rank sum",
    };
    *ret_compared = &compare(&base, &new, scratch, &c)->compared;
    return 0;
}

int stats_compare_unpaired(const double *base_values, size_t base_count, const double *new_values,
                           size_t new_count, double level, struct comparison *ret_comparison,
                           struct error *err)
{
    struct compared *c;
    int r = stats_compared_unpaired(base_values, base_count, new_values, new_count, &c, err);
    return r < 0 ? r : compared_ask(c, level, ret_comparison, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * See tails.h.  The looks share the error by fixed weights (a weighted Bonferroni rule): most of it
 * goes to the mean, which finds rare slow runs with the fewest of them.  The mean's part is the
 * corrected t alone, which is bold where runs far out are few and all on one side; at the error
 * rates here, of half a per cent and less, that takes about five of them (docs/METHOD.md).
 */
#include "stats/tails.h"
#include "base/memory.h"
#include "numbers/sort.h"
#include "stats/means.h"
#include "stats/quantiles.h"
#include "stats/summary.h"
#include "stats/twosample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS_MIN = 8, SEED = 20240517 };

static const double mean_weight = 0.6, upper_weight = 0.2, whole_weight = 0.2;
static const double upper_q[3] = {0.9, 0.95, 0.99};

/* How far above the usual a slow run lies at least: in spreads, and as a factor. */
static const double slow_mads = 6, slow_factor_min = 1.2;
static const double mad_to_stddev = 1.4826022185056018;

const char *tails_look_name(enum tails_look look)
{
    static const char *const names[] = {"mean", "90th percentile", "95th percentile",
                                        "99th percentile", "distribution"};
    return look < TAILS_LOOK_COUNT ? names[look] : "none";
}

/* Slow runs of one side, by logs where all are positive.  Both sides use the smaller spread, so
 * that a second mode does not hide itself. */
static double spread_of(const double *values, size_t count, double *scratch, double *ret_median)
{
    double median = stats_median(values, count, scratch), *distances = scratch + count;
    for (size_t i = 0; i < count; i++)
        distances[i] = fabs(log(values[i] / median));
    *ret_median = median;
    return mad_to_stddev * stats_median(distances, count, scratch);
}

static size_t count_slow(const double *values, size_t count, double median, double limit,
                         bool slow_is_high, double *scratch, double *ret_factor)
{
    size_t slow = 0;
    for (size_t i = 0; i < count; i++) {
        double times = log(values[i] / median) * (slow_is_high ? 1 : -1);
        if (times > limit)
            scratch[slow++] = times;
    }
    *ret_factor = slow ? exp(stats_median(scratch, slow, scratch + count)) : 1;
    return slow;
}

void slow_runs_count(const double *base_values, size_t base_count, const double *new_values,
                     size_t new_count, bool slow_is_high, struct slow_runs *ret_slow)
{
    struct slow_runs s = {
        .base_count = base_count, .new_count = new_count, .base_factor = 1, .new_factor = 1};
    bool positive = base_count > 0 && new_count > 0;
    for (size_t i = 0; i < base_count; i++)
        positive = positive && base_values[i] > 0;
    for (size_t i = 0; i < new_count; i++)
        positive = positive && new_values[i] > 0;
    if (positive) {
        size_t most = base_count > new_count ? base_count : new_count;
        double *scratch CLEANUP(memory_freep) = memory_alloc(2 * most * sizeof(double));
        double base_median, new_median;
        double spread = fmin(spread_of(base_values, base_count, scratch, &base_median),
                             spread_of(new_values, new_count, scratch, &new_median));
        double limit = fmax(slow_mads * spread, log(slow_factor_min));
        s.base_slow = count_slow(base_values, base_count, base_median, limit, slow_is_high, scratch,
                                 &s.base_factor);
        s.new_slow = count_slow(new_values, new_count, new_median, limit, slow_is_high, scratch,
                                &s.new_factor);
    }
    *ret_slow = s;
}

void slow_runs_text(const struct slow_runs *s, char *out, size_t size)
{
    double base = s->base_count ? (double)s->base_slow / (double)s->base_count : 0;
    double new = s->new_count ? (double)s->new_slow / (double)s->new_count : 0;
    double more = fmax(base, new), less = fmin(base, new);
    double factor = new > base ? s->new_factor : s->base_factor;
    const char *whose = new > base ? "" : " of the base";
    *out = 0;
    if (!(more > 1.5 * less))
        return;
    if (more < 0.26)
        snprintf(out, size, "1 run%s in %.0f is %.*f× slower", whose, 1 / more,
                 factor < 9.95 ? 1 : 0, factor);
    else
        snprintf(out, size, "%.0f %% of the runs%s are %.*f× slower", 100 * more, whose,
                 factor < 9.95 ? 1 : 0, factor);
}

static void weigh(struct tails *t, enum tails_look look, double p, double weight)
{
    double weighted = fmin(1, p / weight);
    if (weighted < t->p) {
        t->p = weighted;
        t->strongest = look;
    }
}

struct pair {
    const double *base_values, *new_values;
    size_t base_count, new_count;
    bool paired;
    double widening; /* what dependence did to the comparison of the centres */
    double sure;     /* as there */
};

/* Rounds that are exchanged together.  Counting tests know no dependence and are left out then. */
static const double dependent_widening = 1.25;

static size_t block_of(const struct pair *v)
{
    return v->widening < dependent_widening ? 1 : (size_t)ceil(2 * v->widening * v->widening);
}

/* What goes beyond the factor: the looks at new / factor. */
static void look(struct tails *t, const struct pair *v)
{
    double mean_p =
        v->paired
            ? stats_means_p_paired(v->base_values, v->new_values, v->base_count, v->sure)
            : stats_means_p_unpaired(v->base_values, v->base_count, v->new_values, v->new_count);
    weigh(t, TAILS_MEAN, mean_p, mean_weight);
    size_t usable = 0;
    bool dependent = v->widening >= dependent_widening;
    for (size_t i = 0; i < 3; i++)
        usable += !t->upper[i].too_few;
    for (size_t i = 0; i < 3 && !dependent; i++) {
        struct comparison c = {.p = 1};
        if (t->upper[i].too_few)
            continue;
        if (v->paired)
            stats_compare_quantile_paired(v->base_values, v->new_values, v->base_count, upper_q[i],
                                          0.95, &c, NULL);
        else
            stats_compare_quantile_unpaired(v->base_values, v->base_count, v->new_values,
                                            v->new_count, upper_q[i], 0.95, &c, NULL);
        weigh(t, TAILS_P90 + (enum tails_look)i, c.p, upper_weight / (double)usable);
    }
    t->whole_p = v->paired   ? two_sample_p_paired(v->base_values, v->new_values, v->base_count,
                                                   block_of(v), SEED)
                 : dependent ? 1
                             : two_sample_p_unpaired(v->base_values, v->base_count, v->new_values,
                                                     v->new_count, SEED);
    weigh(t, TAILS_WHOLE, t->whole_p, whole_weight);
}

/* Counts that are exactly twice as many are the same after division by 2 only up to rounding,
 * which is no difference of distributions. */
static double coarse(double value)
{
    int exponent;
    double digits = frexp(value, &exponent);
    return ldexp(rint(ldexp(digits, 24)), exponent - 24);
}

static void examine(struct tails *t, const struct pair *v, const struct comparison *centre)
{
    size_t least = v->base_count < v->new_count ? v->base_count : v->new_count;
    t->p = t->whole_p = 1;
    t->strongest = TAILS_MEAN;
    if (least < ROUNDS_MIN)
        return;
    bool apart = comparison_excludes_same(centre), is_ratio = centre->scale == COMPARISON_RATIO;
    double *scaled CLEANUP(memory_freep) =
        memory_alloc((v->new_count + v->base_count) * sizeof(double));
    double *base = scaled + v->new_count;
    for (size_t i = 0; i < v->new_count; i++)
        scaled[i] = !apart     ? v->new_values[i]
                    : is_ratio ? coarse(v->new_values[i] / centre->estimate)
                               : coarse(v->new_values[i] - centre->estimate);
    for (size_t i = 0; i < v->base_count; i++)
        base[i] = apart ? coarse(v->base_values[i]) : v->base_values[i];
    struct pair beyond = *v;
    beyond.new_values = scaled;
    beyond.base_values = base;
    beyond.widening = centre->widening;
    beyond.sure = centre->sure;
    look(t, &beyond);
}

int stats_tails_paired(const double *base_values, const double *new_values, size_t round_count,
                       const struct comparison *centre, double level, bool slow_is_high,
                       struct tails *ret_tails, struct error *err)
{
    struct tails t = {0};
    struct pair v = {base_values, new_values, round_count, round_count, true, 1, 0};
    int r = stats_compare_means_paired(base_values, new_values, round_count, level, &t.mean, err);
    for (size_t i = 0; i < 3 && r == 0; i++)
        r = stats_compare_quantile_paired(base_values, new_values, round_count, upper_q[i], level,
                                          &t.upper[i], err);
    if (r < 0)
        return r;
    examine(&t, &v, centre);
    slow_runs_count(base_values, round_count, new_values, round_count, slow_is_high, &t.slow);
    *ret_tails = t;
    return 0;
}

int stats_tails_unpaired(const double *base_values, size_t base_count, const double *new_values,
                         size_t new_count, const struct comparison *centre, double level,
                         bool slow_is_high, struct tails *ret_tails, struct error *err)
{
    struct tails t = {0};
    struct pair v = {base_values, new_values, base_count, new_count, false, 1, 0};
    int r = stats_compare_means_unpaired(base_values, base_count, new_values, new_count, level,
                                         &t.mean, err);
    for (size_t i = 0; i < 3 && r == 0; i++)
        r = stats_compare_quantile_unpaired(base_values, base_count, new_values, new_count,
                                            upper_q[i], level, &t.upper[i], err);
    if (r < 0)
        return r;
    examine(&t, &v, centre);
    slow_runs_count(base_values, base_count, new_values, new_count, slow_is_high, &t.slow);
    *ret_tails = t;
    return 0;
}

void slow_runs_alone(const double *values, size_t count, bool slow_is_high, char *out, size_t size)
{
    struct slow_runs s;
    *out = '\0';
    if (count < ROUNDS_MIN)
        return;
    slow_runs_count(values, count, values, count, slow_is_high, &s);
    if (s.base_slow)
        snprintf(out, size, "%zu of %zu runs %s about %.*f× as long as the others", s.base_slow,
                 s.base_count, s.base_slow == 1 ? "takes" : "take", s.base_factor < 10 ? 1 : 0,
                 s.base_factor);
}

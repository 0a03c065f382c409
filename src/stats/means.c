/* SPDX-License-Identifier: MIT */
/*
 * See means.h.  For a supposed ratio R the mean of new - R base is zero (Fieller 1954).  Its t is
 * carried through Hall's (1992) monotone cubic, which takes the first-order effect of skewness
 * away; the smaller of the two is compared with Student's quantile, and the interval holds all R
 * that are not refused.  All that is needed for any R are the central moments of both sides up to
 * the third, which are taken once.
 */
#include "stats/means.h"
#include "base/memory.h"
#include "numbers/distributions.h"
#include "numbers/sort.h"
#include "stats/dependence.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>

/* Mixed central moments: m[i][j] is the mean of (base - its mean)^i (new - its mean)^j. */
struct moments {
    double base_mean, new_mean;
    double m[4][4];
    double base_count, new_count;
    bool paired, is_ratio;
    bool bold; /* the corrected t alone, else the smaller of both */
    double freedom, widening;
};

static double mean_of(const double *values, size_t count)
{
    struct running running = {0};
    for (size_t i = 0; i < count; i++)
        running_add(&running, values[i]);
    return running.mean;
}

/* Of one side: `side` 0 fills m[2][0] and m[3][0], 1 fills m[0][2] and m[0][3]. */
static void own_moments(struct moments *s, int side, const double *values, size_t count,
                        double mean)
{
    double squares = 0, cubes = 0, n = (double)count;
    for (size_t i = 0; i < count; i++) {
        double d = values[i] - mean;
        squares += d * d;
        cubes += d * d * d;
    }
    s->m[side ? 0 : 2][side ? 2 : 0] = squares / (n - 1);
    s->m[side ? 0 : 3][side ? 3 : 0] = cubes / n;
}

static void mixed_moments(struct moments *s, const double *base_values, const double *new_values,
                          size_t count)
{
    double n = (double)count, both = 0, base_twice = 0, new_twice = 0;
    for (size_t i = 0; i < count; i++) {
        double b = base_values[i] - s->base_mean, x = new_values[i] - s->new_mean;
        both += b * x;
        base_twice += b * b * x;
        new_twice += b * x * x;
    }
    s->m[1][1] = both / (n - 1);
    s->m[2][1] = base_twice / n;
    s->m[1][2] = new_twice / n;
}

/* Hall's transformation: `skew` is the skewness of the mean itself. */
static double unskew(double t, double skew)
{
    double a = skew / 3;
    return t + a * t * t + a * a * t * t * t / 3 + skew / 6;
}

/* The corrected t of the supposition that the ratio (or the difference) is `value`. */
static double t_of(const struct moments *s, double value)
{
    double r = s->is_ratio ? value : 1, apart = s->is_ratio ? 0 : value;
    double n = s->base_count, k = s->new_count, variance, third;
    if (s->paired) {
        variance = (s->m[0][2] - 2 * r * s->m[1][1] + r * r * s->m[2][0]) / n;
        third =
            (s->m[0][3] - 3 * r * s->m[1][2] + 3 * r * r * s->m[2][1] - r * r * r * s->m[3][0]) /
            (n * n);
    } else {
        variance = s->m[0][2] / k + r * r * s->m[2][0] / n;
        third = s->m[0][3] / (k * k) - r * r * r * s->m[3][0] / (n * n);
    }
    double distance = s->new_mean - r * s->base_mean - apart;
    double tiny = 1e-24 * (s->new_mean * s->new_mean + r * r * s->base_mean * s->base_mean);
    if (!(variance > tiny))
        return fabs(distance) <= 1e-12 * fabs(s->new_mean) ? 0 : copysign(INFINITY, distance);
    double error = sqrt(variance), t = distance / error;
    double corrected = unskew(t, third / (variance * error));
    if (!s->bold)
        corrected = t * corrected <= 0 ? 0 : fabs(corrected) < fabs(t) ? corrected : t;
    return corrected / s->widening;
}

/* The value between the estimate and the far side at which t reaches the limit; infinite if never.
 * Seen from the estimate t only grows. */
static double end_of(const struct moments *s, double centre, double limit, int side)
{
    double step = s->is_ratio ? 0.01 * fabs(centre) : 0.01 * sqrt(s->m[0][2] + s->m[2][0]);
    double near = centre, far = centre + side * step;
    if (!(step > 0) || !isfinite(limit))
        return step > 0 ? copysign(INFINITY, side) : centre;
    for (int i = 0; fabs(t_of(s, far)) < limit || side * t_of(s, far) > 0; i++) {
        if (s->is_ratio && side < 0 && far <= 1e-6 * centre)
            return 0;
        if (i == 60)
            return copysign(INFINITY, side);
        near = far;
        step *= 2;
        far = s->is_ratio && side < 0 ? fmax(far - step, far / 2) : far + side * step;
    }
    for (int i = 0; i < 60; i++) {
        double middle = near + (far - near) / 2;
        if (fabs(t_of(s, middle)) < limit || side * t_of(s, middle) > 0)
            near = middle;
        else
            far = middle;
    }
    return near + (far - near) / 2;
}

static void judge(const struct moments *s, double level, struct comparison *c)
{
    double same = s->is_ratio ? 1 : 0;
    c->estimate = s->is_ratio ? s->new_mean / s->base_mean : s->new_mean - s->base_mean;
    double asked = dependence_alpha(1 - level, (size_t)s->base_count);
    double limit = dist_t_quantile(1 - asked / 2, s->freedom);
    c->low = fmin(c->estimate, end_of(s, c->estimate, limit, -1));
    c->high = fmax(c->estimate, end_of(s, c->estimate, limit, 1));
    c->p = dependence_p(2 * dist_t_cdf(-fabs(t_of(s, same)), s->freedom), (size_t)s->base_count);
    c->level = level;
    c->widening = s->widening;
    c->method = c->paired ? "ratio of means, paired, t corrected for skewness"
                          : "ratio of means, t corrected for skewness";
}

/* How much the rounds depend on each other, told from the ranks of new - R base; `sure` is what is
 * known from elsewhere. */
static void look_for_dependence(struct moments *s, const double *base_values,
                                const double *new_values, size_t count, double sure,
                                struct comparison *c)
{
    double *room CLEANUP(memory_freep) = memory_alloc(3 * count * sizeof(double));
    double *sorted = room + count, *ranks = room + 2 * count;
    double r = s->is_ratio ? s->new_mean / s->base_mean : 1;
    for (size_t i = 0; i < count; i++)
        sorted[i] = room[i] = (new_values ? new_values[i] : 0) - r * base_values[i];
    sort_doubles(sorted, count);
    rank_doubles(room, sorted, count, ranks);
    struct dependence d;
    dependence_estimate(ranks, count, &d);
    double freedom, error;
    error = dependence_sure_error(fmax(sure, dependence_sure(d.lag1, count, 1)), count, &freedom);
    s->widening = fmax(s->widening, fmax(error, dependence_widening(d.lag1, d.block, count)));
    s->freedom = fmin(s->freedom, fmax(freedom, 1));
    c->autocorrelated = c->autocorrelated || d.found;
    c->autocorrelation = fmax(c->autocorrelation, d.lag1);
    c->effective_count = (double)count / (s->widening * s->widening);
}

static int prepare(struct moments *s, const double *base_values, size_t base_count,
                   const double *new_values, size_t new_count, double level, struct comparison *c,
                   struct error *err)
{
    if (base_count < 2 || new_count < 2)
        return error_set(err, -EINVAL, "a mean of %zu value%s has no interval: it takes two",
                         base_count < new_count ? base_count : new_count,
                         (base_count < new_count ? base_count : new_count) == 1 ? "" : "s");
    if (!(level > 0 && level < 1))
        return error_set(err, -EINVAL, "a level of %g is not between 0 and 1", level);
    int r = stats_check_finite(base_values, base_count, "base value", err);
    if (r == 0)
        r = stats_check_finite(new_values, new_count, "new value", err);
    if (r < 0)
        return r;
    size_t most = base_count > new_count ? base_count : new_count;
    size_t least = base_count < new_count ? base_count : new_count;
    double *scratch CLEANUP(memory_freep) = memory_alloc(most * sizeof(double));
    s->is_ratio = true;
    for (size_t i = 0; i < base_count; i++)
        s->is_ratio = s->is_ratio && base_values[i] > 0;
    for (size_t i = 0; i < new_count; i++)
        s->is_ratio = s->is_ratio && new_values[i] > 0;
    s->base_count = (double)base_count;
    s->new_count = (double)new_count;
    s->base_mean = mean_of(base_values, base_count);
    s->new_mean = mean_of(new_values, new_count);
    own_moments(s, 0, base_values, base_count, s->base_mean);
    own_moments(s, 1, new_values, new_count, s->new_mean);
    s->widening = 1;
    *c = (struct comparison){
        .scale = s->is_ratio ? COMPARISON_RATIO : COMPARISON_DIFFERENCE,
        .base_median = stats_median(base_values, base_count, scratch),
        .new_median = stats_median(new_values, new_count, scratch),
        .base_count = base_count,
        .new_count = new_count,
        .least = NAN,
        .most = NAN,
        .paired = s->paired,
        .too_few = least < COMPARISON_ROUNDS_MIN,
        .assumes_normal = least < COMPARISON_ROUNDS_MIN,
    };
    return 0;
}

static int compare_paired(const double *base_values, const double *new_values, size_t round_count,
                          double level, bool bold, double sure, struct comparison *ret_comparison,
                          struct error *err)
{
    struct moments s = {.paired = true, .bold = bold};
    struct comparison c;
    int r = prepare(&s, base_values, round_count, new_values, round_count, level, &c, err);
    if (r < 0)
        return r;
    mixed_moments(&s, base_values, new_values, round_count);
    s.freedom = (double)round_count - 1;
    look_for_dependence(&s, base_values, new_values, round_count, sure, &c);
    judge(&s, level, &c);
    *ret_comparison = c;
    return 0;
}

static int compare_unpaired(const double *base_values, size_t base_count, const double *new_values,
                            size_t new_count, double level, bool bold,
                            struct comparison *ret_comparison, struct error *err)
{
    struct moments s = {.paired = false, .bold = bold};
    struct comparison c;
    int r = prepare(&s, base_values, base_count, new_values, new_count, level, &c, err);
    if (r < 0)
        return r;
    double n = (double)base_count, m = (double)new_count;
    double ratio = s.is_ratio ? s.new_mean / s.base_mean : 1;
    double a = ratio * ratio * s.m[2][0] / n, b = s.m[0][2] / m, sum = a + b;
    /* Welch & Satterthwaite's degrees of freedom. */
    s.freedom = sum > 0 ? sum * sum / (a * a / (n - 1) + b * b / (m - 1)) : n + m - 2;
    look_for_dependence(&s, base_values, NULL, base_count, 0, &c);
    look_for_dependence(&s, new_values, NULL, new_count, 0, &c);
    judge(&s, level, &c);
    *ret_comparison = c;
    return 0;
}

int stats_compare_means_paired(const double *base_values, const double *new_values,
                               size_t round_count, double level, struct comparison *ret_comparison,
                               struct error *err)
{
    return compare_paired(base_values, new_values, round_count, level, false, 0, ret_comparison,
                          err);
}

int stats_compare_means_unpaired(const double *base_values, size_t base_count,
                                 const double *new_values, size_t new_count, double level,
                                 struct comparison *ret_comparison, struct error *err)
{
    return compare_unpaired(base_values, base_count, new_values, new_count, level, false,
                            ret_comparison, err);
}

double stats_means_p_paired(const double *base_values, const double *new_values, size_t round_count,
                            double sure)
{
    struct comparison c;
    int r = compare_paired(base_values, new_values, round_count, 0.95, true, sure, &c, NULL);
    return r < 0 ? 1 : c.p;
}

double stats_means_p_unpaired(const double *base_values, size_t base_count,
                              const double *new_values, size_t new_count)
{
    struct comparison c;
    int r = compare_unpaired(base_values, base_count, new_values, new_count, 0.95, true, &c, NULL);
    return r < 0 ? 1 : c.p;
}

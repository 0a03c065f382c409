/* SPDX-License-Identifier: MIT */
/*
 * The paired comparison: the centre of the log ratios of the rounds with the exact interval of a
 * rank test (location.h), widened where the rounds depend on each other.  Where so few rounds have
 * no exact interval of the wanted level, Student's t of the log ratios takes over, and the result
 * says that it assumes log-normal noise.  See comparison.h; the reasons and what was tried instead
 * stand in docs/METHOD.md.
 */
#include "base/memory.h"
#include "numbers/distributions.h"
#include "numbers/sort.h"
#include "stats/comparison.h"
#include "stats/dependence.h"
#include "stats/location.h"
#include "stats/modes.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { RANKS_COUNT_MIN = 6 }; /* five rounds have no exact 95 % interval */

struct rounds {
    struct compared compared; /* first */
    struct location location;
    double centre, widening;
    double sure;                 /* correlation beyond doubt */
    double hidden;               /* by which both ends are further out, whatever the rounds say */
    double mean, error, freedom; /* for Student's t */
    bool is_emulated;            /* counts that nearly repeat */
    bool is_normal;              /* nothing but Student's t */
    bool is_running;             /* more rounds may come, depending on what is said here */
    double sorted[];             /* the log ratios, or the differences */
};

/* From here on the interval may be cut to reach_limit times the range.  All of n values of an
 * autocorrelation of 0.5 lie on one side of their centre about as often as (2/3)^(n-1). */
static double reach_alpha(const struct rounds *r)
{
    double one_side = 1 - acos(fmax(0.5, r->sure)) / M_PI;
    return 0.6 * pow(one_side, (double)r->location.count - 1);
}

/* An interval goes at most this much further from the centre than the values do. */
static const double reach_limit = 2;

static double reach(const struct rounds *r, int side)
{
    const struct location *l = &r->location;
    double outermost = side < 0 ? l->sorted[0] : l->sorted[l->count - 1];
    return r->centre + reach_limit * (outermost - r->centre);
}

/* What dependence is taken to do to few rounds is bounded: other work that lasts through all of
 * them and hits one of the two commands only, although their order is drawn for each round, makes
 * it twice as slow at most.  Without a bound, four rounds that vary by half would leave a
 * difference of 47 times open. */
static const double lasting_factor = 2;

/* How much further than for independent rounds an end may lie, on the scale of logs. */
static double lasting_most(const struct rounds *r)
{
    bool bounded = r->compared.known.scale == COMPARISON_RATIO && r->compared.known.too_few;
    return bounded ? log(lasting_factor) : INFINITY;
}

/* What the rounds may hide (modes.h); counts that repeat hide nothing. */
static bool has_modes(const struct rounds *r)
{
    return r->compared.known.scale == COMPARISON_RATIO && r->error > 0;
}

static double mode_distance(const struct rounds *r)
{
    return r->is_emulated ? modes_distance_emulated() : modes_distance(r->location.count);
}

/* By which factor ends of an interval for the error alpha are further away. */
static double widening_at(const struct rounds *r, double alpha)
{
    return fmax(r->widening, dependence_sure_widening(r->sure, r->location.count, alpha));
}

/* A distance from the centre, widened. */
static double widened(const struct rounds *r, double alpha, double distance)
{
    return fmin(widening_at(r, alpha) * distance, distance + lasting_most(r));
}

/* The distance that is widened to this one. */
static double before_widening(const struct rounds *r, double alpha, double distance)
{
    return fmax(distance / widening_at(r, alpha), distance - lasting_most(r));
}

/* The error before widening, and back. */
static double asked_of(const struct rounds *r, double alpha)
{
    return r->is_running ? alpha : dependence_alpha(alpha, r->location.count);
}

static double answered_of(const struct rounds *r, double p)
{
    return r->is_running ? p : dependence_p(p, r->location.count);
}

/* Gives whether the interval had to assume normal noise, and its width before it was widened. */
static bool interval_for(const struct rounds *r, double alpha, double *ret_low, double *ret_high,
                         double *ret_plain)
{
    double asked = asked_of(r, alpha), half = 0;
    bool assumes = r->is_normal || asked < r->location.alpha_min;
    if (assumes && r->error > 0)
        half = widened(r, alpha, r->error * dist_t_quantile(1 - asked / 2, r->freedom)) +
               (has_modes(r) && modes_reserve(r->location.count, asked) > 0 ? mode_distance(r) : 0);
    if (r->is_normal) {
        *ret_low = r->mean - half - r->hidden;
        *ret_high = r->mean + half + r->hidden;
        *ret_plain = 0;
        return true;
    }
    double low, high;
    location_interval(&r->location, asked, &low, &high);
    *ret_plain = high - low;
    low = r->centre - widened(r, alpha, r->centre - low);
    high = r->centre + widened(r, alpha, high - r->centre);
    if (assumes) {
        low = fmin(low, r->mean - half);
        high = fmax(high, r->mean + half);
    } else if (!r->is_running && alpha >= reach_alpha(r)) {
        low = fmax(low, reach(r, -1));
        high = fmin(high, reach(r, 1));
    }
    *ret_low = low - r->hidden;
    *ret_high = high + r->hidden;
    return assumes;
}

static double student_p_of(const struct rounds *r, double alpha, double distance)
{
    if (!(distance > 0))
        return 1;
    return 2 * dist_t_cdf(-before_widening(r, alpha, distance) / r->error, r->freedom);
}

/* The p of "the centre is 0" by Student's t. */
static double student_p(const struct rounds *r, double alpha)
{
    double distance = fabs(r->mean) - r->hidden, p = student_p_of(r, alpha, distance);
    return has_modes(r)
               ? modes_p(r->location.count, p, student_p_of(r, alpha, distance - mode_distance(r)))
               : p;
}

/* The p of "the centre is 0", with intervals as wide as for the error alpha. */
static double p_at(const struct rounds *r, double alpha)
{
    if (r->is_normal)
        return answered_of(r, student_p(r, alpha));
    double visible = fmax(0, fabs(r->centre) - r->hidden);
    double distance = copysign(before_widening(r, alpha, visible), r->centre);
    double p = location_p(&r->location, r->centre - distance);
    if (p <= r->location.alpha_min * (1 + 1e-9))
        p = fmin(p, student_p(r, alpha));
    return answered_of(r, p);
}

/* The p of "the centre is 0": the alpha at which interval_for just leaves 0 out. */
static double p_of(const struct rounds *r)
{
    double p = p_at(r, 0.05), low = 0, high = 1;
    /* The stricter, the wider: where that depends on the error, the one that agrees with itself. */
    bool varies = widening_at(r, 1e-6) > 1.0001 * widening_at(r, 0.1);
    for (int i = 0; varies && i < 60 && high - low > 1e-6 * high; i++) {
        double middle = low > 0 || high < 1e-12 ? (low + high) / 2 : high / 8;
        *(p_at(r, middle) > middle ? &low : &high) = middle;
    }
    p = varies ? high : p;
    bool beyond =
        !r->is_normal && !r->is_running && (reach(r, -1) > r->hidden || reach(r, 1) < -r->hidden);
    return beyond ? fmin(p, reach_alpha(r)) : p;
}

static void measure_spread(struct rounds *r, const double *values, size_t count)
{
    struct running running = {0};
    for (size_t i = 0; i < count; i++)
        running_add(&running, values[i]);
    r->freedom = (double)count - 1;
    r->mean = running.mean;
    r->error = sqrt(running.squares / (r->freedom * (double)count));
}

/* Everything but the interval; `scratch` holds 2 count. */
static void prepare(struct rounds *r, const double *values, double *scratch, size_t count)
{
    struct comparison *c = &r->compared.known;
    struct dependence dependence;
    memcpy(r->sorted, values, count * sizeof(double));
    sort_doubles(r->sorted, count);
    rank_doubles(values, r->sorted, count, scratch);
    dependence_estimate(scratch, count, &dependence);
    r->is_normal = count < RANKS_COUNT_MIN;
    location_init(&r->location, r->sorted, count, scratch);
    measure_spread(r, values, count);
    r->widening = r->is_running  ? dependence_running(values, count)
                  : r->is_normal ? 1
                                 : dependence_widening(dependence.lag1, dependence.block, count);
    r->sure = r->is_normal || r->is_running ? 0 : dependence_sure(dependence.lag1, count, 1);
    r->centre = r->is_normal ? r->mean : r->location.centre;
    c->estimate = r->centre;
    c->least = r->sorted[0];
    c->most = r->sorted[count - 1];
    c->p = r->freedom > 0 ? p_of(r) : 1;
    c->autocorrelation = dependence.lag1;
    c->autocorrelated = dependence.found;
    c->sure = r->sure;
}

void compared_depend(struct compared *compared, double lag1, size_t series)
{
    struct rounds *r = (struct rounds *)compared;
    double sure = dependence_sure(lag1, r->location.count, series);
    if (sure <= r->sure || !(r->freedom > 0))
        return;
    compared->known.sure = r->sure = sure;
    compared->known.autocorrelated = true;
    compared->known.p = p_of(r);
}

void compared_hide(struct compared *compared, double hidden)
{
    struct rounds *r = (struct rounds *)compared;
    r->hidden = hidden;
    if (r->freedom > 0)
        compared->known.p = p_of(r);
}

void compared_emulated(struct compared *compared)
{
    struct rounds *r = (struct rounds *)compared;
    r->is_emulated = true;
    if (r->freedom > 0)
        compared->known.p = p_of(r);
}

static void at(const struct compared *compared, double level, struct comparison *c)
{
    const struct rounds *r = (const struct rounds *)compared;
    double plain = 0;
    c->low = c->high = NAN;
    if (r->freedom > 0) {
        c->assumes_normal = interval_for(r, 1 - level, &c->low, &c->high, &plain);
        c->level = level;
    }
    /* Where it was not allowed to go as far as it would, it was widened by less. */
    bool is_cut = plain > 0 && !c->assumes_normal;
    double widening = widening_at(r, 1 - level);
    c->widening = is_cut ? fmin(widening, (c->high - c->low) / plain) : widening;
    c->effective_count = (double)r->location.count / (c->widening * c->widening);
    c->method = c->assumes_normal       ? "mean of paired log ratios, Student's t"
                : r->location.is_ranked ? "centre of paired ratios, signed ranks"
                                        : "median of paired ratios, sign test";
}

/* Rounds the values to 40 binary digits of the largest, so that sums of two are exact and equal
 * ratios are equal numbers: rank tests have to see ties. */
static void drop_rounding(double *values, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(values[i]));
    if (!(largest > 0))
        return;
    int digits = 40 - ilogb(largest);
    for (size_t i = 0; i < count; i++)
        values[i] = scalbn(rint(scalbn(values[i], digits)), -digits);
}

static int check(const double *base_values, const double *new_values, size_t round_count,
                 struct error *err)
{
    if (round_count == 0)
        return error_set(err, -EINVAL, "no rounds to compare");
    int r = stats_check_finite(base_values, round_count, "base value", err);
    return r < 0 ? r : stats_check_finite(new_values, round_count, "new value", err);
}

int stats_compared_paired(const double *base_values, const double *new_values, size_t round_count,
                          bool running, struct compared **ret_compared, struct error *err)
{
    size_t n = round_count;
    int r = check(base_values, new_values, n, err);
    if (r < 0)
        return r;
    double *values CLEANUP(memory_freep) = memory_alloc(3 * n * sizeof(double));
    double *scratch = values + n;
    bool positive = true;
    for (size_t i = 0; i < n; i++)
        positive = positive && base_values[i] > 0 && new_values[i] > 0;
    for (size_t i = 0; i < n; i++)
        values[i] = positive ? log(new_values[i] / base_values[i]) : new_values[i] - base_values[i];
    drop_rounding(values, n);
    struct rounds *rounds = memory_alloc(sizeof(*rounds) + n * sizeof(double));
    *rounds = (struct rounds){
        .compared = {.at = at,
                     .known = {.scale = positive ? COMPARISON_RATIO : COMPARISON_DIFFERENCE,
                               .base_median = stats_median(base_values, n, scratch),
                               .new_median = stats_median(new_values, n, scratch),
                               .base_count = n,
                               .new_count = n,
                               .paired = true,
                               .running = running,
                               .too_few = n < COMPARISON_ROUNDS_MIN}},
        .is_running = running,
    };
    prepare(rounds, values, scratch, n);
    *ret_compared = &rounds->compared;
    return 0;
}

int stats_compare_paired(const double *base_values, const double *new_values, size_t round_count,
                         double level, struct comparison *ret_comparison, struct error *err)
{
    struct compared *c;
    int r = stats_compared_paired(base_values, new_values, round_count, false, &c, err);
    return r < 0 ? r : compared_ask(c, level, ret_comparison, err);
}

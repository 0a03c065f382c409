/* SPDX-License-Identifier: MIT */
/*
 * See level_shift.h.  The model: u[i] = r u[i - 1] + e[i] around a level that is a before the shift
 * and b from it on.  What is left of the values, e[i], the innovation, is large once, at the shift,
 * and off by (1 - r) (b - a) for ever after; both count.  With prefix sums of the values, of their
 * squares and of their products with the value before, the best a, b and r for one place of the
 * shift are had in constant time (in turn: levels for r by generalised least squares, r for the
 * levels), and with them by how much they reduce the squares of the innovations.
 *
 * That is compared with series without a shift that are made of the same innovations, shuffled.
 * Three things make it honest:
 * - r is estimated anew in each of them, so that the error of r is in what chance does.
 * - They inherit by as many values before as Akaike's criterion asks for (Burg's method), not only
 *   by the last one: slow wandering under white noise looks like a small r, but is none.
 * - A single large innovation, of which the series comes back, is no shift.  So the innovation at
 *   the shift takes part in the shuffles, and chance may put it where it looks most like one.  Only
 *   if all others are like normal noise, which has no such innovations, normal noise takes their
 *   place.
 */
#include "fits/level_shift.h"
#include "base/memory.h"
#include "fits/normality.h"

#include <math.h>
#include <string.h>

#define LAG1_MAX 0.98
#define ORDER_PRICE 200.0 /* over the number of values: few show more dependence than there is */

enum {
    ORDER_MAX = 10,
    SERIES_MIN = 4 * ORDER_MAX, /* fewer values do not show how they depend on each other */
    WARM_UP = 200,
    NEAR_MAX = 50, /* values on each side of a shift that tell how restless it is there */
    TRIALS_MIN = 399,
    TRIALS_MAX = 9999,
};

/* Prefix sums; products[i] is the sum of values[k] values[k - 1] over 1 <= k < i. */
struct series {
    const double *values;
    double *sums, *squares, *products;
    size_t count;
};

struct fit {
    double before, after, lag1;
    double squares; /* of the innovations */
};

static void sum_up(struct series *s, const double *values)
{
    s->values = values;
    s->sums[0] = s->squares[0] = s->products[0] = 0;
    for (size_t i = 0; i < s->count; i++) {
        double product = i > 0 ? values[i] * values[i - 1] : 0;
        s->sums[i + 1] = s->sums[i] + values[i];
        s->squares[i + 1] = s->squares[i] + values[i] * values[i];
        s->products[i + 1] = s->products[i] + product;
    }
}

/* Over i in [from, to): the sum of (values[i] - level)^2. */
static double squares_of(const struct series *s, size_t from, size_t to, double level)
{
    double sum = s->sums[to] - s->sums[from];
    return s->squares[to] - s->squares[from] + level * ((double)(to - from) * level - 2 * sum);
}

/* The same of (values[i] - level) (values[i - 1] - level); 0 < from. */
static double products_of(const struct series *s, size_t from, size_t to, double level)
{
    if (to <= from)
        return 0;
    double sum = s->sums[to] - s->sums[from] + s->sums[to - 1] - s->sums[from - 1];
    return s->products[to] - s->products[from] + level * ((double)(to - from) * level - sum);
}

/* The autocorrelation and the squares of the innovations, given the first and last deviation from
 * the level, the sum of squares of all, and that of products of neighbours. */
static void fit_lag1(struct fit *f, double first, double last, double all, double products)
{
    double inner = all - first * first - last * last;
    f->lag1 = inner > 0 ? fmin(fmax(products / inner, 0), LAG1_MAX) : 0;
    f->squares = fmax(0, all - 2 * f->lag1 * products + f->lag1 * f->lag1 * inner);
}

/* Without a shift. */
static struct fit fit_level(const struct series *s)
{
    struct fit f = {.lag1 = 0.5};
    const double *v = s->values;
    size_t n = s->count;
    for (int turn = 0; turn < 6; turn++) {
        double r = f.lag1, c = 1 - r;
        double weight = 1 - r * r + (double)(n - 1) * c * c;
        double rest = s->sums[n] - s->sums[1] - r * s->sums[n - 1];
        double level = ((1 - r * r) * v[0] + c * rest) / weight;
        f.before = f.after = level;
        fit_lag1(&f, v[0] - level, v[n - 1] - level, squares_of(s, 0, n, level),
                 products_of(s, 1, n, level));
    }
    return f;
}

/* With a shift at `at`; r is looked for from `lag1` on. */
static struct fit fit_shift(const struct series *s, size_t at, double lag1)
{
    struct fit f = {.lag1 = lag1};
    const double *v = s->values;
    size_t n = s->count;
    for (int turn = 0; turn < 2; turn++) {
        /* The normal equations of the two levels. */
        double r = f.lag1, c = 1 - r, step = v[at] - r * v[at - 1];
        double aa = 1 + (double)(at - 1) * c * c, bb = 1 + (double)(n - at - 1) * c * c;
        double a =
            (1 - r * r) * v[0] - r * step + c * (s->sums[at] - s->sums[1] - r * s->sums[at - 1]);
        double b = step + c * (s->sums[n] - s->sums[at + 1] - r * (s->sums[n - 1] - s->sums[at]));
        double determinant = aa * bb - r * r;
        f.before = (bb * a + r * b) / determinant;
        f.after = (aa * b + r * a) / determinant;
        double across = (v[at - 1] - f.before) * (v[at] - f.after);
        fit_lag1(&f, v[0] - f.before, v[n - 1] - f.after,
                 squares_of(s, 0, at, f.before) + squares_of(s, at, n, f.after),
                 products_of(s, 1, at, f.before) + across + products_of(s, at + 1, n, f.after));
    }
    return f;
}

/* The mean square of innovations in [from, to), 0 < from. */
static double local_variance(const struct series *s, const struct fit *f, size_t at, size_t from,
                             size_t to)
{
    double r = f->lag1, sum = 0;
    if (from < at) {
        size_t end = at < to ? at : to;
        sum += squares_of(s, from, end, f->before) - 2 * r * products_of(s, from, end, f->before) +
               r * r * squares_of(s, from - 1, end - 1, f->before);
    }
    if (from <= at && at < to) {
        double innovation = s->values[at] - f->after - r * (s->values[at - 1] - f->before);
        sum += innovation * innovation;
    }
    size_t start = from > at ? from : at + 1;
    if (start < to)
        sum += squares_of(s, start, to, f->after) - 2 * r * products_of(s, start, to, f->after) +
               r * r * squares_of(s, start - 1, to - 1, f->after);
    return sum / (double)(to - from - 1);
}

/* Where the series is more restless than elsewhere, chance does more there. */
static double variance_at(const struct series *s, const struct fit *f, size_t at)
{
    size_t n = s->count, near = n / 4 < NEAR_MAX ? n / 4 : NEAR_MAX;
    size_t to = at > near ? at + near : 2 * near + 1;
    to = to < n ? to : n;
    return local_variance(s, f, at, to > 2 * near + 1 ? to - 2 * near : 1, to);
}

/* The place with the least squares; returns the largest reduction of squares by a shift, in
 * variances of an innovation. */
static double best_shift(const struct series *s, size_t *ret_at, struct fit *ret_fit)
{
    struct fit level = fit_level(s);
    double best = -INFINITY, least = INFINITY, n = (double)s->count;
    double rounding = 1e-9 * s->squares[s->count] / n;
    for (size_t at = LEVEL_SHIFT_SIDE_MIN; at + LEVEL_SHIFT_SIDE_MIN <= s->count; at++) {
        struct fit f = fit_shift(s, at, level.lag1);
        double gain = level.squares - f.squares, variance = fmax(f.squares / n, rounding);
        if (f.squares < least) {
            least = f.squares;
            *ret_at = at;
            *ret_fit = f;
        }
        if (variance > 0 && gain / variance > best)
            best = fmax(best, gain / fmax(variance, variance_at(s, &f, at)));
    }
    return best;
}

/* How values without a level inherit from those before them: value = sum of coefficients[k - 1]
 * value[-k] + innovation. */
struct inheritance {
    double coefficients[ORDER_MAX];
    size_t order;
    double left; /* the part of the variance that is not inherited */
};

/* One more value before, by Burg's recursion; `ahead` and `back` are the errors of predictions in
 * both directions. */
static void add_order(struct inheritance *h, double *ahead, double *back, size_t count)
{
    double both = 0, squares = 0, before[ORDER_MAX];
    size_t order = ++h->order;
    for (size_t i = order; i < count; i++) {
        both += ahead[i] * back[i - 1];
        squares += ahead[i] * ahead[i] + back[i - 1] * back[i - 1];
    }
    double part = squares > 0 ? 2 * both / squares : 0;
    memcpy(before, h->coefficients, sizeof(before));
    for (size_t k = 0; k + 1 < order; k++)
        h->coefficients[k] -= part * before[order - 2 - k];
    h->coefficients[order - 1] = part;
    for (size_t i = count - 1; i >= order; i--) {
        double kept = ahead[i];
        ahead[i] -= part * back[i - 1];
        back[i] = back[i - 1] - part * kept;
    }
    h->left *= 1 - part * part;
}

static struct inheritance inheritance_of(const double *rest, size_t count, double lag1,
                                         double *room)
{
    double *ahead = room, *back = room + count, n = (double)count, best = 0;
    double price = 2 + ORDER_PRICE / n;
    struct inheritance h = {.left = 1}, found = h;
    memcpy(ahead, rest, count * sizeof(double));
    memcpy(back, rest, count * sizeof(double));
    while (h.order < ORDER_MAX) {
        add_order(&h, ahead, back, count);
        double criterion = n * log(fmax(h.left, 1e-12)) + price * (double)h.order;
        if (criterion < best) {
            best = criterion;
            found = h;
        }
    }
    if (found.order <= 1) { /* that is fitted better already, but for its bias */
        found.order = 1;
        found.coefficients[0] = fmin(lag1 + 1.5 * (1 + 3 * lag1) / n, LAG1_MAX);
        found.left = 1 - found.coefficients[0] * found.coefficients[0];
    }
    return found;
}

static double inherited(const struct inheritance *h, const double *rest, size_t i)
{
    double sum = 0;
    for (size_t k = 1; k <= h->order && k <= i; k++)
        sum += h->coefficients[k - 1] * rest[i - k];
    return sum;
}

/* What series without a shift are made of. */
struct innovations {
    struct inheritance inheritance;
    double *values, *made;
    size_t count;
    bool are_normal; /* all but the one at the shift */
};

static void take_innovations(struct innovations *e, const struct series *s, const struct fit *f,
                             size_t at, double *room)
{
    size_t n = s->count;
    double *rest = e->made, mean = 0;
    for (size_t i = 0; i < n; i++)
        rest[i] = s->values[i] - (i < at ? f->before : f->after);
    e->inheritance = inheritance_of(rest, n, f->lag1, room);
    for (size_t i = 0; i < n; i++)
        e->values[i] = rest[i] - inherited(&e->inheritance, rest, i);
    e->values[0] *= sqrt(e->inheritance.left); /* it inherits from what is not known */
    e->values[at] += f->after - f->before;
    for (size_t i = 0; i < n; i++)
        mean += e->values[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        e->values[i] -= mean;
    double shift = e->values[at];
    e->values[at] = e->values[n - 1];
    e->values[n - 1] = shift;
    e->are_normal = look_normal(e->values, n - 1);
}

/* A series without a shift; `e->made` has WARM_UP values before it. */
static const double *make_series(struct innovations *e, struct rng *rng)
{
    size_t n = e->count;
    for (size_t i = e->are_normal ? 0 : n; i > 1; i--) {
        size_t j = (size_t)rng_below(rng, i);
        double kept = e->values[i - 1];
        e->values[i - 1] = e->values[j];
        e->values[j] = kept;
    }
    for (size_t i = 0; i < WARM_UP + n; i++) {
        double innovation = e->are_normal ? rng_normal(rng) : e->values[(i + n - WARM_UP % n) % n];
        e->made[i] = inherited(&e->inheritance, e->made, i) + innovation;
    }
    return e->made + WARM_UP;
}

/* How often such series show as much; 1 as soon as that is too often. */
static double chance_of(struct innovations *e, struct series *s, double found, double chance,
                        struct rng *rng)
{
    double trials = fmin(fmax(TRIALS_MIN, ceil(2 / chance) - 1), TRIALS_MAX);
    double most = floor(chance * (trials + 1) + 1e-9), as_much = 1;
    for (double k = 0; k < trials && as_much <= most; k++) {
        struct fit ignored;
        size_t at;
        sum_up(s, make_series(e, rng));
        as_much += best_shift(s, &at, &ignored) >= found * (1 - 1e-9);
    }
    return as_much > most ? 1 : as_much / (trials + 1);
}

/* The values around their mean, with their largest distance from it as the unit, so that squares
 * keep their digits; false when all are equal. */
static bool centre(const double *values, size_t count, double *ret_values)
{
    double mean = 0, largest = 0;
    for (size_t i = 0; i < count; i++)
        mean += values[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(values[i] - mean));
    for (size_t i = 0; i < count && largest > 0; i++)
        ret_values[i] = (values[i] - mean) / largest;
    return largest > 0 && isfinite(largest);
}

/* Takes 4 count + 3 of `memory`. */
static bool load(struct series *s, const double *values, size_t count, double *memory)
{
    *s = (struct series){.sums = memory + count,
                         .squares = memory + 2 * count + 1,
                         .products = memory + 3 * count + 2,
                         .count = count};
    if (!centre(values, count, memory))
        return false;
    sum_up(s, memory);
    return true;
}

/* Most values of the shorter side lie on its side: not only a few far ones. */
static bool most_have_shifted(const struct series *s, const struct fit *f, size_t at)
{
    bool is_end = at > s->count / 2;
    size_t from = is_end ? at : 0, to = is_end ? s->count : at, shifted = 0;
    for (size_t i = from; i < to; i++)
        shifted +=
            (s->values[i] > (f->before + f->after) / 2) == (is_end == (f->after > f->before));
    return 2 * shifted > to - from;
}

bool level_shift_find(const double *values, size_t count, double chance, struct rng *rng,
                      struct level_shift *ret_shift)
{
    if (count < SERIES_MIN || !(chance * (TRIALS_MAX + 1) >= 1))
        return false;
    double *memory CLEANUP(memory_freep) = memory_alloc((8 * count + 3 + WARM_UP) * sizeof(double));
    struct series s;
    struct fit fit;
    size_t at = 0;
    if (!load(&s, values, count, memory))
        return false;
    double found = best_shift(&s, &at, &fit);
    if (!(found > 0) || !most_have_shifted(&s, &fit, at))
        return false;
    struct innovations e = {
        .values = memory + 4 * count + 3, .made = memory + 5 * count + 3, .count = count};
    take_innovations(&e, &s, &fit, at, memory + 6 * count + 3 + WARM_UP);
    double p = chance_of(&e, &s, found, chance, rng);
    if (p > chance)
        return false;
    *ret_shift = (struct level_shift){at, p};
    return true;
}

size_t level_shift_place(const double *values, size_t count)
{
    double *memory CLEANUP(memory_freep) = memory_alloc((4 * count + 3) * sizeof(double));
    struct series s;
    struct fit fit;
    size_t at = count / 2;
    if (load(&s, values, count, memory))
        best_shift(&s, &at, &fit);
    return at;
}

/* SPDX-License-Identifier: MIT */
/*
 * See crossover.h.  Between two measured sizes the log of the ratio is taken to run straight over
 * the log of the size, with independent errors at both ends, so that its interval at a place
 * between them follows from theirs.  The interval of the crossover holds all sizes at which a ratio
 * of 1 lies within the interval of the ratio: the inversion that Fieller (1954) uses for the zero
 * of a line.  A bootstrap of the medians was tried: it is narrower for independent rounds and
 * covers as well there, but only 80 % where rounds depend on each other (docs/METHOD.md).
 * Neighbouring sizes are often far apart, and the way between them is seldom straight; so where the
 * costs of both would meet if they had a fixed part and one that grows lies within it, too.
 */
#include "fits/crossover.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>

enum { STEPS = 1024 }; /* per pair of neighbouring sizes: to 0.1 % of their distance */

/* The logs of one point. */
struct knot {
    double at, ratio, low, high;
    int sign; /* of the difference that it shows, 0 when it shows none */
};

static struct knot knot_of(const struct crossover_point *p)
{
    const struct comparison *c = &p->comparison;
    struct knot k = {log(p->size), log(c->estimate), log(c->low), log(c->high), 0};
    if (comparison_differs(c))
        k.sign = c->low > 1 ? 1 : -1;
    return k;
}

/* Does the interval of the ratio hold 1 at a share of the way from a to b? */
static bool holds_one(const struct knot *a, const struct knot *b, double share)
{
    double rest = 1 - share, ratio = rest * a->ratio + share * b->ratio;
    double low = ratio - hypot(rest * (a->ratio - a->low), share * (b->ratio - b->low));
    double high = ratio + hypot(rest * (a->high - a->ratio), share * (b->high - b->ratio));
    return low <= 0 && high >= 0;
}

/* The length of the way from a to b on which the ratio has the sign of a's side. */
static double length_before(const struct knot *a, const struct knot *b, int sign)
{
    double length = b->at - a->at;
    bool first = a->ratio * sign > 0, last = b->ratio * sign > 0;
    if (first == last)
        return first ? length : 0;
    double share = a->ratio / (a->ratio - b->ratio);
    return first ? share * length : (1 - share) * length;
}

/* The crossover between knots[0] and knots[count - 1], which show opposite signs. */
static struct crossover locate(const struct knot *knots, size_t count)
{
    double at = knots[0].at, low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i + 1 < count; i++) {
        const struct knot *a = &knots[i], *b = &knots[i + 1];
        at += length_before(a, b, knots[0].sign);
        for (int step = 0; step <= STEPS; step++) {
            double share = (double)step / STEPS;
            if (!holds_one(a, b, share))
                continue;
            double place = a->at + share * (b->at - a->at);
            low = fmin(low, place);
            high = fmax(high, place);
        }
    }
    /* Between two sharp points the interval may be narrower than a step. */
    low = fmin(low, at);
    high = fmax(high, at);
    return (struct crossover){exp(at), exp(low), exp(high), knots[0].sign < 0};
}

/* Where costs of `a + b·size` or `a + b/size` meet, of two programs whose values at both ends are
 * known: the log of that size.  `power` is 1 or -1 for the size, `reciprocal` takes the values for
 * rates, whose reciprocals are the costs. */
static double meet(const struct crossover_point *a, const struct crossover_point *b, int power,
                   bool reciprocal)
{
    double first = a->comparison.base_median, last = b->comparison.base_median;
    double before = reciprocal ? (1 / a->comparison.estimate - 1) / first
                               : (a->comparison.estimate - 1) * first;
    double after =
        reciprocal ? (1 / b->comparison.estimate - 1) / last : (b->comparison.estimate - 1) * last;
    double share = before / (before - after), from = pow(a->size, power), to = pow(b->size, power);
    return log(from + share * (to - from)) / power;
}

/* A curve may bend between two sizes.  Costs with a fixed part, and a part for each byte or thread,
 * rise with the size (and what is told for a byte falls); the interval takes in where such curves
 * would meet.  Both programs' values tell which of them can be. */
static void allow_bend(struct crossover *x, const struct crossover_point *a,
                       const struct crossover_point *b)
{
    double base_a = a->comparison.base_median, base_b = b->comparison.base_median;
    if (!(base_a > 0) || !(base_b > 0))
        return;
    double rise = base_b / base_a, other = rise * b->comparison.estimate / a->comparison.estimate;
    double up = fmax(rise, other), down = 1 / fmin(rise, other), low = x->low, high = x->high;
    for (int rises = 0; rises < 2; rises++) {
        double this_way = rises ? up : down;
        if (this_way < fmin(1.1, fmax(up, down)))
            continue; /* they go the other way, or stay */
        for (int reciprocal = 0; reciprocal < 2; reciprocal++) {
            double place = meet(a, b, rises != reciprocal ? 1 : -1, reciprocal);
            low = fmin(low, x->low * exp(place) / x->size);
            high = fmax(high, x->high * exp(place) / x->size);
        }
    }
    x->low = fmax(low, a->size);
    x->high = fmin(high, b->size);
}

static int check(const struct crossover_point *points, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct comparison *c = &points[i].comparison;
        if (!isfinite(points[i].size) || points[i].size <= 0)
            return error_set(err, -EINVAL, "a size of %g cannot be drawn on a logarithmic axis",
                             points[i].size);
        if (i > 0 && points[i].size <= points[i - 1].size)
            return error_set(err, -EINVAL, "size %g comes after size %g; sizes must ascend",
                             points[i].size, points[i - 1].size);
        if (c->scale != COMPARISON_RATIO || isnan(c->low) || isnan(c->high))
            return error_set(err, -EINVAL, "size %g has no ratio with an interval", points[i].size);
    }
    return 0;
}

int crossovers_find(const struct crossover_point *points, size_t count,
                    struct crossovers *ret_crossovers, struct error *err)
{
    int r = check(points, count, err);
    if (r < 0)
        return r;
    struct knot *knots CLEANUP(memory_freep) = memory_zalloc(count + 1, sizeof(*knots));
    struct crossovers found = {.state = CROSSOVER_CANNOT_TELL};
    size_t capacity = 0, last = 0;
    for (size_t i = 0; i < count; i++) {
        knots[i] = knot_of(&points[i]);
        if (knots[i].sign == 0)
            continue;
        if (found.state == CROSSOVER_CANNOT_TELL)
            found.state = knots[i].sign < 0 ? CROSSOVER_NEW_LOWER : CROSSOVER_NEW_HIGHER;
        else if (knots[i].sign != knots[last].sign) {
            struct crossover x = locate(knots + last, i - last + 1);
            if (i == last + 1)
                allow_bend(&x, &points[last], &points[i]);
            ARRAY_PUSH(found.items, found.count, capacity) = x;
        }
        last = i;
    }
    if (found.count > 0)
        found.state = CROSSOVER_FOUND;
    *ret_crossovers = found;
    return 0;
}

void crossovers_done(struct crossovers *crossovers)
{
    free(crossovers->items);
    *crossovers = (struct crossovers){0};
}

/* SPDX-License-Identifier: MIT */
/*
 * What the rounds of a step say: see bisection.h.
 *
 * A step is looked at several times, and each look is an opportunity to be wrong.  Where intervals
 * decide, every look has the same share of the step's chance (Bonferroni): that holds whatever the
 * looks have to do with each other, and costs a few rounds only, because the looks are few.  Where
 * a candidate is as one of two ends that differ, a likelihood ratio decides, which may be looked at
 * as often as one likes: see bisection_split.c.
 */
#include "analysis/judge.h"
#include "base/memory.h"
#include "bisect/bisection_internal.h"

#include <assert.h>
#include <math.h>

static size_t next_look(size_t rounds, size_t rounds_max)
{
    size_t next = rounds + (rounds + 1) / 2;
    return next < rounds_max ? next : rounds_max;
}

/* A likelihood ratio may be looked at always; seldom is enough where there are many rounds. */
static size_t next_glance(size_t rounds, size_t rounds_max)
{
    size_t next = rounds + 1 + rounds / 16;
    return next < rounds_max ? next : rounds_max;
}

static size_t look_count(const struct bisection_options *o)
{
    size_t count = 1;
    for (size_t at = o->rounds_first; at < o->rounds_max; at = next_look(at, o->rounds_max))
        count++;
    return count;
}

struct relative comparison_shift(const struct comparison *c)
{
    if (c->scale == COMPARISON_RATIO)
        return (struct relative){log(c->estimate), log(c->low), log(c->high)};
    double unit = c->base_median != 0 ? fabs(c->base_median) : 1;
    return (struct relative){c->estimate / unit, c->low / unit, c->high / unit};
}

static struct comparison compare(const double *base, const double *new, size_t count, double level)
{
    struct comparison c;
    struct judge_values values = {base, new, count, count, .paired = true};
    int r = judge_values(&values, level, &c, NULL);
    assert(r == 0); /* values are finite and there are some */
    return c;
}

/* What the interval says: sure to be above or below zero, sure to be nothing that matters. */
static bool is_apart(struct relative r)
{
    return r.low > 0 || r.high < 0;
}

static bool is_within(struct relative r, double bound)
{
    return r.low >= -bound && r.high <= bound;
}

/* Whether hi and lo, of which `expected` was known, differ by less than half of that, surely. */
static bool is_refuted(struct relative whole, const struct expectation *expected)
{
    double most = expected->shift < 0 ? -whole.low : whole.high;
    return most < fabs(expected->shift) / 2;
}

struct expectation expectation_from(const struct comparison *c)
{
    struct relative r = comparison_shift(c);
    double half = (r.high - r.low) / 2;
    if (!(half < INFINITY)) /* or none at all */
        return (struct expectation){r.estimate, 0};
    half = fmax(half, fabs(r.estimate) * 1e-6);
    return (struct expectation){r.estimate, half > 0 ? 1 / (half * half) : 0};
}

struct expectation expectation_join(struct expectation a, const struct comparison *more)
{
    struct expectation b = expectation_from(more);
    struct relative r = comparison_shift(more);
    double weight = a.weight + b.weight;
    if (!(weight > 0) || !(r.low <= a.shift && r.high >= a.shift))
        return a;
    return (struct expectation){(a.weight * a.shift + b.weight * b.shift) / weight, weight};
}

/* The interval at the level that was asked for; everything where too few rounds can give none. */
static struct relative interval_at(const struct comparison *c, double level)
{
    struct relative r = comparison_shift(c);
    return c->level < level ? (struct relative){r.estimate, -INFINITY, INFINITY} : r;
}

/* The intervals of one look. */
struct look {
    struct relative whole, left, right;
};

static struct look take_look(struct bisection_step *step, double level)
{
    size_t n = step->round_count;
    const double *lo = step->values[0], *hi = step->values[1], *mid = step->values[2];
    struct comparison whole = compare(lo, hi, n, level);
    struct look look = {.whole = interval_at(&whole, level)};
    step->whole = compare(lo, hi, n, 0.95);
    step->p = whole.p;
    if (step->mid == BISECTION_NONE)
        return look;
    struct comparison left = compare(lo, mid, n, level), right = compare(mid, hi, n, level);
    look.left = interval_at(&left, level);
    look.right = interval_at(&right, level);
    step->left = compare(lo, mid, n, 0.95);
    step->right = compare(mid, hi, n, 0.95);
    return look;
}

static enum bisection_outcome judge_ends(const struct look *look, const struct bisection_options *o)
{
    if (is_within(look->whole, o->min_change))
        return BISECTION_SAME;
    return is_apart(look->whole) ? BISECTION_DIFFERS : BISECTION_OPEN;
}

/* One change is looked for: is the candidate as lo or as hi? */
static enum bisection_outcome judge_split_one(struct bisection_step *step, const struct look *look,
                                              const struct expectation *expected, bool is_last)
{
    double sign = expected->shift < 0 ? -1 : 1;
    if (is_apart(look->left) && is_apart(look->right) && sign * look->left.estimate > 0 &&
        sign * look->right.estimate > 0)
        return BISECTION_BOTH;
    struct split_weights weights = bisection_weigh(step, expected->shift);
    double needed = log((1 - step->chance) / step->chance);
    step->p = 1 / (1 + exp(fabs(weights.is_hi)));
    if (weights.differs < -needed)
        return BISECTION_REFUTED;
    if (fabs(weights.is_hi) < needed)
        return is_last && weights.differs < 0 ? BISECTION_REFUTED : BISECTION_OPEN;
    return weights.is_hi > 0 ? BISECTION_LEFT : BISECTION_RIGHT;
}

/* All changes are looked for: each half for itself. */
static enum bisection_outcome judge_split_all(struct bisection_step *step, const struct look *look,
                                              const struct bisection_options *o, bool is_last)
{
    bool left_same = is_within(look->left, o->min_change);
    bool right_same = is_within(look->right, o->min_change);
    bool left = !left_same && is_apart(look->left), right = !right_same && is_apart(look->right);
    step->left_unsure = !left && !left_same;
    step->right_unsure = !right && !right_same;
    bool unsure = step->left_unsure || step->right_unsure;
    if (!is_last && unsure)
        return BISECTION_OPEN;
    return left && right ? BISECTION_BOTH
           : left        ? BISECTION_LEFT
           : right       ? BISECTION_RIGHT
           : unsure      ? BISECTION_UNDECIDED
                         : BISECTION_SAME;
}

/* The one look of a confirmation, after the rounds that were set. */
static enum bisection_outcome judge_confirm(const struct bisection_step *step,
                                            const struct look *look,
                                            const struct expectation *expected)
{
    if (is_apart(look->whole) && expected->shift * look->whole.estimate > 0)
        return BISECTION_DIFFERS;
    return is_refuted(comparison_shift(&step->whole), expected) ? BISECTION_REFUTED
                                                                : BISECTION_UNDECIDED;
}

void bisection_judge(struct bisection_step *step, const struct bisection_options *o,
                     const struct expectation *expected)
{
    bool is_confirm = step->kind == BISECTION_CONFIRM;
    bool is_last = is_confirm || step->round_count >= o->rounds_max;
    double chance = is_confirm ? step->chance : step->chance / (double)look_count(o);
    struct look look = take_look(step, 1 - chance);
    if (is_confirm)
        step->outcome = judge_confirm(step, &look, expected);
    else if (step->kind == BISECTION_ENDS)
        step->outcome = judge_ends(&look, o);
    else if (o->all)
        step->outcome = judge_split_all(step, &look, o, is_last);
    else
        step->outcome = judge_split_one(step, &look, expected, is_last);
    if (step->outcome == BISECTION_OPEN && is_last)
        step->outcome = BISECTION_UNDECIDED;
    bool is_glance = step->kind == BISECTION_SPLIT && !o->all;
    step->wanted = (is_glance ? next_glance : next_look)(step->round_count, o->rounds_max);
}

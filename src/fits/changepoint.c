/* SPDX-License-Identifier: MIT */
/*
 * See changepoint.h.  The energy distance between two samples is twice the mean distance across
 * minus the mean distances within; it is zero only for equal distributions.  With prefix sums of
 * the distance matrix it is had in constant time for any two neighbouring stretches, so all splits
 * (and all ends of the right stretch, as the paper has it, so that a bump is seen too) cost n^2.
 * Distances are taken between ranks: one wild value must not outweigh a level.
 *
 * Shuffling takes values without a change to be exchangeable; results that resemble the one before
 * are not.  So their autocorrelation is estimated once, from the steps between neighbours (a change
 * of level is one large step among many), and what each value inherits from the one before it is
 * taken away before the search.
 *
 * That takes levels for dependence where there is hardly any noise, as with exact counts: a value
 * inherits nearly all from the one before it.  So a jump is looked for first: a step far beyond the
 * usual ones is none of those that dependence makes, however strong, and is judged by itself.
 *
 * And it takes most of a step away with the dependence, but for one large value, which is one of
 * many to ranks.  So shifts that last are looked for by what they do to an autoregressive series
 * (level_shift.h).  They share the chance: the more values depend on each other, the less of it is
 * left for ranks.
 */
#include "fits/changepoint.h"
#include "base/memory.h"
#include "fits/level_shift.h"
#include "fits/normality.h"
#include "numbers/random.h"
#include "numbers/sort.h"
#include "stats/dependence.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define LAG1_MAX 0.97
#define LAG1_FEW 0.3
#define CLEAR_DEVIATIONS                                                                       \
    12                    /* of the shuffled; less than one in 10,000 for any number of splits \
                           */
#define SPIKE_STEPS 8     /* usual steps from one value to the next */
#define JUMP_STEPS 6      /* the same, of a jump: among few values */
#define JUMP_STEPS_MANY 7 /* and among more, which have more to choose from */
#define JUMP_STEPS_SURE 50

enum { PERMUTATIONS = 399, PERMUTATIONS_CLEAR = 99, PERMUTATIONS_MAX = 3999 };

/* Fewer values show too little of how they depend on each other to look for lasting shifts. */
enum { SHIFTS_FROM = 100 };

/* The part of the chance that is used; the rest is for what is not known of the autocorrelation
 * (bench/stats-coverage), the less the more values there are. */
static double used_part(size_t count)
{
    return count < SHIFTS_FROM ? 0.6 : count < 300 ? 0.5 : 0.6;
}

/* And of that, the part of ranks.  The more a value resembles the one before it, the more an error
 * of the autocorrelation looks like a change of level to them: from 0.5 on, they have less, until
 * they find next to nothing.  Shifts, whose own errors are within their chance, have the rest. */
static double rank_part(double lag1, size_t count)
{
    double trust = fmin(1, 4 * (1 - lag1) * (1 - lag1));
    if (count < SHIFTS_FROM)
        return trust;
    return lag1 > 0.85 ? 0 : 0.6 * trust;
}

enum found_by { BY_RANKS, BY_JUMP, BY_SHIFT };

struct bound {
    size_t at;
    double p;
    enum found_by by;
};

struct search {
    const double *values;
    double *scores; /* of all values: ranks within their segment over its length */
    double *room;   /* for ranking, three times the number of values */
    double *sums;   /* room for prefix sums of distances, (length + 1)^2 of the longest segment */
    struct rng rng;
    /* The changes found so far: segment k is [bounds[k].at, bounds[k + 1].at). */
    struct bound *bounds;
    size_t segment_count;
    size_t stretch_end; /* where the right stretch of the last best_split ends */
    double lag1;        /* the autocorrelation that is taken away; 0 for none */
    double usual_step;  /* from one value to the next; < 0: no step is a jump */
    double jump_steps;  /* what makes one, in usual steps */
    bool jumps_only;    /* which steps are jumps is known before values are shuffled */
    size_t permutations;
};

/* sums[i][j] = sum of |scores[a] - scores[b]| over a < i, b < j. */
static void sum_distances(const double *scores, size_t count, double *sums)
{
    size_t width = count + 1;
    memset(sums, 0, width * sizeof(double));
    for (size_t i = 0; i < count; i++) {
        double row = 0, *above = sums + i * width, *here = above + width;
        here[0] = 0;
        for (size_t j = 0; j < count; j++) {
            row += fabs(scores[i] - scores[j]);
            here[j + 1] = above[j + 1] + row;
        }
    }
}

/* The statistic of the stretches [0, split) and [split, end). */
static double energy(const double *sums, size_t width, size_t split, size_t end)
{
    double n = (double)split, m = (double)(end - split);
    double left = sums[split * width + split];
    double across = sums[split * width + end] - left;
    double right = sums[end * width + end] - left - 2 * across;
    return n * m / (n + m) * (2 * across / (n * m) - left / (n * (n - 1)) - right / (m * (m - 1)));
}

/* The value at `split` is far from the one before it, and (but for one each) so are the next ones
 * from the last ones: two spikes side by side are no jump. */
static bool is_jump(const struct search *s, size_t split)
{
    const double *at = s->values + split;
    double step = at[0] - at[-1], middle = at[-1] + step / 2;
    if (s->usual_step < 0 || fabs(step) <= s->jump_steps * s->usual_step)
        return false;
    int strays = 0, stray_befores = 0;
    for (int i = 0; i < CHANGE_POINT_SEGMENT_MIN; i++) {
        strays += (at[i] - middle) * step <= 0;
        stray_befores += (at[-1 - i] - middle) * step >= 0;
    }
    return strays <= 1 && stray_befores <= 1;
}

/* The best split of one segment; with `whole`, only splits of all of it count. */
static double best_split(struct search *s, size_t start, size_t count, bool whole,
                         size_t *ret_split)
{
    double best = -INFINITY;
    size_t least = CHANGE_POINT_SEGMENT_MIN;
    if (count < 2 * least)
        return best;
    sum_distances(s->scores + start, count, s->sums);
    for (size_t split = least; split + least <= count; split++) {
        if (s->jumps_only && !is_jump(s, start + split))
            continue;
        for (size_t end = whole ? count : split + least; end <= count; end++) {
            double value = energy(s->sums, count + 1, split, end);
            if (value > best) {
                best = value;
                *ret_split = start + split;
                s->stretch_end = start + end;
            }
        }
    }
    return best;
}

static void rank_in_place(double *values, size_t count, double *room)
{
    double *ranks = room + count;
    memcpy(room, values, count * sizeof(double));
    sort_doubles(room, count);
    rank_doubles(values, room, count, ranks);
    memcpy(values, ranks, count * sizeof(double));
}

/* The scores of a segment: ranks, without what they inherit if `white`, over their number. */
static void load_ranks(struct search *s, size_t start, size_t count, bool white)
{
    double *scores = s->scores + start, mean = ((double)count + 1) / 2;
    memcpy(scores, s->values + start, count * sizeof(double));
    rank_in_place(scores, count, s->room);
    if (white && s->lag1 > 0 && count > 1) {
        for (size_t i = count; i-- > 1;)
            scores[i] -= mean + s->lag1 * (scores[i - 1] - mean);
        scores[0] = (scores[0] - mean) * sqrt(1 - s->lag1 * s->lag1);
        rank_in_place(scores, count, s->room);
    }
    for (size_t i = 0; i < count; i++)
        scores[i] /= (double)count;
}

/* Neighbouring steps of an autocorrelation r have the correlation -(1 - r) / 2; ranks of the steps
 * make it 6/π asin(half of it). */
static double lag1_by_steps(struct search *s, size_t count)
{
    double n = (double)count, mean = n / 2, products = 0, squares = 0, *steps = s->room + 2 * count;
    for (size_t i = 1; i < count; i++)
        steps[i - 1] = s->values[i] - s->values[i - 1];
    rank_in_place(steps, count - 1, s->room);
    for (size_t i = 0; i + 1 < count; i++) {
        squares += (steps[i] - mean) * (steps[i] - mean);
        products += i > 0 ? (steps[i] - mean) * (steps[i - 1] - mean) : 0;
    }
    double ranked = squares > 0 ? products / squares : -0.5;
    return 1 + 4 * sin(M_PI / 6 * ranked);
}

static void level_out(struct search *s, size_t start, size_t end, double *rest)
{
    double median = stats_median(s->values + start, end - start, s->room);
    for (size_t i = start; i < end; i++)
        rest[i] = s->values[i] - median;
}

/* What is left when the stretches of the best split (a step, or a bump) have the same median. */
static double lag1_by_rest(struct search *s, size_t count)
{
    size_t split = count / 2;
    double *rest = s->room + 2 * count;
    s->stretch_end = count;
    load_ranks(s, 0, count, false);
    best_split(s, 0, count, false, &split);
    level_out(s, 0, split, rest);
    level_out(s, split, s->stretch_end, rest);
    level_out(s, s->stretch_end, count, rest);
    rank_in_place(rest, count, s->room);
    struct dependence d;
    dependence_estimate(rest, count, &d);
    return d.lag1;
}

/* Few values cannot tell dependence from none: so much of it is taken for granted. */
static double lag1_assumed(size_t count)
{
    return LAG1_FEW * fmin(1, fmax(0, (100.0 - (double)count) / 60));
}

/* What chance does in independent values counts as none.  To the rest its error is added: taking
 * too much away costs power, taking too little makes alarms.  Steps know nothing of levels, but
 * their error is twice as large. */
static double autocorrelation_of(struct search *s, size_t count)
{
    double root = sqrt((double)count), assumed = lag1_assumed(count);
    if (count < 2 * CHANGE_POINT_SEGMENT_MIN)
        return 0;
    double by_steps = lag1_by_steps(s, count), by_rest = lag1_by_rest(s, count);
    if (fmin(by_steps, by_rest) * root < 0.7)
        return assumed;
    return fmin(fmax(fmin(by_steps + 4 / root, by_rest + 2 / root), assumed), LAG1_MAX);
}

static double middle(double a, double b, double c)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

/* A single value far from both neighbours, on the same side of them, is a spike: it is neither a
 * level nor a sign of dependence, and the nearer neighbour stands for it in the search.  The first
 * and the last value have the next two for neighbours. */
static void level_spikes(double *values, size_t count, double *room)
{
    double *steps = room + count, before, given;
    if (count < 2 * CHANGE_POINT_SEGMENT_MIN)
        return;
    for (size_t i = 1; i < count; i++)
        steps[i - 1] = fabs(values[i] - values[i - 1]);
    double far = SPIKE_STEPS * stats_median(steps, count - 1, room);
    before = values[2];
    for (size_t i = 0; i < count; i++, before = given) {
        given = values[i];
        double level = middle(before, given, values[i + 1 < count ? i + 1 : i - 2]);
        if (fabs(given - level) > far)
            values[i] = level;
    }
}

/* The least distance of two values that differ; 0 when all are equal. */
static double tick_of(const double *values, size_t count, double *room)
{
    double tick = INFINITY;
    memcpy(room, values, count * sizeof(double));
    sort_doubles(room, count);
    for (size_t i = 1; i < count; i++)
        if (room[i] > room[i - 1])
            tick = fmin(tick, room[i] - room[i - 1]);
    return isfinite(tick) ? tick : 0;
}

/* Values of a clock much coarser than the noise hide how they depend on each other: they are put
 * back to anywhere within their tick. */
static void spread_ticks(double *values, size_t count, double tick, struct rng *rng)
{
    for (size_t i = 0; i < count; i++)
        values[i] += tick * (rng_uniform(rng) - 0.5);
}

/* The best split in any segment; shuffles the scores within each first, if asked to. */
static double best_of_all(struct search *s, bool shuffled, size_t *ret_split, size_t *ret_segment)
{
    double best = -INFINITY;
    for (size_t k = 0; k < s->segment_count; k++) {
        size_t start = s->bounds[k].at, count = s->bounds[k + 1].at - start, split = 0;
        for (size_t i = shuffled ? count : 0; i > 1; i--) {
            size_t j = (size_t)rng_below(&s->rng, i);
            double kept = s->scores[start + i - 1];
            s->scores[start + i - 1] = s->scores[start + j];
            s->scores[start + j] = kept;
        }
        double value = best_split(s, start, count, false, &split);
        if (value > best) {
            best = value;
            *ret_split = split;
            *ret_segment = k;
        }
    }
    return best;
}

/* How often values shuffled within their segments show as much.  Stops as soon as the answer is
 * "too often", and early when it is "never": when it is sure enough already, or when what was found
 * is so far beyond what shuffling does that more of it would not show how rare it is. */
static double permutation_p(struct search *s, double found, double chance)
{
    double all = (double)s->permutations + 1;
    size_t as_much = 1, split, segment, most = (size_t)(chance * all + 1e-9);
    struct running shuffled = {0};
    for (size_t k = 0; k < s->permutations; k++) {
        double value = best_of_all(s, true, &split, &segment);
        as_much += value >= found - 1e-9 * fabs(found);
        if (as_much > most)
            return 1;
        running_add(&shuffled, value);
        if (k + 1 == PERMUTATIONS_CLEAR && as_much == 1 &&
            (chance * (PERMUTATIONS_CLEAR + 1) >= 1 ||
             found > shuffled.mean + CLEAR_DEVIATIONS * running_stddev(&shuffled)))
            return fmin(chance, 1.0 / (PERMUTATIONS_CLEAR + 1));
    }
    return (double)as_much / all;
}

/* Where most values repeat the one before them, any step is far beyond the usual; but a coarse
 * clock does that, too, and then goes back and forth.  Levels that are never seen again are no such
 * thing. */
static bool levels_return(const double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = 0; k + 1 < i && values[i] != values[i - 1]; k++)
            if (values[k] == values[i])
                return true;
    return false;
}

static double usual_step_of(struct search *s, size_t count)
{
    double *steps = s->room + count;
    if (count < 2 * CHANGE_POINT_SEGMENT_MIN)
        return -1;
    for (size_t i = 1; i < count; i++)
        steps[i - 1] = fabs(s->values[i] - s->values[i - 1]);
    double usual = stats_median(steps, count - 1, s->room);
    return usual > 0 || !levels_return(s->values, count) ? usual : -1;
}

/* A jump is so many usual steps.  Noise with heavy tails makes large steps, too, and where results
 * depend on each other they last for a while: unless all other steps are like those of normal
 * noise, only those that no noise makes are jumps then, as between exact counts. */
static double jump_steps_of(struct search *s, size_t count)
{
    double *steps = s->room;
    size_t others = 0;
    if (count < SHIFTS_FROM)
        return count >= 40 && s->lag1 > 0.7 ? JUMP_STEPS_SURE : JUMP_STEPS;
    for (size_t i = 1; i < count; i++) {
        double step = s->values[i] - s->values[i - 1];
        if (fabs(step) <= JUMP_STEPS_MANY * s->usual_step)
            steps[others++] = step;
    }
    return look_normal(steps, others) ? JUMP_STEPS_MANY : JUMP_STEPS_SURE;
}

/* The clearest split (`white`: of values without what they inherit; else the clearest jump) if
 * chance would not do as much; its p, or 1. */
static double clearest(struct search *s, bool white, double chance, size_t *ret_split,
                       size_t *ret_segment)
{
    for (size_t k = 0; k < s->segment_count; k++)
        load_ranks(s, s->bounds[k].at, s->bounds[k + 1].at - s->bounds[k].at, white);
    s->jumps_only = !white;
    double best = best_of_all(s, false, ret_split, ret_segment);
    if (!isfinite(best))
        return 1;
    /* As many permutations as it takes to be that sure. */
    s->permutations = (size_t)fmax(PERMUTATIONS, ceil(1 / chance - 1e-9) - 1);
    double p = permutation_p(s, best, chance);
    return p > chance ? 1 : p;
}

/* A lasting shift of level in any segment; each has its part of the chance. */
static void find_shift(struct search *s, double chance, struct bound *ret_bound,
                       size_t *ret_segment)
{
    size_t all = s->bounds[s->segment_count].at;
    for (size_t k = 0; k < s->segment_count; k++) {
        size_t start = s->bounds[k].at, count = s->bounds[k + 1].at - start;
        struct level_shift shift;
        if (level_shift_find(s->values + start, count, chance * (double)count / (double)all,
                             &s->rng, &shift)) {
            *ret_bound = (struct bound){start + shift.index, shift.p, BY_SHIFT};
            *ret_segment = k;
            return;
        }
    }
}

/* The distances of a stretch from its median, in sum. */
static double distances_of(struct search *s, size_t start, size_t end)
{
    double median = stats_median(s->values + start, end - start, s->room), sum = 0;
    for (size_t i = start; i < end; i++)
        sum += fabs(s->values[i] - median);
    return sum;
}

/* Where to split [start, end), counted from its start: its sides lie closest around their
 * medians. */
static size_t closest_split(struct search *s, size_t start, size_t end)
{
    size_t least = CHANGE_POINT_SEGMENT_MIN, closest = least;
    double best = INFINITY;
    for (size_t split = start + least; split + least <= end; split++) {
        double sum = distances_of(s, start, split) + distances_of(s, split, end);
        if (sum < best) {
            best = sum;
            closest = split - start;
        }
    }
    return closest;
}

/* A change was placed when its neighbours were not known yet; places it again between them, by the
 * values. */
static void settle(struct search *s, enum found_by by)
{
    for (size_t k = 1; k < s->segment_count; k++) {
        size_t start = s->bounds[k - 1].at, end = s->bounds[k + 1].at;
        if (s->bounds[k].by != by)
            continue;
        size_t place = by == BY_SHIFT && s->lag1 > 0
                           ? level_shift_place(s->values + start, end - start)
                           : closest_split(s, start, end);
        s->bounds[k].at = start + place;
    }
}

/* The next change, and the segment that it divides. */
static bool find_next(struct search *s, double chance, struct bound *ret_bound, size_t *ret_segment)
{
    size_t count = s->bounds[s->segment_count].at;
    struct bound b = {.p = 1, .by = BY_JUMP};
    double used = used_part(count) * chance, ranks = rank_part(s->lag1, count) * used;
    if (s->lag1 > 0) /* which jumps know nothing of: they get half */
        b.p = clearest(s, false, used / 2, &b.at, ret_segment);
    if (b.p == 1 && count >= SHIFTS_FROM)
        find_shift(s, used - ranks, &b, ret_segment);
    if (b.p == 1 && ranks > 0) {
        b.p = clearest(s, true, fmax(ranks, 1.0 / (PERMUTATIONS_MAX + 1)), &b.at, ret_segment);
        b.by = BY_RANKS;
    }
    *ret_bound = b;
    return b.p < 1;
}

/* Splits the segments one by one, the clearest first, until chance would do as much.  A shift in
 * the wrong place leaves a bit of its step, which would be found as another one: so they are placed
 * again each time.  Ranks see bumps as a whole; they are placed at last.  A jump is where it is. */
static void divide(struct search *s, double chance)
{
    struct bound next;
    size_t segment = 0;
    while (find_next(s, chance, &next, &segment)) {
        memmove(s->bounds + segment + 2, s->bounds + segment + 1,
                (s->segment_count - segment) * sizeof(*s->bounds));
        s->bounds[segment + 1] = next;
        s->segment_count++;
        settle(s, BY_SHIFT);
    }
    settle(s, BY_RANKS);
}

static int describe(const struct search *s, struct change_points *points, struct error *err)
{
    points->count = s->segment_count - 1;
    points->points = memory_zalloc(s->segment_count, sizeof(points->points[0]));
    for (size_t k = 1; k < s->segment_count; k++) {
        struct change_point *point = &points->points[k - 1];
        size_t start = s->bounds[k - 1].at, at = s->bounds[k].at, end = s->bounds[k + 1].at;
        point->index = at;
        point->p = s->bounds[k].p;
        int r = stats_compare_unpaired(s->values + start, at - start, s->values + at, end - at,
                                       0.95, &point->change, err);
        if (r < 0) {
            change_points_done(points);
            return r;
        }
    }
    return 0;
}

static int check(const double *values, size_t count, double chance, struct error *err)
{
    if (count > CHANGE_POINT_VALUES_MAX)
        return error_set(
            err, -E2BIG,
            "a history of %zu values is too long to search for changes; use the last %d", count,
            CHANGE_POINT_VALUES_MAX);
    if (!(chance * (PERMUTATIONS + 1) >= 1 && chance < 1))
        return error_set(err, -EINVAL, "the chance %g is not between %g and 1", chance,
                         1.0 / (PERMUTATIONS + 1));
    return stats_check_finite(values, count, "value", err);
}

int change_points_find(const double *values, size_t count, double chance, uint64_t seed,
                       struct change_points *ret_points, struct error *err)
{
    int r = check(values, count, chance, err);
    if (r < 0)
        return r;
    size_t room = 5 * count + (count + 1) * (count + 1);
    double *memory CLEANUP(memory_freep) = memory_alloc(room * sizeof(double));
    double *calm = memory + room - count;
    struct bound *bounds CLEANUP(memory_freep) = memory_zalloc(count + 2, sizeof(*bounds));
    struct search search = {.values = calm,
                            .scores = memory,
                            .room = memory + count,
                            .sums = memory + 4 * count,
                            .bounds = bounds,
                            .segment_count = 1};
    bounds[1].at = count;
    rng_seed(&search.rng, seed);
    memcpy(calm, values, count * sizeof(double));
    search.usual_step = usual_step_of(&search, count);
    if (search.usual_step < 0)
        spread_ticks(calm, count, tick_of(calm, count, search.room), &search.rng);
    level_spikes(calm, count, search.room);
    search.lag1 = autocorrelation_of(&search, count);
    search.jump_steps = jump_steps_of(&search, count);
    divide(&search, chance);
    search.values = values;
    struct change_points points;
    r = describe(&search, &points, err);
    if (r == 0)
        *ret_points = points;
    return r;
}

void change_points_done(struct change_points *points)
{
    free(points->points);
    *points = (struct change_points){0};
}

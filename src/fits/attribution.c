/* SPDX-License-Identifier: MIT */
/* A change taken apart: see attribution.h. */
#include "fits/attribution.h"
#include "base/memory.h"
#include "numbers/distributions.h"
#include "numbers/sort.h"
#include "stats/median.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static double sum(const double *values, size_t count)
{
    double total = 0;
    for (size_t i = 0; values && i < count; i++)
        total += values[i];
    return total;
}

/* Half of the width of the median's interval; sorts the values. */
static double median_half_width(double *values, size_t count, double level, double *ret_median)
{
    struct median_interval m;
    sort_doubles(values, count);
    median_interval(values, count, level, &m);
    *ret_median = m.median;
    return count < 2 ? NAN : (m.high - m.low) / 2;
}

/* The error of part_b · cost of B − part_a · cost of A that comes from the measured runs. */
static double measured_half_width(const struct attribution *a, double part_a, double part_b)
{
    const struct attribution_side *sides = a->options.sides;
    double centre, squares = 0, parts[SIDE_COUNT] = {part_a, part_b};
    if (a->options.paired) {
        size_t count = sides[SIDE_A].measured_count;
        for (size_t i = 0; i < count; i++)
            a->scratch[i] = part_b * sides[SIDE_B].measured[i] - part_a * sides[SIDE_A].measured[i];
        return median_half_width(a->scratch, count, a->options.level, &centre);
    }
    for (size_t s = 0; s < SIDE_COUNT; s++) {
        size_t count = sides[s].measured_count;
        memcpy(a->scratch, sides[s].measured, count * sizeof(*a->scratch));
        double half = parts[s] * median_half_width(a->scratch, count, a->options.level, &centre);
        squares += half * half;
    }
    return sqrt(squares);
}

/* Medians, so that one disturbed run does not decide; in rounds, B is A and the median difference.
 */
static void find_measured_costs(struct attribution *a)
{
    const struct attribution_side *sides = a->options.sides;
    for (size_t s = 0; s < SIDE_COUNT; s++) {
        memcpy(a->scratch, sides[s].measured, sides[s].measured_count * sizeof(*a->scratch));
        median_half_width(a->scratch, sides[s].measured_count, a->options.level, &a->cost[s]);
    }
    if (!a->options.paired)
        return;
    size_t count = sides[SIDE_A].measured_count;
    double shift;
    for (size_t i = 0; i < count; i++)
        a->scratch[i] = sides[SIDE_B].measured[i] - sides[SIDE_A].measured[i];
    median_half_width(a->scratch, count, a->options.level, &shift);
    if (a->cost[SIDE_A] + shift > 0)
        a->cost[SIDE_B] = a->cost[SIDE_A] + shift;
}

/* The error of a mean of runs, each the part's weight for a unit of work. */
static double direct_half_width(const struct attribution *a, size_t side, const double *weights,
                                double samples)
{
    const struct attribution_side *s = &a->options.sides[side];
    double n = (double)s->run_count, mean = 0, squares = 0;
    for (size_t i = 0; i < s->run_count; i++)
        mean += (weights ? weights[i] : 0) / s->work[i] / n;
    for (size_t i = 0; i < s->run_count; i++) {
        double off = (weights ? weights[i] : 0) / s->work[i] - mean;
        squares += off * off;
    }
    double spread = n > 1 ? a->t[side] * sqrt(squares / (n - 1) / n) : NAN;
    if (a->options.every_one || a->run_samples[side] <= 0)
        return spread;
    double one = a->run_weight[side] / a->run_samples[side] / a->run_work[side];
    return fmax(spread, a->z * one * sqrt(samples + 1));
}

/* What the luck of sampling does to a part's cost: that of a binomial share, the share taken
 * towards a half as Agresti & Coull do, since few samples are luckier than they look. */
static double luck(const struct attribution *a, size_t side, double samples)
{
    double all = a->run_samples[side];
    if (a->options.every_one || all <= 0)
        return 0;
    if (!a->is_scaled)
        return a->z * a->run_weight[side] / all / a->run_work[side] * sqrt(samples + 1);
    double share = fmin((samples + 2) / (all + 4), 1);
    return a->z * sqrt(share * (1 - share) / all) * a->seen[side];
}

/* The error of a share of the samples: how much it differs from run to run, but never less than
 * the luck of sampling. */
static double share_half_width(const struct attribution *a, size_t side, const double *weights,
                               double share, double samples)
{
    const struct attribution_side *s = &a->options.sides[side];
    double n = (double)s->run_count, squares = 0, mean = a->run_weight[side] / n;
    for (size_t i = 0; i < s->run_count; i++) {
        double off = ((weights ? weights[i] : 0) - share * s->weights[i]) / mean;
        squares += off * off;
    }
    double spread = n > 1 ? a->t[side] * sqrt(squares / (n - 1) / n) * a->seen[side] : NAN;
    return fmax(spread, luck(a, side, samples));
}

/* The same change once more, from the profiled runs alone, each set against the other of its round:
 * whether it is there beyond what differs from round to round. */
static bool shows_within_rounds(const struct attribution *a, const struct attributed *part,
                                const double *const weights[SIDE_COUNT])
{
    const struct attribution_side *sides = a->options.sides;
    size_t rounds = sides[SIDE_A].run_count < sides[SIDE_B].run_count ? sides[SIDE_A].run_count
                                                                      : sides[SIDE_B].run_count;
    double n = (double)rounds, mean = 0, squares = 0;
    if (!a->options.in_rounds || rounds < 2)
        return true;
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < rounds; i++) {
            double off = (weights[SIDE_B] ? weights[SIDE_B][i] : 0) / sides[SIDE_B].work[i] -
                         (weights[SIDE_A] ? weights[SIDE_A][i] : 0) / sides[SIDE_A].work[i];
            mean += turn ? 0 : off / n;
            squares += turn ? (off - mean) * (off - mean) : 0;
        }
    double half = dist_t_quantile((1 + a->options.level) / 2, n - 1) * sqrt(squares / (n - 1) / n);
    return mean * part->change > 0 && fabs(mean) > half;
}

static void judge(const struct attribution *a, struct attributed *part)
{
    part->change = part->b - part->a;
    part->share = a->whole.change != 0 ? part->change / a->whole.change : NAN;
    if (!a->has_interval)
        part->half_width = NAN;
    part->below_resolution = fabs(part->change) < part->resolution;
    part->significant = fabs(part->change) > part->half_width; /* false for NAN */
}

struct attributed attribution_part(const struct attribution *a,
                                   const double *const weights[SIDE_COUNT],
                                   const double *const samples[SIDE_COUNT])
{
    double cost[SIDE_COUNT], share[SIDE_COUNT], squares = 0, luck_squares = 0;
    for (size_t s = 0; s < SIDE_COUNT; s++) {
        const struct attribution_side *side = &a->options.sides[s];
        double count = sum(samples[s], side->run_count), half;
        share[s] = a->run_weight[s] > 0 ? sum(weights[s], side->run_count) / a->run_weight[s] : 0;
        if (a->is_scaled) {
            cost[s] = share[s] * a->seen[s];
            half = a->run_weight[s] > 0 ? share_half_width(a, s, weights[s], share[s], count) : 0;
        } else {
            cost[s] = 0;
            for (size_t i = 0; weights[s] && i < side->run_count; i++)
                cost[s] += weights[s][i] / side->work[i] / (double)side->run_count;
            half = direct_half_width(a, s, weights[s], count);
        }
        squares += half * half;
        luck_squares += luck(a, s, count) * luck(a, s, count);
    }
    if (a->is_scaled) {
        /* Of what is seen in part only, the measured runs say nothing. */
        double measured =
            measured_half_width(a, a->options.sides[SIDE_A].is_partial ? 0 : share[SIDE_A],
                                a->options.sides[SIDE_B].is_partial ? 0 : share[SIDE_B]);
        squares += measured * measured;
    }
    struct attributed part = {.a = cost[SIDE_A],
                              .b = cost[SIDE_B],
                              .half_width = sqrt(squares),
                              .resolution = sqrt(luck_squares)};
    judge(a, &part);
    part.significant = fabs(part.change) > a->family_times * part.half_width &&
                       shows_within_rounds(a, &part, weights);
    return part;
}

struct attributed attribution_rest(const struct attribution *a, double sum_a, double sum_b)
{
    struct attributed rest = {
        .a = a->whole.a - sum_a, .b = a->whole.b - sum_b, .half_width = NAN, .resolution = 0};
    judge(a, &rest);
    rest.half_width = NAN;
    rest.significant = false;
    return rest;
}

static void find_whole(struct attribution *a)
{
    struct attributed *w = &a->whole;
    *w = (struct attributed){.a = a->cost[SIDE_A], .b = a->cost[SIDE_B], .share = 1};
    double luck_squares = 0, squares = 0;
    for (size_t s = 0; s < SIDE_COUNT; s++) {
        double half = direct_half_width(a, s, a->options.sides[s].weights, a->run_samples[s]);
        squares += half * half;
        luck_squares += luck(a, s, a->run_samples[s]) * luck(a, s, a->run_samples[s]);
    }
    /* Of measured runs no sample is left to luck. */
    w->resolution = a->is_scaled ? 0 : sqrt(luck_squares);
    w->half_width = a->is_scaled ? measured_half_width(a, 1, 1) : sqrt(squares);
    w->change = w->b - w->a;
    judge(a, w);
    w->share = 1;
}

void attribution_init(struct attribution *a, const struct attribution_options *options)
{
    *a = (struct attribution){.options = *options, .is_scaled = true, .has_interval = true};
    if (a->options.level <= 0)
        a->options.level = 0.95;
    double tail = (1 + a->options.level) / 2;
    size_t most = 1;
    double family_tail = 1 - (1 - tail) / (double)(a->options.family ? a->options.family : 1);
    size_t fewest = SIZE_MAX;
    a->z = dist_normal_quantile(tail);
    for (size_t s = 0; s < SIDE_COUNT; s++) {
        const struct attribution_side *side = &a->options.sides[s];
        size_t count = side->run_count;
        most = side->measured_count > most ? side->measured_count : most;
        a->is_scaled &= side->measured_count > 0;
        a->run_weight[s] = sum(side->weights, count);
        a->run_samples[s] = sum(side->samples, count);
        a->run_work[s] = sum(side->work, count);
        for (size_t i = 0; i < count; i++)
            a->sampled[s] += side->weights[i] / side->work[i] / (double)count;
        a->t[s] = count > 1 ? dist_t_quantile(tail, (double)count - 1) : NAN;
        a->has_interval &= count > 1;
        fewest = count < fewest ? count : fewest;
    }
    a->family_times = fewest > 1 ? dist_t_quantile(family_tail, (double)fewest - 1) /
                                       dist_t_quantile(tail, (double)fewest - 1)
                                 : 1;
    a->options.paired &= a->is_scaled && a->options.sides[SIDE_A].measured_count ==
                                             a->options.sides[SIDE_B].measured_count;
    a->scratch = memory_zalloc(most, sizeof(*a->scratch));
    memcpy(a->cost, a->sampled, sizeof(a->cost));
    if (a->is_scaled) {
        find_measured_costs(a);
        for (size_t s = 0; s < SIDE_COUNT; s++)
            a->has_interval &= a->options.sides[s].measured_count > 1;
    }
    for (size_t s = 0; s < SIDE_COUNT; s++)
        a->seen[s] = a->is_scaled && a->options.sides[s].is_partial
                         ? fmin(a->sampled[s], a->cost[s])
                         : a->cost[s];
    find_whole(a);
}

void attribution_done(struct attribution *a)
{
    free(a->scratch);
    *a = (struct attribution){0};
}

/* SPDX-License-Identifier: MIT */
/* See simulate.h. */
#include "simulate.h"
#include "base/memory.h"
#include "numbers/distributions.h"
#include "numbers/order.h"
#include "numbers/sort.h"

#include <math.h>

/* Those with a star were added after the constants of stats/dependence.c had been chosen on the
 * others, and have had no say in them. */
const struct shape shapes[] = {
    {"normal", SHAPE_NORMAL, SHAPE_INDEPENDENT, 0},
    {"heavy tails (t, 2 df)", SHAPE_STUDENT, SHAPE_INDEPENDENT, 2},
    {"very heavy tails (Cauchy)", SHAPE_STUDENT, SHAPE_INDEPENDENT, 1},
    {"skewed (exponential)", SHAPE_SKEWED, SHAPE_INDEPENDENT, 0},
    {"one in ten slow (Pareto)", SHAPE_OUTLIERS, SHAPE_INDEPENDENT, 0},
    {"bimodal", SHAPE_BIMODAL, SHAPE_INDEPENDENT, 0},
    {"unlike programs", SHAPE_UNLIKE, SHAPE_INDEPENDENT, 0},
    {"uniform *", SHAPE_UNIFORM, SHAPE_INDEPENDENT, 0},
    {"coarse clock (ties)", SHAPE_COARSE, SHAPE_DEPENDENT, 0},
    {"drift of 30 %", SHAPE_DRIFT, SHAPE_DEPENDENT, 0},
    {"neighbours come and go", SHAPE_NEIGHBOURS, SHAPE_DEPENDENT, 0},
    {"autocorrelation 0.2", SHAPE_AR, SHAPE_DEPENDENT, 0.2},
    {"autocorrelation 0.5", SHAPE_AR, SHAPE_DEPENDENT, 0.5},
    {"the same, heavy tails", SHAPE_AR_STUDENT, SHAPE_DEPENDENT, 0.5},
    {"the same, skewed", SHAPE_AR_SKEWED, SHAPE_DEPENDENT, 0.5},
    {"the same, bimodal", SHAPE_BIMODAL, SHAPE_DEPENDENT, 0.5},
    {"moving average 0.5 *", SHAPE_MOVING, SHAPE_DEPENDENT, 0.5},
    {"sticky, skewed, 0.5 *", SHAPE_STICKY, SHAPE_DEPENDENT, 0.5},
    {"first run 10 % slower *", SHAPE_FIRST, SHAPE_DEPENDENT, 0.1},
    {"autocorrelation 0.8", SHAPE_AR, SHAPE_BEYOND, 0.8},
    {"slow wandering", SHAPE_SLOW, SHAPE_BEYOND, 0.95},
};
const size_t shape_count = sizeof(shapes) / sizeof(shapes[0]);

static const double noise = 0.02;

static double student(struct rng *rng, int freedom)
{
    double squares = 0, top = rng_normal(rng);
    for (int i = 0; i < freedom; i++) {
        double z = rng_normal(rng);
        squares += z * z;
    }
    return top / sqrt(squares / freedom);
}

static double outlier(struct rng *rng)
{
    return rng_uniform(rng) < 0.1 ? log1p(0.1 * pow(1 - rng_uniform(rng), -1 / 1.5)) : 0;
}

/* What each program remembers from run to run, and what the machine does to both. */
struct state {
    double *own; /* of each program */
    size_t program_count;
    double level;
    size_t run, run_count;
    size_t position; /* in the round */
};

static void start(struct rng *rng, const struct shape *shape, struct state *s)
{
    for (size_t i = 0; i < s->program_count; i++) {
        s->own[i] = shape->kind == SHAPE_BIMODAL ? rng_uniform(rng) < 0.3 : rng_normal(rng);
        if (shape->kind == SHAPE_STICKY)
            s->own[i] = rng_exponential(rng);
        if (shape->kind == SHAPE_AR_STUDENT) {
            s->own[i] = 0;
            for (int k = 0; k < 30; k++)
                s->own[i] = shape->parameter * s->own[i] + student(rng, 2);
        }
    }
    s->level = shape->kind == SHAPE_NEIGHBOURS ? rng_uniform(rng) < 0.5
               : shape->kind == SHAPE_MACHINE  ? rng_normal(rng)
                                               : 0;
    s->run = 0;
}

static double next_ar(struct rng *rng, double *state, double rho)
{
    double now = *state;
    *state = rho * now + sqrt(1 - rho * rho) * rng_normal(rng);
    return now;
}

/* The logarithm of what noise does to one run of a program. */
static double next(struct rng *rng, const struct shape *shape, struct state *s, size_t program)
{
    double *own = &s->own[program], rho = shape->parameter;
    double time = (double)s->run / (double)s->run_count;
    bool is_first = s->position++ == 0;
    s->run++;
    switch (shape->kind) {
    case SHAPE_NORMAL:
    case SHAPE_COARSE:
        return noise * rng_normal(rng);
    case SHAPE_STUDENT:
        return noise * student(rng, (int)shape->parameter);
    case SHAPE_SKEWED:
        return log1p(0.1 * rng_exponential(rng));
    case SHAPE_OUTLIERS:
        return noise / 2 * rng_normal(rng) + outlier(rng);
    case SHAPE_UNLIKE:
        return noise / 2 * rng_normal(rng) + (program == 1 ? outlier(rng) : 0);
    case SHAPE_BIMODAL: {
        double value = noise / 2 * rng_normal(rng) + 0.1 * *own;
        if (rng_uniform(rng) >= rho)
            *own = rng_uniform(rng) < 0.3;
        return value;
    }
    case SHAPE_DRIFT: /* steadily upwards, and a random walk of steps of half the noise */
        s->level += noise / 2 * rng_normal(rng);
        return 0.3 * time + s->level + noise * rng_normal(rng);
    case SHAPE_NEIGHBOURS:
        if (rng_uniform(rng) < 0.1)
            s->level = s->level > 0 ? 0 : 1;
        return log1p(0.5 * s->level) + noise * rng_normal(rng);
    case SHAPE_AR:
        return noise * next_ar(rng, own, rho);
    case SHAPE_MACHINE:
        return noise * next_ar(rng, &s->level, rho);
    case SHAPE_AR_STUDENT: {
        double now = *own;
        *own = rho * now + student(rng, 2);
        return noise * now;
    }
    case SHAPE_AR_SKEWED:
        return log1p(-0.1 * log(dist_normal_cdf(-next_ar(rng, own, rho))));
    case SHAPE_UNIFORM:
        return noise * (rng_uniform(rng) - 0.5);
    case SHAPE_MOVING: {
        double step = rng_normal(rng), value = noise * (*own + step);
        *own = step;
        return value;
    }
    case SHAPE_STICKY: {
        double value = log1p(0.1 * *own);
        if (rng_uniform(rng) >= rho)
            *own = rng_exponential(rng);
        return value;
    }
    case SHAPE_NOW_AND_THEN:
        return noise / 2 * rng_normal(rng) +
               (rng_uniform(rng) < (rho > 2 ? 0.1 : 0.3) ? log(rho) : 0);
    case SHAPE_FIRST:
        return noise * rng_normal(rng) + (is_first ? rho : 0);
    case SHAPE_SLOW:
        return noise * (0.5 * next_ar(rng, own, rho) + rng_normal(rng));
    }
    return 0;
}

/* Nothing takes 10^21 times as long; the logs of Cauchy noise would. */
static double value_of(const struct shape *shape, double ratio, double phase, double logarithm)
{
    double value = ratio * exp(fmin(fmax(logarithm, -50), 50));
    double tick = shape->parameter > 0 ? shape->parameter : 0.01;
    return shape->kind == SHAPE_COARSE ? rint(value * phase / tick) * tick : value;
}

/* Where in a tick of a coarse clock the base lies; drawn only where the ratio is to be found. */
static double phase_of(struct rng *rng, const struct shape *shape)
{
    return shape->kind == SHAPE_COARSE && shape->parameter > 0
               ? 1 + shape->parameter * rng_uniform(rng)
               : 1;
}

void simulate_cells(struct rng *rng, const struct shape *shape, double *values, size_t cell_count,
                    size_t rounds)
{
    double *own CLEANUP(memory_freep) = memory_alloc(cell_count * sizeof(*own));
    size_t *order CLEANUP(memory_freep) = memory_alloc(cell_count * sizeof(*order));
    struct state state = {
        .own = own, .program_count = cell_count, .run_count = cell_count * rounds};
    start(rng, shape, &state);
    double phase = phase_of(rng, shape);
    uint64_t seed = rng_next(rng);
    for (size_t i = 0; i < cell_count; i++)
        order[i] = i;
    for (size_t i = 0; i < rounds; i++) {
        round_order(seed, i, order, cell_count);
        state.position = 0;
        for (size_t k = 0; k < cell_count; k++)
            values[order[k] * rounds + i] =
                value_of(shape, 1, phase, next(rng, shape, &state, order[k]));
    }
}

void simulate(struct rng *rng, const struct shape *shape, double ratio, bool interleaved,
              double *base_values, double *new_values, size_t rounds)
{
    double own[2], *out[2] = {base_values, new_values}, phase;
    struct state state = {.own = own, .program_count = 2, .run_count = 2 * rounds};
    start(rng, shape, &state);
    size_t first = 0;
    for (size_t i = 0; i < rounds; i++) {
        if (interleaved) /* as numbers/order.h */
            first = i % 2 ? 1 - first : (size_t)(rng_next(rng) >> 63);
        state.position = 0;
        out[first][i] = next(rng, shape, &state, first);
        if (interleaved)
            out[1 - first][i] = next(rng, shape, &state, 1 - first);
    }
    for (size_t i = 0; !interleaved && i < rounds; i++)
        new_values[i] = next(rng, shape, &state, 1);
    phase = phase_of(rng, shape);
    for (size_t i = 0; i < rounds; i++) {
        base_values[i] = value_of(shape, 1, phase, base_values[i]);
        new_values[i] = value_of(shape, ratio, phase, new_values[i]);
    }
}

double simulate_truth(const struct shape *shape, double ratio)
{
    enum { COUNT = 1 << 20 };
    if (shape->kind != SHAPE_UNLIKE)
        return log(ratio);
    double *room CLEANUP(memory_freep) = memory_alloc(2 * COUNT * sizeof(double));
    double *base_values = room, *new_values = room + COUNT;
    struct rng rng;
    rng_seed(&rng, 20240229);
    simulate(&rng, shape, ratio, true, base_values, new_values, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        base_values[i] = log(new_values[i] / base_values[i]);
    sort_doubles(base_values, COUNT);
    return base_values[COUNT / 2];
}

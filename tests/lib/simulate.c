/* SPDX-License-Identifier: MIT */
/* See simulate.h. */
#include "simulate.h"
#include "base/memory.h"
#include "numbers/distributions.h"
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
    double own[2];
    double level;
    size_t run, run_count;
};

static void start(struct rng *rng, const struct shape *shape, struct state *s)
{
    for (int i = 0; i < 2; i++) {
        s->own[i] = shape->kind == SHAPE_BIMODAL ? rng_uniform(rng) < 0.3 : rng_normal(rng);
        if (shape->kind == SHAPE_STICKY)
            s->own[i] = rng_exponential(rng);
        if (shape->kind == SHAPE_AR_STUDENT) {
            s->own[i] = 0;
            for (int k = 0; k < 30; k++)
                s->own[i] = shape->parameter * s->own[i] + student(rng, 2);
        }
    }
    s->level = shape->kind == SHAPE_NEIGHBOURS ? rng_uniform(rng) < 0.5 : 0;
    s->run = 0;
}

static double next_ar(struct rng *rng, double *state, double rho)
{
    double now = *state;
    *state = rho * now + sqrt(1 - rho * rho) * rng_normal(rng);
    return now;
}

/* The logarithm of what noise does to one run of a program. */
static double next(struct rng *rng, const struct shape *shape, struct state *s, int program)
{
    double *own = &s->own[program], rho = shape->parameter;
    double time = (double)s->run / (double)s->run_count;
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
    case SHAPE_SLOW:
        return noise * (0.5 * next_ar(rng, own, rho) + rng_normal(rng));
    }
    return 0;
}

void simulate(struct rng *rng, const struct shape *shape, double ratio, bool interleaved,
              double *base_values, double *new_values, size_t rounds)
{
    struct state state = {.run_count = 2 * rounds};
    start(rng, shape, &state);
    for (size_t i = 0; i < rounds; i++) {
        int first = interleaved ? (int)(rng_next(rng) >> 63) : 0;
        double *out[2] = {base_values, new_values};
        out[first][i] = next(rng, shape, &state, first);
        if (interleaved)
            out[1 - first][i] = next(rng, shape, &state, 1 - first);
    }
    for (size_t i = 0; !interleaved && i < rounds; i++)
        new_values[i] = next(rng, shape, &state, 1);
    for (size_t i = 0; i < rounds; i++) {
        /* Nothing takes 10^21 times as long; the logs of Cauchy noise would. */
        base_values[i] = exp(fmin(fmax(base_values[i], -50), 50));
        new_values[i] = ratio * exp(fmin(fmax(new_values[i], -50), 50));
        if (shape->kind == SHAPE_COARSE) {
            base_values[i] = rint(base_values[i] * 100) / 100;
            new_values[i] = rint(new_values[i] * 100) / 100;
        }
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

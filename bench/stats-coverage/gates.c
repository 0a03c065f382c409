/* SPDX-License-Identifier: MIT */
/* What a gate decides when it stops by itself, and verdicts of few rounds beside other work: see
 * gates.h. */
#include "gates.h"
#include "base/memory.h"
#include "bisect/gate.h"
#include "numbers/order.h"
#include "numbers/random.h"
#include "simulate.h"
#include "stats/plan.h"

#include <math.h>
#include <stdio.h>

enum { SIDES = 3, ROUNDS_FIRST = 10, ROUNDS_MAX = 400 };

static const double limit = 0.05; /* the regression that is allowed */

struct gate_case {
    const char *name;
    double factor;       /* of every run */
    double share, times; /* runs that take many times as long */
    double noise;
    bool base_too; /* the base has them as well */
};

static const struct gate_case cases[] = {
    {"the same", 1, 0, 1, 0.02, false},
    {"the same, noise 10 %", 1, 0, 1, 0.1, false},
    {"the same, 1 in 10 takes 3 times", 1, 0.1, 3, 0.02, true},
    {"+2 %", 1.02, 0, 1, 0.02, false},
    {"+10 %", 1.1, 0, 1, 0.02, false},
    {"1 in 10 takes 10 times", 1, 0.1, 10, 0.02, false},
    {"3 in 10 take twice", 1, 0.3, 2, 0.02, false},
    {"1 in 20 takes 5 times", 1, 0.05, 5, 0.02, false},
};

static double draw(const struct gate_case *c, size_t side, double level, struct rng *rng)
{
    bool new = side == SIDES - 1;
    double value = level * exp(c->noise * rng_normal(rng)) * (new ? c->factor : 1);
    return (new || c->base_too) && rng_uniform(rng) < c->share ? value * c->times : value;
}

/* As a session stops for a gate. */
static bool may_stop(const struct dataset *d, enum gate_by by)
{
    const struct gate_result_set set = {.by = by, .max_regression = limit};
    const struct judge_sides sides = {d, d, 0, 0, 0, SIDES - 1};
    struct comparison c;
    return judge_cells_by(d, 0, 0, SIDES - 1, gate_judge_by(by), &c) &&
           plan_may_stop(&c, limit / 3) && gate_may_stop(&set, &sides, &c, METRIC_LOWER);
}

static enum gate_result run_gate(const struct gate_case *c, enum gate_by by, struct rng *rng,
                                 size_t *ret_rounds)
{
    static const char *const sides[SIDES] = {"base", "control", "new"};
    CLEANUP(dataset_done) struct dataset d;
    CLEANUP(gate_result_set_done)
    struct gate_result_set set = {.max_regression = limit, .by = by};
    dataset_start(&d, "gate");
    d.experiment.adaptive = true;
    free(d.experiment.headline);
    d.experiment.headline = memory_strdup("wall");
    dataset_add_factor(&d, "side");
    for (size_t i = 0; i < SIDES; i++)
        dataset_add_cell(&d, sides[i], "x", &sides[i]);
    dataset_add_metric(&d, "wall", "ns", "time",
                       (struct metric_facts){.better = METRIC_LOWER, .is_speed = true});
    uint32_t round = 0;
    for (; round < ROUNDS_MAX; round++) {
        double level = exp(0.05 * rng_normal(rng));
        for (size_t i = 0; i < SIDES; i++)
            dataset_put(&d, 0, i, round, draw(c, i, level, rng));
        bool looks =
            round + 1 >= ROUNDS_FIRST && ((round + 1) % 10 == 0 || plan_is_look(round + 1));
        if (looks)
            dataset_settle(&d);
        if (looks && may_stop(&d, by))
            break;
    }
    *ret_rounds = d.settled_count / SIDES;
    return gate_judge(&set, &d, NULL) < 0 || set.control_failed ? GATE_INCONCLUSIVE : set.result;
}

void gates_print(size_t experiments)
{
    static const struct {
        enum gate_by by;
        const char *name;
    } ways[] = {{GATE_BY_BOTH, "median and mean"},
                {GATE_BY_MEDIAN, "median"},
                {GATE_BY_MEAN, "mean"},
                {GATE_BY_P95, "p95"}};
    printf("A gate of %.0f %%, at most %d rounds: pass, regression, inconclusive in %% (mean "
           "rounds); %zu gates each\n\n%-34s",
           100 * limit, ROUNDS_MAX, experiments, "");
    for (size_t w = 0; w < ARRAY_COUNT(ways); w++)
        printf("%28s", ways[w].name);
    putchar('\n');
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        printf("%-34s", cases[i].name);
        for (size_t w = 0; w < ARRAY_COUNT(ways); w++) {
            size_t results[3] = {0}, spent = 0;
            struct rng rng;
            rng_seed(&rng, 100 * i + w + 1);
            for (size_t e = 0; e < experiments; e++) {
                size_t rounds;
                results[run_gate(&cases[i], ways[w].by, &rng, &rounds)]++;
                spent += rounds;
            }
            double all = (double)experiments / 100;
            printf("%8.1f%6.1f%6.1f (%4.0f)", (double)results[GATE_PASS] / all,
                   (double)results[GATE_REGRESSION] / all, (double)results[GATE_INCONCLUSIVE] / all,
                   (double)spent / (double)experiments);
            fflush(stdout);
        }
        putchar('\n');
    }
    putchar('\n');
}

/* Work of others that comes and goes for some runs, and makes a run longer by 20 % to `most`. */
static const struct {
    const char *name;
    double most;
} busy_loads[] = {{"others come and go", 1.2}, {"the same, up to 10 times", 9}};

static const char *busy_name(size_t row)
{
    return row < shape_count ? shapes[row].name : busy_loads[row - shape_count].name;
}

static void draw_busy(double most, double *base_values, double *new_values, size_t count,
                      struct rng *rng)
{
    bool busy = rng_uniform(rng) < 0.5;
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) {
            busy = rng_uniform(rng) < 0.25 ? !busy : busy;
            double load = busy ? 0.2 + (most - 0.2) * rng_uniform(rng) : 0;
            *(k ? &new_values[i] : &base_values[i]) = (1 + load) * exp(0.01 * rng_normal(rng));
        }
    uint64_t seed = rng_next(rng);
    for (size_t i = 0; i < count; i++) /* each round in its own order */
        if (round_first_of_two(seed, i)) {
            double kept = base_values[i];
            base_values[i] = new_values[i];
            new_values[i] = kept;
        }
}

void busy_print(size_t experiments)
{
    double base_values[8], new_values[8];
    printf("Few rounds: equal programs called different, and a change of 5 %% called with the "
           "wrong sign, in %%,\ntaken for independent and taken for what disturbed rounds may be; "
           "and a program that takes 20 times as\nlong, found; %zu experiments each\n\n"
           "%-26s%8s%24s%24s%24s\n",
           experiments, "", "rounds", "equal", "wrong sign", "20 times");
    for (size_t s = 0; s < shape_count + ARRAY_COUNT(busy_loads); s++) {
        const struct shape *shape = s < shape_count ? &shapes[s] : NULL;
        if (shape && (shape->kind == SHAPE_UNLIKE || shape->kind == SHAPE_COARSE))
            continue;
        for (size_t rounds = 2; rounds < 8; rounds++) {
            size_t called[2] = {0}, wrong[2] = {0}, found[2] = {0};
            struct rng rng;
            rng_seed(&rng, 10 * s + rounds);
            for (size_t e = 0; e < experiments; e++)
                for (int wary = 0; wary < 2; wary++) {
                    struct comparison c;
                    if (shape)
                        simulate(&rng, shape, 1, true, base_values, new_values, rounds);
                    else
                        draw_busy(busy_loads[s - shape_count].most, base_values, new_values, rounds,
                                  &rng);
                    struct judge_values v = {base_values, new_values,     rounds,
                                             rounds,      .paired = true, .wary = wary};
                    judge_values(&v, JUDGE_LEVEL, &c, NULL);
                    called[wary] += comparison_differs(&c);
                    for (size_t i = 0; i < rounds; i++)
                        new_values[i] *= 1.05;
                    judge_values(&v, JUDGE_LEVEL, &c, NULL);
                    wrong[wary] += comparison_differs(&c) && c.estimate < 1;
                    for (size_t i = 0; i < rounds; i++)
                        new_values[i] *= 20 / 1.05;
                    judge_values(&v, JUDGE_LEVEL, &c, NULL);
                    found[wary] += comparison_differs(&c) && c.estimate > 1;
                }
            double all = (double)experiments / 100;
            printf("%-26s%8zu%14.1f%10.1f%14.1f%10.1f%14.1f%10.1f\n", busy_name(s), rounds,
                   (double)called[0] / all, (double)called[1] / all, (double)wrong[0] / all,
                   (double)wrong[1] / all, (double)found[0] / all, (double)found[1] / all);
        }
    }
    putchar('\n');
}

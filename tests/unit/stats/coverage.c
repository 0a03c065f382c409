/* SPDX-License-Identifier: MIT */
/* A small edition of bench/stats-coverage: intervals hold as often as they say.  The seed is fixed,
 * so this passes or fails for good; the tolerances are what 1,500 experiments leave open. */
#include "simulate.h"
#include "stats/comparison.h"
#include "stats/plan.h"
#include "test.h"

enum { EXPERIMENTS = 1500, ROUNDS_MAX = 40 };

static double coverage(const struct shape *shape, size_t rounds, bool paired)
{
    double a[ROUNDS_MAX], b[ROUNDS_MAX], other[ROUNDS_MAX];
    double ratio = shape->kind == SHAPE_COARSE ? 1 : 1.05;
    struct rng rng;
    size_t covered = 0;
    rng_seed(&rng, 1000 * (uint64_t)(shape - shapes) + rounds);
    for (size_t i = 0; i < EXPERIMENTS; i++) {
        struct comparison c = {0};
        simulate(&rng, shape, ratio, true, a, b, rounds);
        if (paired) {
            stats_compare_paired(a, b, rounds, 0.95, &c, NULL);
        } else {
            simulate(&rng, shape, ratio, true, other, b, rounds);
            stats_compare_unpaired(a, rounds, b, rounds, 0.95, &c, NULL);
        }
        covered += c.low <= ratio && ratio <= c.high;
    }
    return (double)covered / EXPERIMENTS;
}

static void check(const struct shape *shape, size_t rounds, bool paired, double least, double most)
{
    double share = coverage(shape, rounds, paired);
    if (share < least || share > most)
        test_fail(__FILE__, __LINE__, "%s, %zu rounds: covered %.1f %%, not %.1f to %.1f %%",
                  shape->name, rounds, 100 * share, 100 * least, 100 * most);
}

TEST(paired_intervals_hold)
{
    static const size_t rounds[] = {8, 12, 40};
    for (size_t s = 0; s < shape_count; s++) {
        const struct shape *shape = &shapes[s];
        for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
            if (shape->group == SHAPE_INDEPENDENT && shape->kind != SHAPE_UNLIKE)
                check(shape, rounds[i], true, 0.93 - 0.005, 0.97 + 0.01);
            else if (shape->group == SHAPE_DEPENDENT)
                check(shape, rounds[i], true, 0.90 - 0.015, 1);
        }
    }
}

TEST(unpaired_intervals_hold)
{
    for (size_t s = 0; s < shape_count; s++) {
        const struct shape *shape = &shapes[s];
        bool drifting = shape->kind == SHAPE_DRIFT || shape->kind == SHAPE_NEIGHBOURS;
        if (shape->kind == SHAPE_UNLIKE || shape->group == SHAPE_BEYOND || drifting)
            continue; /* no method can tell drift from a difference between two sittings */
        double least = shape->group == SHAPE_INDEPENDENT ? 0.93 : 0.885;
        check(shape, 6, false, least, 1);
        check(shape, 25, false, least, 1);
    }
}

/* Measuring until the interval is narrow does not make it lie, not even where each round is nearly
 * like the one before. */
TEST(intervals_hold_when_stopped_at_a_precision)
{
    enum { TRIALS = 200, STOP_MAX = 600 };
    static const struct shape sticky = {"autocorrelation 0.9", SHAPE_AR, SHAPE_BEYOND, 0.9};
    const struct shape *tried[] = {&shapes[0], &shapes[4], &shapes[12], &sticky};
    static double a[STOP_MAX], b[STOP_MAX];
    struct rng rng;
    rng_seed(&rng, 5);
    for (size_t k = 0; k < 4; k++) {
        size_t covered = 0, stopped = 0;
        for (int trial = 0; trial < TRIALS; trial++) {
            struct comparison c;
            size_t rounds = 8;
            simulate(&rng, tried[k], 1.05, true, a, b, STOP_MAX);
            for (;; rounds += 1 + rounds / 20) {
                rounds = rounds < STOP_MAX ? rounds : STOP_MAX;
                struct compared *running;
                CHECK_INT(stats_compared_paired(a, b, rounds, true, &running, NULL), 0);
                CHECK_INT(compared_ask(running, 0.95, &c, NULL), 0);
                if (plan_may_stop(&c, 0.02) || rounds == STOP_MAX)
                    break;
            }
            CHECK(rounds >= PLAN_STOP_ROUNDS_MIN);
            CHECK(plan_half_width(&c) <= 0.02 || rounds == STOP_MAX);
            stopped += rounds < STOP_MAX;
            covered += c.low <= 1.05 && 1.05 <= c.high;
        }
        if (covered < TRIALS * 93 / 100 || stopped < TRIALS / 3)
            test_fail(__FILE__, __LINE__, "%s: %zu covered, %zu stopped", tried[k]->name, covered,
                      stopped);
    }
}

/* Two identical programs are called different about as often as is promised. */
TEST(false_alarms_stay_at_five_percent)
{
    double a[10], b[10];
    struct rng rng;
    size_t alarms = 0;
    rng_seed(&rng, 99);
    for (size_t i = 0; i < 4000; i++) {
        struct comparison c;
        simulate(&rng, &shapes[i % 6], 1, true, a, b, 10);
        stats_compare_paired(a, b, 10, 0.95, &c, NULL);
        alarms += comparison_differs(&c);
    }
    CHECK_NEAR((double)alarms / 4000, 0.04, 0.012);
}

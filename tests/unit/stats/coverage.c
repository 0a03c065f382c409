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

/* Measuring until the interval is narrow does not make it lie. */
TEST(intervals_hold_when_stopped_at_a_precision)
{
    enum { TRIALS = 600, STOP_MAX = 400 };
    static const double precision[] = {0.02, 0.01};
    double a[STOP_MAX], b[STOP_MAX];
    struct rng rng;
    rng_seed(&rng, 5);
    for (size_t k = 0; k < 2; k++) {
        size_t covered = 0;
        for (int trial = 0; trial < TRIALS; trial++) {
            const struct shape *shape = &shapes[trial % 2 ? 0 : 4];
            struct comparison c;
            size_t rounds = 8;
            simulate(&rng, shape, 1.05, true, a, b, STOP_MAX);
            for (;; rounds += rounds / 8) {
                stats_compare_paired(a, b, rounds, 0.95, &c, NULL);
                if (plan_narrow_enough(&c, precision[k]) || rounds > STOP_MAX * 3 / 4)
                    break;
            }
            stats_compare_paired_stopped(a, b, rounds, 0.95, &c, NULL);
            CHECK(plan_half_width(&c) <= precision[k] * 1.0001 || rounds > STOP_MAX * 3 / 4);
            covered += c.low <= 1.05 && 1.05 <= c.high;
        }
        double share = (double)covered / TRIALS;
        if (share < 0.93)
            test_fail(__FILE__, __LINE__, "covered %.1f %%", 100 * share);
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

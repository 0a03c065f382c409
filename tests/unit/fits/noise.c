/* SPDX-License-Identifier: MIT */
/* The noise test of doctor, on simulated machines whose noise is known. */
#include "fits/noise.h"
#include "simulate.h"
#include "stats/comparison.h"
#include "test.h"

TEST(false_alarms_are_counted)
{
    double a[40], b[40];
    struct noise noise;
    for (size_t i = 0; i < 40; i++) {
        a[i] = 1 + 0.001 * (double)(i % 7);
        b[i] = i < 10 ? 1.1 * a[i] : 1 + 0.001 * (double)((i + 3) % 7);
    }
    stats_noise(a, b, 40, 0.04, 10, &noise);
    CHECK_INT(noise.round_count, 40);
    CHECK_INT(noise.sitting_rounds, 10);
    CHECK_INT(noise.sitting_count, 4);
    CHECK_INT(noise.false_alarm_count, 1);
    CHECK_NEAR(noise.false_alarm_rate, 0.25, 1e-12);
    /* Clopper-Pearson for 1 of 4. */
    CHECK_NEAR(noise.false_alarm_low, 0.00631, 1e-5);
    CHECK_NEAR(noise.false_alarm_high, 0.80588, 1e-5);
}

/* Of budgets that hold a change of the size that was promised, the share in which it is found. */
static double found_share(const char *name, size_t rounds, size_t budget_rounds)
{
    enum { ROUNDS_MAX = 400, TRIALS = 40, AGAIN = 10 };
    double a[ROUNDS_MAX], b[ROUNDS_MAX];
    const struct shape *shape = shapes;
    while (strcmp(shape->name, name) != 0)
        shape++;
    struct rng rng;
    size_t found = 0;
    rng_seed(&rng, 7);
    for (size_t trial = 0; trial < TRIALS; trial++) {
        struct noise noise;
        simulate(&rng, shape, 1, true, a, b, rounds);
        stats_noise(a, b, rounds, 0.04, 0.04 * (double)budget_rounds + 0.001, &noise);
        for (size_t again = 0; again < AGAIN; again++) {
            struct comparison c;
            simulate(&rng, shape, 1 + noise.smallest_change, true, a, b, budget_rounds);
            stats_compare_paired(a, b, budget_rounds, 0.95, &c, NULL);
            found += c.low > 1;
        }
    }
    return (double)found / (TRIALS * AGAIN);
}

TEST(the_smallest_change_is_found_as_often_as_promised)
{
    CHECK_NEAR(found_share("normal", 400, 20), 0.9, 0.06);
    CHECK_NEAR(found_share("one in ten slow (Pareto)", 400, 50), 0.9, 0.06);
    CHECK_NEAR(found_share("autocorrelation 0.5", 400, 100), 0.9, 0.06);
    CHECK_NEAR(found_share("drift of 30 %", 400, 400), 0.9, 0.06);
    CHECK_NEAR(found_share("normal", 60, 200), 0.9, 0.09);
}

TEST(too_little_to_tell_is_said)
{
    double a[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, b[9] = {1, 1, 1, 1, 1, 1, 1, 1, -1};
    struct noise noise;
    stats_noise(a, b, 0, 0.04, 10, &noise);
    CHECK_INT(noise.sitting_count, 0);
    CHECK(isnan(noise.false_alarm_rate));
    CHECK(isnan(noise.smallest_change));
    stats_noise(a, b, 9, 0.04, 10, &noise);
    CHECK(isnan(noise.smallest_change));
    stats_noise(a, b, 8, 0.04, 10, &noise);
    CHECK_NEAR(noise.smallest_change, 0, 0);
}

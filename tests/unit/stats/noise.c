/* SPDX-License-Identifier: MIT */
/* The noise test of doctor, on simulated machines whose noise is known. */
#include "stats/noise.h"
#include "base/memory.h"
#include "stats/comparison.h"
#include "stats/random.h"
#include "test.h"

enum { ROUNDS = 400, TRIALS = 60 };

/* One program on a machine whose speed wanders (AR(1) with `rho`), each run `spread` off. */
static void machine(struct rng *rng, double rho, double spread, double *values, size_t count)
{
    double state = rng_normal(rng);
    for (size_t i = 0; i < count; i++) {
        values[i] = 0.02 * exp(spread * state);
        state = rho * state + sqrt(1 - rho * rho) * rng_normal(rng);
    }
}

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
static double found_share(double rho, double spread, size_t budget_rounds)
{
    double *a CLEANUP(memory_freep) = memory_alloc(ROUNDS * sizeof(double));
    double *b CLEANUP(memory_freep) = memory_alloc(ROUNDS * sizeof(double));
    struct rng rng;
    size_t found = 0;
    rng_seed(&rng, 7);
    for (size_t trial = 0; trial < TRIALS; trial++) {
        struct noise noise;
        machine(&rng, rho, spread, a, ROUNDS);
        machine(&rng, rho, spread, b, ROUNDS);
        stats_noise(a, b, ROUNDS, 0.04, 0.04 * (double)budget_rounds + 0.001, &noise);
        for (size_t again = 0; again < 10; again++) {
            struct comparison c;
            machine(&rng, rho, spread, a, budget_rounds);
            machine(&rng, rho, spread, b, budget_rounds);
            for (size_t i = 0; i < budget_rounds; i++)
                b[i] *= 1 + noise.smallest_change;
            stats_compare_paired(a, b, budget_rounds, 0.95, &c, NULL);
            found += c.low > 1;
        }
    }
    return (double)found / (10 * TRIALS);
}

TEST(the_smallest_change_is_found_as_often_as_promised)
{
    CHECK_NEAR(found_share(0, 0.02, 100), 0.9, 0.1);
    CHECK_NEAR(found_share(0, 0.2, 20), 0.9, 0.1);
    CHECK_NEAR(found_share(0.5, 0.02, 200), 0.9, 0.1);
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

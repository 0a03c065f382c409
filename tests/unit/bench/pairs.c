/* SPDX-License-Identifier: MIT */
/* The value of a round, where the CPU changes its speed within it. */
#include "base/memory.h"
#include "bench/measure.h"
#include "numbers/random.h"
#include "test.h"

#include <math.h>

enum { PAIRS = 50 };

static void put(struct bench_result *r, double ns, uint32_t round, size_t position, size_t side,
                bool disturbed)
{
    ARRAY_PUSH(r->samples, r->sample_count, r->sample_capacity) =
        (struct bench_kept){.ns = ns,
                            .round = round,
                            .position = (uint16_t)position,
                            .side = (uint8_t)side,
                            .disturbed = disturbed};
}

/* Three rounds in which new takes 1 % longer.  Every few pairs the speed is another, and every
 * sixth sample is hit by a tick. */
static void make(struct bench_result *r, uint64_t seed)
{
    static const double speeds[] = {5.75, 6.26, 6.49, 6.69};
    struct rng rng;
    double speed = speeds[0];
    rng_seed(&rng, seed);
    *r = (struct bench_result){.iterations = 1, .samples_a_round = PAIRS, .round_count = 3};
    for (uint32_t round = 0; round < 3; round++)
        for (size_t k = 0; k < PAIRS; k++)
            for (size_t turn = 0; turn < 2; turn++) {
                size_t side = turn ^ (k & 1);
                if (rng_below(&rng, 12) == 0)
                    speed = speeds[rng_below(&rng, 4)];
                double tick = rng_below(&rng, 6) == 0 ? 1.3 : 1;
                put(r, 1000 * speed * (side ? 1.01 : 1) * tick, round, 2 * k + turn, side, false);
            }
}

TEST(the_ratio_is_that_of_neighbours)
{
    struct bench_result r;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        make(&r, seed);
        for (uint32_t round = 0; round < 3; round++) {
            double base = bench_round_time(&r, 0, 2, round),
                   new = bench_round_time(&r, 1, 2, round);
            CHECK(fabs(new / base - 1.01) < 1e-9);
            CHECK(fabs(log(new / base) - bench_round_ratio(&r, round, -1)) < 1e-12);
            CHECK(base > 5700 && base < 6800);
        }
        CHECK(isnan(bench_round_ratio(&r, 3, -1)));
        CHECK(isnan(bench_round_time(&r, 0, 2, 3)));
        free(r.samples);
    }
}

TEST(disturbed_samples_are_left_out)
{
    struct bench_result r = {.iterations = 1, .samples_a_round = 3, .round_count = 2};
    put(&r, 100, 0, 0, 0, false), put(&r, 110, 0, 1, 1, false);
    put(&r, 500, 0, 2, 1, true), put(&r, 100, 0, 3, 0, false);
    put(&r, 900, 0, 4, 0, true), put(&r, 110, 0, 5, 1, false);
    put(&r, 200, 1, 0, 0, true), put(&r, 300, 1, 1, 1, true);
    CHECK(fabs(bench_round_time(&r, 1, 2, 0) / bench_round_time(&r, 0, 2, 0) - 1.1) < 1e-9);
    /* where nothing else is there, they count */
    CHECK(fabs(bench_round_time(&r, 0, 2, 1) - 200) < 1e-9);
    CHECK(fabs(bench_round_time(&r, 1, 2, 1) - 300) < 1e-9);
    /* one version alone has no neighbour */
    CHECK(fabs(bench_round_time(&r, 0, 1, 0) - 100) < 1e-9);
    free(r.samples);
}

TEST(the_mean_has_what_the_median_leaves_out)
{
    struct bench_result r = {.iterations = 1, .samples_a_round = 10, .round_count = 2};
    for (size_t k = 0; k < 10; k++)
        put(&r, k == 4 ? 1100 : 100, 0, 2 * k, 0, k == 7);
    for (size_t k = 0; k < 10; k++)
        put(&r, k == 4 ? 1100 : 100, 1, 2 * k, 0, true);
    CHECK_NEAR(bench_round_mean(&r, 0, 0), 1900.0 / 9, 1e-9); /* without the disturbed one */
    CHECK_NEAR(bench_round_mean(&r, 0, 1), 200, 1e-9);
    CHECK_NEAR(bench_round_time(&r, 0, 1, 0), 100, 1e-9);
    CHECK(isnan(bench_round_mean(&r, 1, 0)));
    CHECK(isnan(bench_round_mean(&r, 0, 2)));
    free(r.samples);
}

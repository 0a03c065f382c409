/* SPDX-License-Identifier: MIT */
/* What is layout and what is noise, in rounds whose truth is known. */
#include "bench/layouts.h"
#include "base/memory.h"
#include "numbers/random.h"
#include "test.h"

#include <math.h>

enum { ROUNDS = 60, SAMPLES = 10 };

/* Every round moves the new version by `layout`, every sample of both by `noise`. */
static void make(struct bench_result *r, double layout, double noise, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed);
    *r = (struct bench_result){.iterations = 1, .samples_a_round = SAMPLES, .round_count = ROUNDS};
    for (uint32_t round = 0; round < ROUNDS; round++) {
        double moved = layout * rng_normal(&rng);
        for (uint16_t k = 0; k < SAMPLES; k++)
            for (uint8_t side = 0; side < 2; side++)
                ARRAY_PUSH(r->samples, r->sample_count, r->sample_capacity) = (struct bench_kept){
                    .ns = 100 * exp((side ? 0.02 + moved : 0) + noise * rng_normal(&rng)),
                    .round = round,
                    .position = (uint16_t)(2 * k + side),
                    .side = side};
    }
}

TEST(layout_is_told_from_noise)
{
    struct bench_result r;
    struct layout_spread s;
    make(&r, 0.03, 0.005, 1);
    CHECK(bench_layout_spread(&r, &s));
    CHECK_INT(s.count, ROUNDS);
    CHECK(s.share > 0.9);
    CHECK(!s.is_noise);
    CHECK(s.low > 0.93 && s.low < 0.99);
    CHECK(s.high > 1.05 && s.high < 1.12);
    free(r.samples);
    make(&r, 0, 0.02, 2);
    CHECK(bench_layout_spread(&r, &s));
    CHECK(s.share < 0.5);
    CHECK(s.is_noise);
    CHECK(s.low > 0.99 && s.high < 1.05);
    free(r.samples);
}

TEST(few_rounds_say_nothing)
{
    struct bench_result r;
    struct layout_spread s;
    make(&r, 0.03, 0.005, 3);
    r.round_count = 9;
    CHECK(!bench_layout_spread(&r, &s));
    free(r.samples);
}

TEST(layout_is_told_by_still_measurements)
{
    double moving[ROUNDS], still[ROUNDS], same[ROUNDS];
    struct layout_spread s;
    struct rng rng;
    rng_seed(&rng, 4);
    for (size_t i = 0; i < ROUNDS; i++) {
        double noise = 0.01 * rng_normal(&rng);
        moving[i] = 0.02 + 0.03 * rng_normal(&rng) + noise;
        still[i] = 0.05 + 0.01 * rng_normal(&rng); /* one layout: its own difference */
        same[i] = 0.02 + 0.01 * rng_normal(&rng);
    }
    still[7] = 5; /* a neighbour of the machine */
    CHECK(layout_spread_still(moving, ROUNDS, still, ROUNDS, &s));
    CHECK(!s.is_noise && s.share > 0.75 && s.share < 0.97);
    CHECK(s.low > 0.93 && s.low < 0.99 && s.high > 1.05 && s.high < 1.12);
    CHECK(layout_spread_still(same, ROUNDS, still, ROUNDS, &s));
    CHECK(s.is_noise);
    CHECK(layout_spread_still(moving, ROUNDS, still, 9, &s)); /* too few to tell the noise */
    CHECK(isnan(s.share));
    moving[3] = NAN;
    CHECK(layout_spread_still(moving, 11, still, ROUNDS, &s));
    CHECK_INT(s.count, 10);
    CHECK(!layout_spread_still(moving, 10, still, ROUNDS, &s));
}

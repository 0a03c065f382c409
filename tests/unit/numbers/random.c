/* SPDX-License-Identifier: MIT */
#include "numbers/random.h"
#include "stats/summary.h"
#include "test.h"

TEST(the_generator_is_the_published_one)
{
    /* The reference outputs of xoshiro256** from the state 1, 2, 3, 4. */
    struct rng rng = {{1, 2, 3, 4}};
    const uint64_t expected[] = {11520,
                                 0,
                                 1509978240,
                                 1215971899390074240,
                                 1216172134540287360,
                                 607988272756665600,
                                 16172922978634559625ULL,
                                 8476171486693032832};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        CHECK(rng_next(&rng) == expected[i]);
    /* And of splitmix64, which spreads the seed. */
    rng_seed(&rng, 1234567);
    CHECK(rng.state[0] == 6457827717110365317ULL);
    CHECK(rng.state[1] == 3203168211198807973ULL);
}

TEST(bounded_numbers_are_even)
{
    struct rng rng;
    size_t seen[7] = {0};
    rng_seed(&rng, 1);
    for (int i = 0; i < 70000; i++)
        seen[rng_below(&rng, 7)]++;
    for (size_t i = 0; i < 7; i++)
        CHECK_NEAR((double)seen[i], 10000, 400);
    CHECK_INT(rng_below(&rng, 1), 0);
}

TEST(the_moments_are_right)
{
    struct rng rng;
    struct running uniform = {0}, normal = {0}, exponential = {0};
    rng_seed(&rng, 2);
    for (int i = 0; i < 100000; i++) {
        running_add(&uniform, rng_uniform(&rng));
        running_add(&normal, rng_normal(&rng));
        running_add(&exponential, rng_exponential(&rng));
    }
    CHECK(uniform.min >= 0 && uniform.max < 1);
    CHECK_NEAR(uniform.mean, 0.5, 0.005);
    CHECK_NEAR(normal.mean, 0, 0.015);
    CHECK_NEAR(running_stddev(&normal), 1, 0.01);
    CHECK_NEAR(exponential.mean, 1, 0.015);
    CHECK_NEAR(running_stddev(&exponential), 1, 0.02);
}

TEST(a_shuffle_keeps_everything_and_reaches_every_order)
{
    struct rng rng;
    size_t seen[6] = {0};
    rng_seed(&rng, 3);
    for (int i = 0; i < 6000; i++) {
        size_t order[] = {0, 1, 2};
        rng_shuffle(&rng, order, 3);
        CHECK_INT(order[0] + order[1] + order[2], 3);
        seen[order[0] * 2 + (order[1] > order[2])]++;
    }
    for (size_t i = 0; i < 6; i++)
        CHECK_NEAR((double)seen[i], 1000, 150);
    rng_shuffle(&rng, NULL, 0);
}

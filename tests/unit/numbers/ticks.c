/* SPDX-License-Identifier: MIT */
#include "numbers/ticks.h"
#include "analysis/judge.h"
#include "numbers/random.h"
#include "stats/summary.h"
#include "test.h"

#include <math.h>
#include <string.h>

enum { COUNT = 60 };

static double rounded(double value, double tick)
{
    return rint(value / tick) * tick;
}

TEST(ticks_are_told_from_other_values)
{
    static const double clock[] = {0.04, 0.05, 0.04, 0.04, 0.05, 0.06};
    static const double still[] = {0.05, 0.05, 0.05, 0.05, 0.05, 0.05};
    static const double modes[] = {1, 2, 1, 1, 2, 1}, fine[] = {1.31, 1.27, 1.44, 1.38, 1.29, 1.5};
    static const double off[] = {1, 1.1, 1.13, 1, 1.1, 1.13}, zero[] = {0, 1, 0, 1, 2, 1};
    CHECK_NEAR(ticks_find(clock, 6, clock, 6), 0.01, 1e-12);
    CHECK(ticks_find(clock, 6, still, 6) == 0); /* one side is always the same */
    CHECK(ticks_find(modes, 6, modes, 6) == 0); /* much too coarse for a clock */
    CHECK(ticks_find(fine, 6, fine, 6) == 0);   /* 0.02 does not divide all of them */
    CHECK(ticks_find(off, 6, off, 6) == 0);
    CHECK(ticks_find(zero, 6, zero, 6) == 0);
    CHECK(ticks_find(NULL, 0, NULL, 0) == 0);
    CHECK(ticks_find(clock, 1, clock, 1) == 0);
}

TEST(equal_values_are_spread_over_their_tick)
{
    double values[] = {3, 5, 3, 3, 5, 4};
    ticks_spread(values, 6, 1, 1);
    double sums[] = {values[0] + values[2] + values[3], values[1] + values[4], values[5]};
    CHECK_NEAR(sums[0], 9, 1e-12);
    CHECK_NEAR(sums[1], 10, 1e-12);
    CHECK_NEAR(sums[2], 4, 1e-12);
    CHECK(values[0] != values[2] && values[1] != values[4]);
    for (size_t i = 0; i < 6; i++)
        CHECK(values[i] > 2.5 && values[i] < 5.5);
}

TEST(noise_that_seldom_crosses_a_tick_hides_more)
{
    double all[] = {3, 3, 3, 3, 3, 3, 3, 3}, one[] = {3, 3, 3, 3, 3, 3, 3, 4},
           half[] = {3, 4, 3, 4, 3, 4, 3, 4}, wide[] = {1, 2, 3, 4, 5, 3, 2, 4};
    CHECK_NEAR(ticks_hidden(all, 8, 1), 0.5, 1e-12);
    CHECK(ticks_hidden(one, 8, 1) > 0.4 && ticks_hidden(one, 8, 1) < 0.5);
    CHECK_NEAR(ticks_hidden(half, 8, 1), 0, 1e-12);
    CHECK(ticks_hidden(wide, 8, 1) < 0.02);
}

/* A tick of one and a half times the noise; plain ranks cover a third of these. */
TEST(a_coarse_clock_gives_the_right_size)
{
    struct rng rng;
    size_t covered = 0, experiments = 200;
    rng_seed(&rng, 12);
    for (size_t e = 0; e < experiments; e++) {
        double base[COUNT], new[COUNT], phase = 1 + 0.03 * rng_uniform(&rng);
        struct comparison c;
        for (size_t i = 0; i < COUNT; i++) {
            base[i] = rounded(phase * exp(0.02 * rng_normal(&rng)), 0.03);
            new[i] = rounded(1.03 * phase * exp(0.02 * rng_normal(&rng)), 0.03);
        }
        struct judge_values v = {base, new, COUNT, COUNT, .paired = true};
        CHECK_INT(judge_values(&v, JUDGE_LEVEL, &c, NULL), 0);
        covered += c.low <= 1.03 && 1.03 <= c.high;
        CHECK(comparison_excludes_same(&c) == (c.p < 1 - c.level));
        v.is_exact = true; /* counts are what they are */
        CHECK_INT(judge_values(&v, JUDGE_LEVEL, &c, NULL), 0);
        CHECK_NEAR(c.base_median, stats_median(base, COUNT, (double[COUNT]){0}), 1e-12);
    }
    CHECK(covered >= 185);
}

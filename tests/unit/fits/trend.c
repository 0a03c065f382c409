/* SPDX-License-Identifier: MIT */
/* A ratio that moves from round to round, and what all rounds agree on. */
#include "fits/trend.h"
#include "simulate.h"
#include "test.h"

#include <errno.h>

TEST(a_program_that_gets_slower_and_slower)
{
    double a[60], b[60];
    struct rng rng;
    struct trend t;
    struct error err;
    rng_seed(&rng, 1);
    for (size_t i = 0; i < 60; i++) {
        a[i] = exp(0.01 * rng_normal(&rng));
        b[i] = exp(0.06 + 0.01 * (double)i + 0.005 * rng_normal(&rng));
    }
    CHECK_INT(stats_trend(a, b, 60, &t, &err), 0);
    CHECK(t.found && t.p < 1e-6);
    CHECK_NEAR(log(t.first), 0.06, 0.02);
    CHECK_NEAR(log(t.last), 0.65, 0.02);
    CHECK(t.all_agree && t.above == 60 && t.least > 1 && t.agree_p < 1e-12);
    CHECK_INT(stats_trend(b, a, 60, &t, &err), 0);
    CHECK(t.found && t.all_agree && t.below == 60 && t.most < 1 && t.last < t.first);
}

/* A straight line is a curve on the scale of ratios: what is left around the line is not noise. */
TEST(a_movement_without_noise_is_one)
{
    double a[60], b[60];
    struct trend t;
    for (size_t i = 0; i < 60; i++) {
        a[i] = 100;
        b[i] = 100.5 + (double)i / 2;
    }
    CHECK_INT(stats_trend(a, b, 60, &t, NULL), 0);
    CHECK(t.found && t.all_agree);
}

TEST(noise_is_no_trend)
{
    struct rng rng;
    rng_seed(&rng, 2);
    for (size_t s = 0; s < 13; s++) {
        size_t alarms = 0;
        for (int trial = 0; trial < 200; trial++) {
            double a[50], b[50];
            struct trend t;
            simulate(&rng, &shapes[s], 1.05, true, a, b, 50);
            stats_trend(a, b, 50, &t, NULL);
            alarms += t.found;
        }
        if (alarms > (shapes[s].group == SHAPE_INDEPENDENT ? 7U : 14U))
            test_fail(__FILE__, __LINE__, "%s: %zu of 200", shapes[s].name, alarms);
    }
}

/* Kendall's score of 1 … 5 in order is 10; its variance is 5 · 4 · 15 / 18 = 16.67. */
TEST(small_and_odd_cases)
{
    double a[] = {1, 1, 1, 1, 1}, b[] = {1, 2, 3, 4, 5}, zero[] = {0, 0, 0, 0, 0};
    struct trend t = {.count = 77};
    struct error err;
    CHECK_INT(stats_trend(zero, b, 5, &t, &err), 0);
    CHECK_INT(t.scale, COMPARISON_DIFFERENCE);
    CHECK_NEAR(t.p, 2 * 0.0137, 0.0002); /* z = 9 / 4.0825 = 2.2045 */
    CHECK_NEAR(t.last, 5, 1e-12);
    CHECK(!t.found && !t.all_agree && t.above == 5);
    CHECK_INT(stats_trend(a, a, 5, &t, &err), 0);
    CHECK(t.p == 1 && t.agree_p == 1 && !t.found && t.first == 1);
    CHECK_INT(stats_trend(a, b, 0, &t, &err), -EINVAL);
    b[2] = NAN;
    CHECK_INT(stats_trend(a, b, 5, &t, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "new value 3 of 5");
}

TEST(thousands_of_rounds)
{
    static double a[5000], b[5000];
    struct rng rng;
    struct trend t;
    rng_seed(&rng, 3);
    for (size_t i = 0; i < 5000; i++) {
        a[i] = exp(0.01 * rng_normal(&rng));
        b[i] = exp(0.00001 * (double)i + 0.01 * rng_normal(&rng));
    }
    CHECK_INT(stats_trend(a, b, 5000, &t, NULL), 0);
    CHECK(t.p < 1e-6);
    CHECK_NEAR(log(t.last / t.first), 0.05, 0.01);
}

/* SPDX-License-Identifier: MIT */
#include "fits/scaling.h"
#include "numbers/random.h"
#include "test.h"

#include <errno.h>

static double law(double lambda, double sigma, double kappa, double n)
{
    return lambda * n / (1 + sigma * (n - 1) + kappa * n * (n - 1));
}

TEST(exact_data_give_the_terms_back)
{
    double threads[8], throughput[8];
    struct scaling s;
    struct error err;
    for (size_t i = 0; i < 8; i++) {
        threads[i] = (double)(1 << i);
        throughput[i] = law(1000, 0.05, 0.0002, threads[i]);
    }
    CHECK_INT(scaling_fit(threads, throughput, 8, 1, &s, &err), 0);
    CHECK_NEAR(s.lambda.value, 1000, 1e-6);
    CHECK_NEAR(s.sigma.value, 0.05, 1e-9);
    CHECK_NEAR(s.kappa.value, 0.0002, 1e-12);
    CHECK_NEAR(s.peak_threads.value, sqrt(0.95 / 0.0002), 1e-5);
    CHECK_NEAR(s.sigma.low, 0.05, 1e-6);
    CHECK_NEAR(s.sigma.high, 0.05, 1e-6);
    CHECK(s.peak_seen);
    CHECK_INT(s.point_count, 8);
    CHECK_NEAR(scaling_throughput(&s, 24), law(1000, 0.05, 0.0002, 24), 1e-6);
}

/* The intervals hold, also at the edge where a term is zero. */
TEST(intervals_hold)
{
    enum { TRIALS = 150, POINTS = 8, REPEATS = 3 };
    static const double cases[][2] = {{0.05, 0.001}, {0, 0}, {0.1, 0}, {0, 0.002}};
    struct rng rng;
    rng_seed(&rng, 3);
    for (size_t k = 0; k < 4; k++) {
        double sigma = cases[k][0], kappa = cases[k][1], peak = sqrt((1 - sigma) / kappa);
        size_t covered[4] = {0};
        for (int trial = 0; trial < TRIALS; trial++) {
            double threads[POINTS * REPEATS], throughput[POINTS * REPEATS];
            struct scaling s;
            for (size_t i = 0; i < POINTS * REPEATS; i++) {
                threads[i] = (double)(1 + i / REPEATS * 4);
                throughput[i] = law(5, sigma, kappa, threads[i]) * exp(0.03 * rng_normal(&rng));
            }
            CHECK_INT(scaling_fit(threads, throughput, POINTS * REPEATS, 1, &s, NULL), 0);
            covered[0] += s.lambda.low <= 5 && 5 <= s.lambda.high;
            covered[1] += s.sigma.low <= sigma && sigma <= s.sigma.high;
            covered[2] += s.kappa.low <= kappa && kappa <= s.kappa.high;
            covered[3] += s.peak_threads.low <= peak && peak <= s.peak_threads.high;
        }
        for (size_t i = 0; i < 4; i++) {
            double share = (double)covered[i] / TRIALS;
            if (share < 0.91)
                test_fail(__FILE__, __LINE__, "case %zu, figure %zu: covered %.1f %%", k, i,
                          100 * share);
        }
    }
}

TEST(a_line_has_no_peak)
{
    double threads[6], throughput[6];
    struct scaling s;
    struct error err;
    for (size_t i = 0; i < 6; i++) {
        threads[i] = (double)(i + 1);
        throughput[i] = 10 * threads[i] * (1 + 0.001 * (double)i); /* a little better than a line */
    }
    CHECK_INT(scaling_fit(threads, throughput, 6, 1, &s, &err), 0);
    CHECK_NEAR(s.sigma.value, 0, 1e-12);
    CHECK_NEAR(s.kappa.value, 0, 1e-12);
    CHECK(isinf(s.peak_threads.value));
    CHECK(!s.peak_seen);
}

TEST(more_threads_may_only_hurt)
{
    double threads[6], throughput[6];
    struct scaling s;
    struct error err;
    for (size_t i = 0; i < 6; i++) {
        threads[i] = (double)(i + 1);
        throughput[i] = 10 / threads[i];
    }
    CHECK_INT(scaling_fit(threads, throughput, 6, 1, &s, &err), 0);
    CHECK(s.peak_threads.value < 1.5);
}

TEST(too_few_points_and_bad_values_are_refused)
{
    double threads[] = {1, 2, 4, 8, 16, 16, 16}, throughput[] = {1, 2, 3, 4, 5, 5, 5};
    struct scaling s = {.point_count = 77};
    struct error err;
    CHECK_INT(scaling_fit(threads, throughput, 7, 1, &s, &err), -ENODATA);
    CHECK_CONTAINS(err.message, "too few different numbers of threads");
    CHECK_INT(scaling_fit(threads, throughput, 0, 1, &s, &err), -ENODATA);
    throughput[2] = 0;
    CHECK_INT(scaling_fit(threads, throughput, 7, 1, &s, &err), -EINVAL);
    throughput[2] = NAN;
    CHECK_INT(scaling_fit(threads, throughput, 7, 1, &s, &err), -EINVAL);
    throughput[2] = 3;
    threads[0] = 0;
    CHECK_INT(scaling_fit(threads, throughput, 7, 1, &s, &err), -EINVAL);
    CHECK_INT(s.point_count, 77);
}

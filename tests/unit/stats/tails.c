/* SPDX-License-Identifier: MIT */
/* Differences that the median does not see: means, upper quantiles, distributions, slow runs. */
#include "stats/tails.h"
#include "simulate.h"
#include "stats/means.h"
#include "stats/quantiles.h"
#include "stats/twosample.h"
#include "test.h"

#include <errno.h>

enum { ROUNDS = 100 };

/* One run in `every` of the new program takes `times` as long; the machine's level wanders. */
static void slow_now_and_then(struct rng *rng, double share, double times, double *a, double *b,
                              size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double level = exp(0.05 * rng_normal(rng));
        a[i] = level * exp(0.02 * rng_normal(rng));
        b[i] = level * exp(0.02 * rng_normal(rng)) * (rng_uniform(rng) < share ? times : 1);
    }
}

static struct tails examine(const double *a, const double *b, size_t count)
{
    struct comparison centre;
    struct tails t = {0};
    struct error err;
    double error = 0.05;
    CHECK_INT(stats_compare_paired(a, b, count, 1 - (1 - TAILS_SHARE) * error, &centre, &err), 0);
    CHECK_INT(stats_tails_paired(a, b, count, &centre, 0.95, true, &t, &err), 0);
    return t;
}

static size_t found(double share, double times, size_t trials)
{
    double a[ROUNDS], b[ROUNDS];
    struct rng rng;
    size_t alarms = 0;
    rng_seed(&rng, 71);
    for (size_t i = 0; i < trials; i++) {
        slow_now_and_then(&rng, share, times, a, b, ROUNDS);
        alarms += examine(a, b, ROUNDS).p <= TAILS_SHARE * 0.05;
    }
    return alarms;
}

TEST(rare_slow_runs_are_found)
{
    CHECK(found(0.1, 10, 200) >= 188); /* 95.6 % */
    CHECK(found(0.3, 2, 100) >= 97);
    CHECK(found(0, 1, 200) <= 3);
}

/* Three times as many of everything: nothing is left beside the factor, in whatever digits. */
TEST(a_factor_alone_is_no_difference_of_distributions)
{
    double a[ROUNDS], b[ROUNDS];
    const double factors[] = {2, 3, 1.1, 1e-7, 4.7e9, 1e300};
    for (size_t k = 0; k < sizeof(factors) / sizeof(*factors); k++)
        for (size_t varies = 0; varies < 2; varies++) {
            for (size_t i = 0; i < ROUNDS; i++) {
                a[i] = varies ? 1 + (double)(i % 5) : 1;
                b[i] = a[i] * factors[k];
            }
            CHECK(examine(a, b, ROUNDS).p > 0.5);
        }
}

TEST(slow_runs_in_words)
{
    double a[ROUNDS], b[ROUNDS];
    char text[80];
    for (size_t i = 0; i < ROUNDS; i++) {
        a[i] = 1 + 0.001 * (double)(i % 7);
        b[i] = a[i] * (i % 10 == 3 ? 10 : 1);
    }
    struct tails t = examine(a, b, ROUNDS);
    CHECK_INT(t.slow.new_slow, 10);
    CHECK_INT(t.slow.base_slow, 0);
    CHECK_NEAR(t.slow.new_factor, 10, 0.05);
    slow_runs_text(&t.slow, text, sizeof(text));
    CHECK_STR(text, "1 run in 10 is 10× slower");
    CHECK(t.p <= 0.005);
    CHECK(t.mean.low > 1.25 && t.mean.estimate > 1.85 && t.mean.high < 3);
    for (size_t i = 0; i < ROUNDS; i++)
        b[i] = a[i] * (i % 10 < 3 ? 2 : 1);
    slow_runs_count(b, ROUNDS, a, ROUNDS, true, &t.slow);
    slow_runs_text(&t.slow, text, sizeof(text));
    CHECK_STR(text, "30 % of the runs of the base are 2.0× slower");
    slow_runs_count(a, ROUNDS, a, ROUNDS, true, &t.slow);
    slow_runs_text(&t.slow, text, sizeof(text));
    CHECK_STR(text, "");
    for (size_t i = 0; i < ROUNDS; i++)
        b[i] = 100 / a[i] / (i % 20 == 3 ? 4 : 1); /* a rate: slow runs are low */
    slow_runs_count(a, ROUNDS, b, ROUNDS, false, &t.slow);
    CHECK_INT(t.slow.new_slow, 5);
    CHECK_NEAR(t.slow.new_factor, 4, 0.05);
}

TEST(of_a_few_runs_none_stands_out)
{
    double values[] = {1, 1.001, 1.3, 1.002, 0.999, 1, 1.001, 1.002};
    char text[96];
    slow_runs_alone(values, 3, true, text, sizeof(text));
    CHECK_STR(text, "");
    slow_runs_alone(values, sizeof(values) / sizeof(*values), true, text, sizeof(text));
    CHECK_STR(text, "1 of 8 runs takes about 1.3× as long as the others");
}

/* Without skewness it is Fieller's interval; by hand for means 2 and 3 of symmetric values. */
TEST(means_of_symmetric_values_are_fiellers)
{
    const double a[] = {3, 1, 1, 3, 1, 3, 3, 1, 3, 1}, b[] = {4, 2, 4, 2, 2, 4, 4, 2, 3, 3};
    struct comparison c;
    struct error err;
    CHECK_INT(stats_compare_means_unpaired(a, 10, b, 10, 0.95, &c, &err), 0);
    CHECK_NEAR(c.estimate, 1.5, 1e-12);
    CHECK(c.low > 1 && c.low < 1.2 && c.high > 1.9 && c.high < 2.6 && c.p < 0.05);
    CHECK_INT(stats_compare_means_paired(a, b, 1, 0.95, &c, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "it takes two");
    const double equal[] = {5, 5, 5, 5, 5, 5, 5, 5}, more[] = {6, 6, 6, 6, 6, 6, 6, 6};
    CHECK_INT(stats_compare_means_paired(equal, more, 8, 0.95, &c, &err), 0);
    CHECK_NEAR(c.low, 1.2, 1e-9);
    CHECK_NEAR(c.high, 1.2, 1e-9);
    CHECK(c.p < 1e-9);
    CHECK_INT(stats_compare_means_paired(equal, equal, 8, 0.95, &c, &err), 0);
    CHECK_NEAR(c.low, 1, 1e-9);
    CHECK_NEAR(c.high, 1, 1e-9);
    CHECK(c.p == 1);
    const double zero[] = {0, 1, 0, 1, 0, 1, 0, 1}, ten[] = {10, 12, 11, 10, 12, 11, 12, 11};
    CHECK_INT(stats_compare_means_paired(zero, ten, 8, 0.95, &c, &err), 0);
    CHECK_INT(c.scale, COMPARISON_DIFFERENCE);
    CHECK_NEAR(c.estimate, 11.125 - 0.5, 1e-12);
    CHECK(c.low > 9 && c.high < 12);
}

TEST(intervals_of_means_hold_and_agree_with_p)
{
    double a[60], b[60];
    struct rng rng;
    size_t covered = 0, trials = 1000;
    rng_seed(&rng, 72);
    for (size_t k = 0; k < trials; k++) {
        struct comparison c;
        for (size_t i = 0; i < 60; i++) {
            a[i] = exp(0.5 * rng_normal(&rng));
            b[i] = 1 + 0.3 * rng_exponential(&rng);
        }
        stats_compare_means_paired(a, b, 60, 0.95, &c, NULL);
        double truth = 1.3 / exp(0.125);
        covered += c.low <= truth && truth <= c.high;
        CHECK_INT(c.p < 0.05, comparison_excludes_same(&c));
        stats_compare_means_unpaired(a, 30, b, 60, 0.95, &c, NULL);
        CHECK_INT(c.p < 0.05, comparison_excludes_same(&c));
    }
    CHECK(covered >= 940);
}

TEST(quantiles_want_enough_values)
{
    double a[300], b[300];
    struct comparison c;
    struct error err;
    struct rng rng;
    rng_seed(&rng, 73);
    for (size_t i = 0; i < 300; i++) {
        a[i] = exp(0.1 * rng_normal(&rng));
        b[i] = exp(0.1 * rng_normal(&rng)) * (rng_uniform(&rng) < 0.1 ? 3 : 1);
    }
    CHECK_INT(stats_compare_quantile_paired(a, b, 29, 0.9, 0.95, &c, &err), 0);
    CHECK(c.too_few && isnan(c.low) && c.p == 1);
    CHECK_INT(stats_compare_quantile_paired(a, b, 30, 0.9, 0.95, &c, &err), 0);
    CHECK(!c.too_few);
    CHECK_INT(stats_compare_quantile_paired(a, b, 300, 0.95, 0.95, &c, &err), 0);
    CHECK(c.low > 1.3 && c.estimate > 2 && c.high < 3.6 && c.p < 0.001);
    CHECK_INT(stats_compare_quantile_unpaired(a, 300, b, 300, 0.95, 0.95, &c, &err), 0);
    CHECK(c.low > 1.3 && c.high < 3.6 && c.p < 0.001);
    CHECK_INT(stats_compare_quantile_unpaired(a, 10, b, 10, 0.99, 0.95, &c, &err), 0);
    CHECK(c.too_few);
    CHECK_INT(stats_compare_quantile_paired(a, b, 30, 0.4, 0.95, &c, &err), -EINVAL);
    size_t covered = 0;
    for (size_t k = 0; k < 400; k++) {
        for (size_t i = 0; i < 100; i++) {
            double level = rng_uniform(&rng) < 0.3 ? 2 : 1; /* a slow machine hits both */
            a[i] = level * exp(0.1 * rng_normal(&rng));
            b[i] = level * 1.2 * exp(0.1 * rng_normal(&rng));
        }
        stats_compare_quantile_paired(a, b, 100, 0.9, 0.95, &c, NULL);
        covered += c.low <= 1.2 && 1.2 <= c.high;
        CHECK_INT(c.p < 0.05, comparison_excludes_same(&c));
    }
    CHECK(covered >= 376);
}

/* Pettitt (1976) and Scholz & Stephens (1987): 1, 2 against 3, 4 has N_k = 0, 0, 1 and the distance
 * (2^2 / 3 + 4^2 / 4 + 2^2 / 3) / 4. */
TEST(the_distance_of_distributions)
{
    const double a[] = {1, 2}, b[] = {3, 4}, ties[] = {1, 1};
    CHECK_NEAR(two_sample_distance(a, 2, b, 2), (4.0 / 3 + 16.0 / 4 + 4.0 / 3) / 4, 1e-12);
    CHECK_NEAR(two_sample_distance(a, 2, a, 2), 0, 1e-12);
    CHECK_NEAR(two_sample_p_paired(ties, ties, 2, 1, 1), 1, 1e-12);
    double x[40], y[40];
    struct rng rng;
    size_t low = 0;
    rng_seed(&rng, 74);
    for (int trial = 0; trial < 400; trial++) {
        for (size_t i = 0; i < 40; i++) {
            x[i] = rint(3 * rng_normal(&rng));
            y[i] = rint(3 * rng_normal(&rng));
        }
        low += (trial % 2 ? two_sample_p_paired(x, y, 40, 1, 5)
                          : two_sample_p_unpaired(x, 40, y, 40, 5)) <= 0.05;
    }
    CHECK(low >= 8 && low <= 32);
    for (size_t i = 0; i < 40; i++)
        y[i] *= 5;
    CHECK(two_sample_p_unpaired(x, 40, y, 40, 5) <= 0.001);
    CHECK(two_sample_p_paired(x, y, 40, 1, 5) <= 0.001);
}

/* SPDX-License-Identifier: MIT */
/* Both comparisons: exact small cases, odd input, and p-values that agree with intervals. */
#include "stats/comparison.h"
#include "base/memory.h"
#include "numbers/random.h"
#include "test.h"

#include <errno.h>

static struct comparison paired(const double *a, const double *b, size_t count)
{
    struct comparison c = {0};
    struct error err;
    CHECK_INT(stats_compare_paired(a, b, count, 0.95, &c, &err), 0);
    return c;
}

static struct comparison unpaired(const double *a, size_t n, const double *b, size_t m)
{
    struct comparison c = {0};
    struct error err;
    CHECK_INT(stats_compare_unpaired(a, n, b, m, 0.95, &c, &err), 0);
    return c;
}

TEST(a_planted_ratio_is_found)
{
    struct rng rng;
    double a[40], b[40];
    rng_seed(&rng, 1);
    for (size_t i = 0; i < 40; i++) {
        double level = exp(rng_normal(&rng)); /* hits both alike */
        a[i] = level * exp(0.01 * rng_normal(&rng));
        b[i] = level * 1.34 * exp(0.01 * rng_normal(&rng));
    }
    struct comparison c = paired(a, b, 40);
    CHECK_NEAR(c.estimate, 1.34, 0.01);
    CHECK(c.low < 1.34 && c.high > 1.34 && c.high - c.low < 0.03);
    CHECK(c.p < 1e-6);
    CHECK(comparison_differs(&c));
    CHECK_INT(c.scale, COMPARISON_RATIO);
    CHECK_INT(c.base_count, 40);
    CHECK(c.paired && !c.too_few);
    CHECK_NEAR(c.level, 0.95, 0);
    /* Taken apart, the common level is noise, and the same data tell nothing. */
    c = unpaired(a, 40, b, 40);
    CHECK(!comparison_differs(&c));
    CHECK(!c.paired);
}

/* Below six rounds there is no exact 95 % interval: Student's takes over and says so.  The values
 * are those of R's t.test(log(b / a)) on the first three. */
TEST(few_rounds_assume_a_shape_and_say_so)
{
    const double a[] = {1, 2, 3, 4, 5, 6, 7, 8}, b[] = {2, 4.1, 6.1, 8.3, 10.1, 12.5, 14, 16};
    struct comparison c = paired(a, b, 1);
    CHECK(isnan(c.low) && isnan(c.high) && c.p == 1 && c.level == 0 && c.too_few);
    CHECK_NEAR(c.estimate, 2, 1e-12);
    for (size_t n = 2; n < 8; n++) {
        c = paired(a, b, n);
        CHECK(c.too_few);
        CHECK(comparison_has_interval(&c) && comparison_differs(&c));
        CHECK(comparison_excludes_same(&c));
        CHECK_INT(c.assumes_normal, n < 6);
        CHECK_NEAR(c.level, 0.95, 0);
        CHECK(c.low <= c.estimate && c.estimate <= c.high);
    }
    /* logs 0.6931472, 0.7178398, 0.7096765: mean 0.7068878, sd 0.0125811, t(2) 4.302653 */
    c = paired(a, b, 3);
    CHECK_NEAR(log(c.estimate), 0.7068878, 1e-6);
    CHECK_NEAR(log(c.low), 0.7068878 - 4.302653 * 0.0125811 / sqrt(3), 1e-5);
    c = paired(a, b, 8);
    CHECK(!c.too_few && !c.assumes_normal);
    CHECK(comparison_differs(&c));
    CHECK(unpaired(a, 3, b, 8).too_few);
    CHECK(!unpaired(a, 4, b, 4).too_few);
    CHECK(isnan(unpaired(a, 1, b, 1).low));
}

/* With many rows each asks for more than 95 %: more than eight rounds can give exactly. */
TEST(levels_beyond_the_exact_ones_are_nested)
{
    static const double levels[] = {0.5, 0.9, 0.95, 0.99, 0.992, 0.995, 0.999, 0.9999, 0.999999};
    struct rng rng;
    rng_seed(&rng, 41);
    for (int trial = 0; trial < 500; trial++) {
        double a[12], b[12], shift = 0.5 * rng_normal(&rng), spread = exp(rng_normal(&rng) - 2);
        size_t n = 3 + (size_t)rng_below(&rng, 10);
        for (size_t i = 0; i < n; i++) {
            a[i] = 1;
            b[i] = exp(shift + spread * rng_normal(&rng));
        }
        double low = INFINITY, high = -INFINITY;
        for (size_t k = 0; k < sizeof(levels) / sizeof(levels[0]); k++) {
            struct comparison c;
            CHECK_INT(stats_compare_paired(a, b, n, levels[k], &c, NULL), 0);
            CHECK(c.low <= low * (1 + 1e-12) && c.high >= high * (1 - 1e-12));
            if (fabs(c.p / (1 - levels[k]) - 1) > 1e-9)
                CHECK_INT(c.p < 1 - levels[k], comparison_excludes_same(&c));
            CHECK(!(n >= 6 && levels[k] <= 0.95 && c.assumes_normal));
            CHECK(!(levels[k] > 0.9995 && n <= 8 && !c.assumes_normal));
            low = c.low;
            high = c.high;
        }
    }
}

/* The same of two samples: where ranks have no such level, Welch's t takes over and says so. */
TEST(few_values_taken_apart_assume_a_shape_and_say_so)
{
    static const double levels[] = {0.5, 0.9, 0.95, 0.97, 0.98, 0.99, 0.999, 0.9999};
    struct rng rng;
    rng_seed(&rng, 43);
    for (int trial = 0; trial < 500; trial++) {
        double a[6], b[6], shift = 0.5 * rng_normal(&rng), low = INFINITY, high = -INFINITY;
        size_t n = 2 + (size_t)rng_below(&rng, 4), m = 2 + (size_t)rng_below(&rng, 4);
        for (size_t i = 0; i < 6; i++) {
            a[i] = exp(0.1 * rng_normal(&rng));
            b[i] = exp(shift + 0.1 * rng_normal(&rng));
        }
        for (size_t k = 0; k < sizeof(levels) / sizeof(levels[0]); k++) {
            struct comparison c;
            CHECK_INT(stats_compare_unpaired(a, n, b, m, levels[k], &c, NULL), 0);
            CHECK(c.low <= low * (1 + 1e-12) && c.high >= high * (1 - 1e-12));
            CHECK_NEAR(c.level, levels[k], 0);
            if (fabs(c.p / (1 - levels[k]) - 1) > 1e-9)
                CHECK_INT(c.p < 1 - levels[k], comparison_excludes_same(&c));
            CHECK(!(n <= 3 && m <= 3 && levels[k] >= 0.95 && !c.assumes_normal));
            low = c.low;
            high = c.high;
        }
    }
}

/* In two steps as in one, at any level and in any order. */
TEST(asking_again_gives_what_asking_once_gives)
{
    static const double levels[] = {0.5, 0.9999, 0.95};
    struct rng rng;
    rng_seed(&rng, 43);
    for (size_t n = 1; n < 80; n += 1 + n / 6) {
        double a[80], b[80];
        for (size_t i = 0; i < n; i++) {
            a[i] = exp(0.1 * rng_normal(&rng));
            b[i] = exp(0.1 + 0.1 * rng_normal(&rng));
        }
        for (int kind = 0; kind < 2; kind++) {
            struct compared *compared = NULL;
            int r = kind ? stats_compared_unpaired(a, n, b, n, &compared, NULL)
                         : stats_compared_paired(a, b, n, false, &compared, NULL);
            CHECK_INT(r, 0);
            for (size_t k = 0; k < sizeof(levels) / sizeof(levels[0]); k++) {
                struct comparison once, again;
                compared_at(compared, levels[k], &again);
                r = kind ? stats_compare_unpaired(a, n, b, n, levels[k], &once, NULL)
                         : stats_compare_paired(a, b, n, levels[k], &once, NULL);
                CHECK_INT(r, 0);
                CHECK(once.estimate == again.estimate && once.p == again.p);
                CHECK(n < 2 || (once.low == again.low && once.high == again.high));
                CHECK(once.widening == again.widening && once.level == again.level);
                CHECK_STR(once.method, again.method);
            }
            compared_free(compared);
        }
    }
}

TEST(equal_values_are_handled)
{
    double a[12], b[12];
    for (size_t i = 0; i < 12; i++)
        a[i] = b[i] = 1000;
    struct comparison c = paired(a, b, 12);
    CHECK(c.estimate == 1 && c.low == 1 && c.high == 1 && c.p == 1);
    CHECK(!comparison_differs(&c));
    c = unpaired(a, 12, b, 12);
    CHECK(c.estimate == 1 && c.low == 1 && c.high == 1 && c.p == 1);
    for (size_t i = 0; i < 12; i++)
        b[i] = 1001; /* a count that repeats exactly, one more */
    c = paired(a, b, 12);
    CHECK_NEAR(c.estimate, 1.001, 1e-12);
    CHECK_NEAR(c.low, 1.001, 1e-12);
    CHECK(comparison_differs(&c));
    CHECK(c.p < 0.001);
    c = unpaired(a, 12, b, 12);
    CHECK(comparison_differs(&c));
    CHECK(c.p < 0.001);
    for (size_t i = 0; i < 12; i++)
        b[i] = i < 9 ? 1000 : 2000; /* most rounds equal: no difference in the middle */
    c = paired(a, b, 12);
    CHECK(c.estimate == 1 && c.low == 1 && c.p == 1);
}

TEST(zeros_and_negative_values_are_compared_as_differences)
{
    double a[] = {0, 1, 0, 2, 0, 1, 0, 3, 1, 0}, b[10];
    for (size_t i = 0; i < 10; i++)
        b[i] = a[i] + 20;
    struct comparison c = paired(a, b, 10);
    CHECK_INT(c.scale, COMPARISON_DIFFERENCE);
    CHECK(c.estimate == 20 && c.low == 20 && c.high == 20);
    CHECK(comparison_differs(&c));
    CHECK_NEAR(c.base_median, 0.5, 0);
    c = unpaired(a, 10, b, 10);
    CHECK_INT(c.scale, COMPARISON_DIFFERENCE);
    CHECK_NEAR(c.estimate, 20, 1);
    CHECK(comparison_differs(&c));
    memset(b, 0, sizeof(b));
    c = paired(b, b, 10);
    CHECK(c.estimate == 0 && c.low == 0 && c.high == 0);
    CHECK(!comparison_differs(&c));
}

TEST(bad_input_is_refused)
{
    struct comparison c = {.base_count = 77};
    struct error err;
    double a[] = {1, 2, 3}, b[] = {1, NAN, 3};
    CHECK_INT(stats_compare_paired(a, b, 3, 0.95, &c, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "new value 2 of 3");
    CHECK_INT(stats_compare_paired(b, a, 3, 0.95, &c, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "base value 2 of 3");
    CHECK_INT(stats_compare_paired(a, a, 0, 0.95, &c, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "no rounds");
    CHECK_INT(stats_compare_paired(a, a, 3, 1, &c, &err), -EINVAL);
    CHECK_INT(stats_compare_unpaired(a, 3, b, 3, 0.95, &c, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "new value 2 of 3");
    CHECK_INT(stats_compare_unpaired(a, 3, a, 0, 0.95, &c, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "no new values");
    CHECK_INT(stats_compare_unpaired(a, 3, a, 3, 0, &c, &err), -EINVAL);
    CHECK_INT(c.base_count, 77);
}

TEST(an_outlier_moves_little)
{
    struct rng rng;
    double a[20], b[20];
    rng_seed(&rng, 3);
    for (size_t i = 0; i < 20; i++) {
        a[i] = 1 + 0.01 * rng_normal(&rng);
        b[i] = 1.1 + 0.01 * rng_normal(&rng);
    }
    struct comparison before = paired(a, b, 20);
    a[7] *= 1e6;
    b[13] *= 1e6;
    struct comparison after = paired(a, b, 20);
    CHECK_NEAR(after.estimate, before.estimate, 0.005);
    CHECK_NEAR(after.low, before.low, 0.01);
    CHECK_NEAR(after.high, before.high, 0.01);
    a[7] /= 1e6;
    before = unpaired(a, 20, b, 20);
    b[3] *= 1e6;
    after = unpaired(a, 20, b, 20);
    CHECK_NEAR(after.estimate, before.estimate, 0.005);
    CHECK_NEAR(after.high, before.high, 0.01);
}

TEST(dependence_is_noticed_and_widens)
{
    struct rng rng;
    double a[100], b[100], state = 0;
    rng_seed(&rng, 4);
    for (size_t i = 0; i < 100; i++) {
        state = 0.8 * state + 0.6 * rng_normal(&rng);
        a[i] = 1;
        b[i] = exp(0.02 * state);
    }
    struct comparison c = paired(a, b, 100);
    CHECK(c.autocorrelated);
    CHECK_NEAR(c.autocorrelation, 0.75, 0.15);
    CHECK(c.widening > 2);
    CHECK_NEAR(c.effective_count, 100 / (c.widening * c.widening), 1e-9);
    CHECK(unpaired(a, 100, b, 100).autocorrelated);
    for (size_t i = 0; i < 100; i++)
        b[i] = exp(0.02 * rng_normal(&rng));
    c = paired(a, b, 100);
    CHECK(!c.autocorrelated);
    CHECK(c.widening < 1.3);
}

/* Whatever the data, p is below 5 % exactly when the interval excludes 1. */
TEST(p_and_interval_agree)
{
    struct rng rng;
    double a[60], b[60];
    rng_seed(&rng, 5);
    size_t differing = 0;
    for (int trial = 0; trial < 3000; trial++) {
        size_t n = 8 + (size_t)rng_below(&rng, 52), m = 8 + (size_t)rng_below(&rng, 52);
        bool coarse = trial % 3 == 0;
        double shift = 0.4 * rng_normal(&rng);
        for (size_t i = 0; i < 60; i++) {
            a[i] = exp(rng_normal(&rng));
            b[i] = exp(shift + rng_normal(&rng));
            if (coarse) {
                a[i] = 1 + rint(2 * a[i]);
                b[i] = 1 + rint(2 * b[i]);
            }
        }
        struct comparison both[] = {paired(a, b, n), unpaired(a, n, b, m)};
        for (size_t i = 0; i < 2; i++) {
            struct comparison *c = &both[i];
            if (fabs(c->p - 0.05) < 1e-9)
                continue;
            CHECK_INT(c->p < 0.05, comparison_differs(c));
            differing += comparison_differs(c);
            CHECK(c->p > 0 && c->p <= 1);
            CHECK(c->low <= c->estimate && c->estimate <= c->high);
        }
    }
    CHECK(differing > 500);
}

TEST(a_comparison_turned_round_is_the_reciprocal)
{
    struct rng rng;
    double a[25], b[25];
    rng_seed(&rng, 6);
    for (size_t i = 0; i < 25; i++) {
        a[i] = exp(rng_normal(&rng));
        b[i] = exp(0.3 + rng_normal(&rng));
    }
    for (int kind = 0; kind < 2; kind++) {
        struct comparison c = kind ? paired(a, b, 25) : unpaired(a, 25, b, 20);
        struct comparison d = kind ? paired(b, a, 25) : unpaired(b, 20, a, 25);
        CHECK_NEAR(c.estimate * d.estimate, 1, 1e-12);
        CHECK_NEAR(c.low * d.high, 1, 1e-9);
        CHECK_NEAR(c.p, d.p, 1e-9);
    }
}

TEST(a_million_values_are_compared)
{
    enum { COUNT = 500000 };
    double *room CLEANUP(memory_freep) = memory_alloc(2 * COUNT * sizeof(double));
    struct rng rng;
    rng_seed(&rng, 7);
    for (size_t i = 0; i < COUNT; i++) {
        room[i] = exp(0.1 * rng_normal(&rng));
        room[COUNT + i] = 1.001 * exp(0.1 * rng_normal(&rng));
    }
    struct comparison c = paired(room, room + COUNT, COUNT);
    CHECK_NEAR(c.estimate, 1.001, 0.0005);
    CHECK(comparison_differs(&c));
    c = unpaired(room, COUNT, room + COUNT, COUNT);
    CHECK_NEAR(c.estimate, 1.001, 0.0005);
    CHECK(comparison_differs(&c));
    /* Two values only: everything is a tie. */
    for (size_t i = 0; i < 2 * (size_t)COUNT; i++)
        room[i] = 1 + (double)(i % 2);
    c = unpaired(room, COUNT, room + COUNT, COUNT);
    CHECK(c.low <= 1 && c.high >= 1);
}

/* Ten rounds that leave everything open have an interval that counts, but is not worth showing. */
TEST(an_interval_that_leaves_everything_open_is_not_shown)
{
    struct comparison c = {.scale = COMPARISON_RATIO,
                           .estimate = 1.2,
                           .low = 0.08,
                           .high = 43.4,
                           .level = 0.95,
                           .base_count = 10,
                           .new_count = 10,
                           .paired = true};
    CHECK(comparison_has_interval(&c));
    CHECK(!comparison_shows_interval(&c));
    c.low = 1.01; /* it tells a direction */
    CHECK(comparison_shows_interval(&c));
    c.low = 0.5;
    c.high = 2;
    CHECK(comparison_shows_interval(&c));
    c.too_few = true;
    c.level = 0.9;
    CHECK(!comparison_shows_interval(&c)); /* of another level than it says */
}

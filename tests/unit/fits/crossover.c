/* SPDX-License-Identifier: MIT */
#include "fits/crossover.h"
#include "simulate.h"
#include "test.h"

#include <errno.h>

static struct crossover_point point(double size, double ratio, double factor)
{
    return (struct crossover_point){size,
                                    {.scale = COMPARISON_RATIO,
                                     .estimate = ratio,
                                     .low = ratio / factor,
                                     .high = ratio * factor}};
}

static struct crossovers find(const struct crossover_point *points, size_t count)
{
    struct crossovers found = {0};
    struct error err;
    CHECK_INT(crossovers_find(points, count, &found, &err), 0);
    return found;
}

TEST(a_clear_crossover)
{
    /* New is 2 × higher at 1, 2 × lower at 16; it passes 1 in the middle, at 4. */
    struct crossover_point points[] = {point(1, 2, 1.1), point(16, 0.5, 1.1)};
    struct crossovers found = find(points, 2);
    CHECK_INT(found.state, CROSSOVER_FOUND);
    CHECK_INT(found.count, 1);
    CHECK_NEAR(found.items[0].size, 4, 1e-9);
    CHECK(!found.items[0].rises);
    CHECK(found.items[0].low > 3 && found.items[0].low < 4);
    CHECK_NEAR(found.items[0].low * found.items[0].high, 16, 0.1);
    crossovers_done(&found);
}

/* Costs with a fixed part against a flat one, told in four ways: the ratio bends between the sizes,
 * and the interval holds the place where they truly meet. */
TEST(a_bend_between_two_sizes_widens_it)
{
    for (int way = 0; way < 8; way++) {
        struct crossover_point points[2];
        const double sizes[] = {1024, 4096};
        for (int i = 0; i < 2; i++) {
            double size = sizes[i], flat = 12.163, linear = 1 + 3e-3 * size;
            double by = way & 1 ? size : 1; /* for a byte, or for an operation */
            double base = (way & 4 ? linear : flat) / by, new = (way & 4 ? flat : linear) / by;
            if (way & 2) {
                base = 1 / base;
                new = 1 / new;
            }
            points[i] = point(size, new / base, 1.001);
            points[i].comparison.base_median = base;
            points[i].comparison.new_median = new;
        }
        struct crossovers found = find(points, 2);
        CHECK_INT(found.count, 1);
        CHECK(found.items[0].low < 3721 && found.items[0].high > 3721);
        CHECK(found.items[0].low > 3000 && found.items[0].high < 4097);
        crossovers_done(&found);
    }
}

TEST(sizes_without_a_difference_widen_it)
{
    struct crossover_point points[] = {point(1, 0.8, 1.05), point(10, 0.99, 1.05),
                                       point(100, 1.01, 1.05), point(1000, 1.3, 1.05)};
    struct crossovers found = find(points, 4);
    CHECK_INT(found.count, 1);
    CHECK(found.items[0].rises);
    CHECK_NEAR(found.items[0].size, sqrt(1000), 1);
    CHECK(found.items[0].low < 10 && found.items[0].high > 100);
    CHECK(found.items[0].low > 1 && found.items[0].high < 1000);
    crossovers_done(&found);
}

TEST(one_may_be_ahead_everywhere_or_nowhere)
{
    struct crossover_point lower[] = {point(1, 0.8, 1.05), point(2, 1.01, 1.05),
                                      point(4, 0.7, 1.05)};
    struct crossovers found = find(lower, 3);
    CHECK_INT(found.state, CROSSOVER_NEW_LOWER);
    CHECK_INT(found.count, 0);
    crossovers_done(&found);
    struct crossover_point higher[] = {point(1, 1.2, 1.05)};
    found = find(higher, 1);
    CHECK_INT(found.state, CROSSOVER_NEW_HIGHER);
    crossovers_done(&found);
    struct crossover_point nothing[] = {point(1, 0.99, 1.05), point(2, 1.01, 1.05)};
    found = find(nothing, 2);
    CHECK_INT(found.state, CROSSOVER_CANNOT_TELL);
    crossovers_done(&found);
    CHECK_INT(find(nothing, 0).state, CROSSOVER_CANNOT_TELL);
}

TEST(they_may_overtake_each_other_twice)
{
    struct crossover_point points[] = {point(1, 0.8, 1.05), point(10, 1.2, 1.05),
                                       point(100, 0.8, 1.05)};
    struct crossovers found = find(points, 3);
    CHECK_INT(found.count, 2);
    CHECK(found.items[0].rises && !found.items[1].rises);
    CHECK(found.items[0].high < 10 && found.items[1].low > 10);
    crossovers_done(&found);
}

TEST(bad_points_are_refused)
{
    struct crossovers found = {.count = 77};
    struct error err;
    struct crossover_point points[] = {point(2, 0.8, 1.05), point(1, 1.2, 1.05)};
    CHECK_INT(crossovers_find(points, 2, &found, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "ascend");
    points[0].size = 0;
    CHECK_INT(crossovers_find(points, 1, &found, &err), -EINVAL);
    points[1].comparison.low = NAN;
    CHECK_INT(crossovers_find(points + 1, 1, &found, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "size 1");
    CHECK_INT(found.count, 77);
}

/* Measured for real: the interval holds the true crossover as often as it says. */
TEST(intervals_of_crossovers_hold)
{
    enum { TRIALS = 400, SIZES = 6, ROUNDS = 12 };
    struct rng rng;
    size_t covered = 0, located = 0;
    rng_seed(&rng, 21);
    for (int trial = 0; trial < TRIALS; trial++) {
        struct crossover_point points[SIZES];
        double truth = exp(log(32) * (0.3 + 0.4 * rng_uniform(&rng)));
        for (size_t i = 0; i < SIZES; i++) {
            double a[ROUNDS], b[ROUNDS];
            points[i].size = (double)(1 << i);
            double ratio = pow(points[i].size / truth, 0.05);
            simulate(&rng, &shapes[trial % 5], ratio, true, a, b, ROUNDS);
            stats_compare_paired(a, b, ROUNDS, 0.95, &points[i].comparison, NULL);
        }
        struct crossovers found = find(points, SIZES);
        if (found.count == 1) {
            located++;
            covered += found.items[0].low <= truth && truth <= found.items[0].high;
        }
        crossovers_done(&found);
    }
    CHECK(located > TRIALS / 2);
    double share = (double)covered / (double)located;
    if (share < 0.93)
        test_fail(__FILE__, __LINE__, "covered %.1f %% of %zu", 100 * share, located);
}

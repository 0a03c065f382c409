/* SPDX-License-Identifier: MIT */
#include "fits/changepoint.h"
#include "numbers/random.h"
#include "test.h"

#include <errno.h>

enum { LENGTH = 60 };

static size_t find(const double *values, size_t count, struct change_point *out)
{
    struct change_points points;
    struct error err;
    CHECK_INT(change_points_find(values, count, 0.05, 1, &points, &err), 0);
    size_t found = points.count;
    for (size_t i = 0; i < found && i < 8; i++)
        out[i] = points.points[i];
    change_points_done(&points);
    return found;
}

/* A history whose level is multiplied by `change` at `from`, and back at `until`; now and then a
 * run is disturbed. */
static void history(struct rng *rng, double change, size_t from, size_t until, double *values)
{
    for (size_t i = 0; i < LENGTH; i++) {
        values[i] = 100 * exp(0.01 * rng_normal(rng)) * (rng_uniform(rng) < 0.05 ? 1.5 : 1);
        if (i >= from && i < until)
            values[i] *= change;
    }
}

TEST(a_planted_change_is_found_where_it_is)
{
    struct rng rng;
    size_t right = 0, none = 0;
    rng_seed(&rng, 11);
    for (int trial = 0; trial < 40; trial++) {
        double values[LENGTH];
        struct change_point points[8];
        history(&rng, 1.03, 35, LENGTH, values);
        size_t count = find(values, LENGTH, points);
        none += count == 0;
        right += count == 1 && points[0].index >= 34 && points[0].index <= 36 &&
                 fabs(points[0].change.estimate - 1.03) < 0.012;
    }
    CHECK_INT(none, 0);
    CHECK(right >= 34);
}

TEST(a_history_without_change_has_none)
{
    struct rng rng;
    size_t alarms = 0;
    rng_seed(&rng, 12);
    for (int trial = 0; trial < 100; trial++) {
        double values[LENGTH];
        struct change_point points[8];
        history(&rng, 1, 0, 0, values);
        alarms += find(values, LENGTH, points) > 0;
    }
    CHECK(alarms <= 11); /* 5 expected; more than 11 come once in 200 times */
}

TEST(a_bump_is_two_changes)
{
    struct rng rng;
    size_t right = 0;
    rng_seed(&rng, 13);
    for (int trial = 0; trial < 30; trial++) {
        double values[LENGTH];
        struct change_point points[8];
        history(&rng, 1.05, 20, 32, values);
        size_t count = find(values, LENGTH, points);
        right += count == 2 && points[0].index >= 18 && points[0].index <= 22 &&
                 points[1].index >= 30 && points[1].index <= 34 &&
                 points[0].change.estimate > 1.03 && points[1].change.estimate < 0.97;
    }
    CHECK(right >= 25);
}

/* Results that resemble the one before look like levels; they are no changes. */
TEST(dependence_is_no_change)
{
    struct rng rng;
    size_t alarms = 0;
    rng_seed(&rng, 14);
    for (int trial = 0; trial < 60; trial++) {
        double values[120], state = rng_normal(&rng);
        struct change_point points[8];
        for (size_t i = 0; i < 120; i++) {
            values[i] = 100 * exp(0.01 * state);
            state = 0.5 * state + sqrt(0.75) * rng_normal(&rng);
        }
        alarms += find(values, 120, points) > 0;
    }
    CHECK(alarms <= 6); /* shuffled one by one, 25 */
}

enum { LONG = 400 };

/* Noise of deviation 1 that keeps `lag1` of itself, with a step; heavy-tailed if asked to. */
static void dependent(struct rng *rng, double lag1, bool heavy, double step, size_t at,
                      double *values)
{
    double state = 0;
    for (size_t i = 0; i < 100 + LONG; i++) {
        double noise = heavy ? (exp(rng_normal(rng)) - 1.65) / 2.16 : rng_normal(rng);
        state = lag1 * state + sqrt(1 - lag1 * lag1) * noise;
        if (i >= 100)
            values[i - 100] = 100 + state + (i - 100 >= at ? step : 0);
    }
}

/* A step of twice the noise where a result keeps 0.9 of the one before: what is left of it when
 * that is taken away is a fifth of the noise, but for one large value.  By ranks alone, 15 of 40
 * are found. */
TEST(a_step_amid_strong_dependence_is_found)
{
    struct rng rng;
    size_t found = 0;
    rng_seed(&rng, 16);
    for (int trial = 0; trial < 40; trial++) {
        double values[LONG];
        struct change_point points[8];
        size_t at = 40 + (size_t)rng_below(&rng, LONG - 80), count;
        dependent(&rng, 0.9, false, 2, at, values);
        count = find(values, LONG, points);
        for (size_t i = 0; i < count && i < 8; i++)
            found += points[i].index + 20 >= at && points[i].index <= at + 20;
    }
    CHECK(found >= 34);
}

/* A regression and its fix: no single shift. */
TEST(steps_up_and_down_amid_strong_dependence_are_found)
{
    struct rng rng;
    size_t right = 0;
    rng_seed(&rng, 19);
    for (int trial = 0; trial < 20; trial++) {
        double values[LONG];
        struct change_point points[8];
        dependent(&rng, 0.9, false, 4, 150, values);
        for (size_t i = 280; i < LONG; i++)
            values[i] -= 4;
        right +=
            find(values, LONG, points) == 2 && points[0].index == 150 && points[1].index == 280;
    }
    CHECK(right >= 17);
}

/* Innovations of any size, of which the series comes back, are no steps. */
TEST(strong_dependence_with_heavy_tails_is_no_change)
{
    struct rng rng;
    size_t alarms = 0;
    rng_seed(&rng, 17);
    for (int trial = 0; trial < 100; trial++) {
        double values[LONG];
        struct change_point points[8];
        dependent(&rng, 0.9, trial % 2, 0, 0, values);
        alarms += find(values, LONG, points) > 0;
    }
    CHECK(alarms <= 11); /* by ranks and jumps alone, 50 */
}

TEST(a_step_right_at_an_end_is_found)
{
    struct rng rng;
    size_t found = 0;
    rng_seed(&rng, 18);
    for (int trial = 0; trial < 40; trial++) {
        double values[LONG];
        struct change_point points[8];
        size_t at = trial % 2 ? 5 : LONG - 5;
        dependent(&rng, 0, false, 3, at, values);
        found += find(values, LONG, points) >= 1 && points[0].index + 1 >= at &&
                 points[0].index <= at + 1;
    }
    CHECK(found >= 34);
}

TEST(one_spike_is_no_change_and_the_edges_are_right)
{
    struct rng rng;
    size_t right = 0, last = LENGTH - 8;
    rng_seed(&rng, 15);
    for (int trial = 0; trial < 20; trial++) {
        double values[LENGTH];
        struct change_point points[8];
        for (size_t i = 0; i < LENGTH; i++)
            values[i] = 100 + (double)(i * 7 % 5) / 10;
        values[rng_below(&rng, LENGTH)] *= 3;
        CHECK_INT(find(values, LENGTH, points), 0);
        for (size_t i = 0; i < LENGTH; i++)
            values[i] = (i >= last ? 110 : 100) * exp(0.01 * rng_normal(&rng));
        right += find(values, LENGTH, points) == 1 && points[0].index == last;
        for (size_t i = 0; i < LENGTH; i++)
            values[i] = (i >= 8 ? 110 : 100) * exp(0.01 * rng_normal(&rng));
        right += find(values, LENGTH, points) == 1 && points[0].index == 8;
    }
    CHECK(right >= 36);
}

TEST(counts_that_repeat_exactly)
{
    double values[20];
    struct change_point points[8];
    for (size_t i = 0; i < 20; i++)
        values[i] = i < 13 ? 7228 : 4809;
    CHECK_INT(find(values, 20, points), 1);
    CHECK_INT(points[0].index, 13);
    CHECK_NEAR(points[0].change.estimate, 4809.0 / 7228, 1e-12);
    for (size_t i = 0; i < 20; i++)
        values[i] = 5;
    CHECK_INT(find(values, 20, points), 0);
    CHECK_INT(find(values, 7, points), 0);
    CHECK_INT(find(values, 0, points), 0);
}

/* Exact counts, one for each commit: most commits change next to nothing. */
TEST(a_staircase_of_exact_counts_has_its_steps)
{
    static const double levels[] = {3.29e6, 3.61e6, 3.77e6};
    struct rng rng;
    rng_seed(&rng, 14);
    for (int drift = 0; drift < 3; drift++) {
        double values[18], at = 0;
        struct change_point points[8];
        for (size_t i = 0; i < 18; i++) {
            at += drift == 0   ? 0
                  : drift == 1 ? (double)rng_below(&rng, 40)
                               : 400 * rng_normal(&rng);
            values[i] = levels[i / 6] + floor(at);
        }
        CHECK_INT(find(values, 18, points), 2);
        CHECK_INT(points[0].index, 6);
        CHECK_INT(points[1].index, 12);
    }
}

TEST(dependent_noise_and_a_coarse_clock_are_no_staircases)
{
    struct rng rng;
    size_t alarms = 0;
    rng_seed(&rng, 15);
    for (int trial = 0; trial < 100; trial++) {
        double values[LENGTH], noise = 0;
        struct change_point points[8];
        for (size_t i = 0; i < LENGTH; i++) {
            noise = 0.5 * noise + rng_normal(&rng);
            values[i] = 100 + (trial % 2 ? noise : 2 * floor(noise / 2));
        }
        alarms += find(values, LENGTH, points) > 0;
    }
    CHECK(alarms <= 9);
}

TEST(bad_histories_are_refused)
{
    static double values[CHANGE_POINT_VALUES_MAX + 1];
    struct change_points points = {.count = 77};
    struct error err;
    CHECK_INT(change_points_find(values, CHANGE_POINT_VALUES_MAX + 1, 0.05, 1, &points, &err),
              -E2BIG);
    CHECK_CONTAINS(err.message, "2000");
    values[3] = NAN;
    CHECK_INT(change_points_find(values, 10, 0.05, 1, &points, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "value 4 of 10");
    CHECK_INT(change_points_find(values, 3, 0, 1, &points, &err), -EINVAL);
    CHECK_INT(points.count, 77);
}

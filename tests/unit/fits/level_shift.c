/* SPDX-License-Identifier: MIT */
#include "fits/level_shift.h"
#include "test.h"

#include <math.h>

enum { COUNT = 200 };

/* Steady noise of deviation 1, each value with `lag1` of the one before. */
static void noise(struct rng *rng, double lag1, double *values)
{
    double state = rng_normal(rng);
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = state;
        state = lag1 * state + sqrt(1 - lag1 * lag1) * rng_normal(rng);
    }
}

static size_t alarms(double lag1, double chance, size_t trials)
{
    struct rng rng;
    size_t found = 0;
    rng_seed(&rng, 21);
    for (size_t trial = 0; trial < trials; trial++) {
        double values[COUNT];
        struct level_shift shift;
        noise(&rng, lag1, values);
        found += level_shift_find(values, COUNT, chance, &rng, &shift);
    }
    return found;
}

TEST(chance_is_kept)
{
    CHECK(alarms(0, 0.05, 200) <= 20); /* 10 expected; more than 20 come once in 1000 times */
    CHECK(alarms(0.7, 0.05, 200) <= 20);
    CHECK(alarms(0.95, 0.05, 200) <= 24);
}

TEST(a_shift_is_found_where_it_is)
{
    static const double lags[] = {0, 0.5, 0.9};
    struct rng rng;
    rng_seed(&rng, 22);
    for (size_t k = 0; k < 3; k++) {
        size_t right = 0;
        for (int trial = 0; trial < 20; trial++) {
            double values[COUNT];
            struct level_shift shift;
            noise(&rng, lags[k], values);
            for (size_t i = 120; i < COUNT; i++)
                values[i] -= 5;
            if (!level_shift_find(values, COUNT, 0.05, &rng, &shift))
                continue;
            CHECK(shift.p <= 0.05);
            right += shift.index >= 118 && shift.index <= 122 &&
                     shift.index == level_shift_place(values, COUNT);
        }
        CHECK(right >= 17);
    }
}

/* A pulse decays; so do two bad results at the end, as far as anyone can tell. */
TEST(what_comes_back_is_no_shift)
{
    struct rng rng;
    size_t found = 0;
    rng_seed(&rng, 23);
    for (int trial = 0; trial < 40; trial++) {
        double values[COUNT], pulse = 8;
        struct level_shift shift;
        noise(&rng, 0.8, values);
        for (size_t i = 80; i < COUNT; i++, pulse *= 0.8)
            values[i] += pulse;
        found += level_shift_find(values, COUNT, 0.05, &rng, &shift);
        noise(&rng, 0, values);
        values[COUNT - 1] += 20;
        values[COUNT - 2] += 20;
        found += level_shift_find(values, COUNT, 0.05, &rng, &shift);
    }
    CHECK(found <= 8);
}

TEST(numbers_without_noise)
{
    static const double units[] = {1, 1e-300, 1e300};
    double values[COUNT];
    struct level_shift shift = {77, 7};
    struct rng rng;
    rng_seed(&rng, 24);
    for (size_t i = 0; i < COUNT; i++)
        values[i] = 5;
    CHECK(!level_shift_find(values, COUNT, 0.05, &rng, &shift));
    CHECK(!level_shift_find(values, 0, 0.05, &rng, &shift));
    CHECK_INT(shift.index, 77);
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < COUNT; i++)
            values[i] = units[k] * (i < 150 ? 1 : 1.5);
        CHECK(level_shift_find(values, COUNT, 0.05, &rng, &shift));
        CHECK_INT(shift.index, 150);
        CHECK_INT(level_shift_place(values, COUNT), 150);
    }
}

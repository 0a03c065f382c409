/* SPDX-License-Identifier: MIT */
/* Rows that are judged together: published adjustments, and calls that agree with intervals. */
#include "stats/family.h"
#include "simulate.h"
#include "stats/comparison.h"
#include "test.h"

enum { ROWS_MAX = 200, ROUNDS = 20 };

TEST(headlines_share_the_error)
{
    struct family_row rows[] = {{.p = 0.01, .is_headline = true},
                                {.p = 0.02, .is_headline = true},
                                {.p = NAN, .is_headline = true},
                                {.p = 0.9, .is_headline = true}};
    family_adjust(rows, 4, 0.05);
    /* Three tests: 1 - 0.95^(1/3) = 0.016952. */
    CHECK(rows[0].differs && !rows[1].differs && !rows[2].differs);
    CHECK_NEAR(rows[0].level, 1 - 0.016952, 1e-6);
    CHECK_NEAR(rows[0].p_adjusted, 1 - 0.99 * 0.99 * 0.99, 1e-12);
    CHECK(isnan(rows[2].p_adjusted));
    CHECK_NEAR(family_level(0.95, 1), 0.95, 0);
}

/* The fifteen p-values of Benjamini & Hochberg (1995), section 3: four discoveries at 5 %. */
TEST(the_rest_follows_benjamini_and_hochberg)
{
    static const double p[] = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                               0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
    struct family_row rows[15];
    for (size_t i = 0; i < 15; i++)
        rows[i] = (struct family_row){.p = p[i]};
    family_adjust(rows, 15, 0.05);
    for (size_t i = 0; i < 15; i++) {
        CHECK_INT(rows[i].differs, i < 4);
        CHECK_INT(rows[i].p < 1 - rows[i].level, rows[i].differs);
        CHECK_NEAR(rows[i].level, 1 - 4 * 0.05 / 15, 1e-9);
    }
}

/* Any number of equal programs against one base, all headlines: how often is any called?  And a row
 * is called exactly when its own interval excludes 1. */
TEST(null_families_raise_few_alarms_and_intervals_agree)
{
    static double base_values[ROUNDS], new_values[ROWS_MAX][ROUNDS], unused[ROUNDS];
    struct rng rng;
    size_t alarms = 0, families = 400;
    rng_seed(&rng, 3);
    for (size_t f = 0; f < families; f++) {
        static struct family_row rows[ROWS_MAX];
        const struct shape *shape = &shapes[f % 6];
        size_t count = 2 + f % 7 * f % 7 * 4, differing = 0;
        simulate(&rng, shape, 1, true, base_values, new_values[0], ROUNDS);
        for (size_t i = 1; i < count; i++)
            simulate(&rng, shape, 1, true, unused, new_values[i], ROUNDS);
        for (size_t i = 0; i < count; i++) {
            struct comparison c;
            stats_compare_paired(base_values, new_values[i], ROUNDS, 0.95, &c, NULL);
            rows[i] = (struct family_row){.p = c.p, .is_headline = true};
        }
        family_adjust(rows, count, 0.05);
        for (size_t i = 0; i < count; i++) {
            struct comparison c;
            stats_compare_paired(base_values, new_values[i], ROUNDS, rows[i].level, &c, NULL);
            CHECK_INT(rows[i].differs, comparison_differs(&c));
            differing += rows[i].differs;
        }
        alarms += differing > 0;
    }
    if (alarms > 29) /* 20 expected; more than 29 come once in 50 times */
        test_fail(__FILE__, __LINE__, "%zu of %zu families", alarms, families);
}

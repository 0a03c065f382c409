/* SPDX-License-Identifier: MIT */
/* Several benchmarks in one figure, and a sample in one line. */
#include "stats/suite.h"
#include "numbers/random.h"
#include "stats/sketch.h"
#include "test.h"

TEST(the_geometric_mean_of_ratios)
{
    struct comparison rows[] = {
        {.scale = COMPARISON_RATIO,
         .estimate = 2,
         .low = 1.9,
         .high = 2.1053,
         .level = 0.95,
         .paired = true},
        {.scale = COMPARISON_RATIO,
         .estimate = 0.5,
         .low = 0.475,
         .high = 0.52632,
         .level = 0.95,
         .paired = true},
        {.scale = COMPARISON_RATIO,
         .estimate = 1,
         .low = 0.95,
         .high = 1.0526,
         .level = 0.95,
         .paired = true},
        {.scale = COMPARISON_DIFFERENCE, .estimate = 9, .low = 8, .high = 10, .level = 0.95},
        {.scale = COMPARISON_RATIO, .estimate = 3, .low = NAN, .high = NAN, .level = 0},
    };
    struct suite s;
    stats_suite(rows, 5, 0.95, &s);
    CHECK_NEAR(s.estimate, 1, 1e-12);
    /* Each is known to 5.13 % on the scale of logs, the mean of three to a root of three less. */
    CHECK_NEAR(log(s.high), log(1.0526 / 0.95) / 2 / sqrt(3), 1e-4);
    CHECK_INT(s.count, 3);
    CHECK_INT(s.left_out, 2);
    CHECK_INT(s.larger, 1);
    CHECK_INT(s.smaller, 1);
    CHECK(s.p > 0.999);
    for (size_t i = 0; i < 3; i++)
        rows[i].paired = false;
    stats_suite(rows, 5, 0.95, &s); /* what befell one day befell all three */
    CHECK_NEAR(log(s.high), log(1.0526 / 0.95) / 2, 1e-4);
    stats_suite(rows, 1, 0.99, &s);
    CHECK_NEAR(s.estimate, 2, 1e-12);
    CHECK(s.low < 1.9 && s.p < 1e-6);
    stats_suite(rows + 3, 2, 0.95, &s);
    CHECK(isnan(s.estimate) && isnan(s.low) && s.count == 0 && s.p == 1);
}

TEST(intervals_of_suites_hold)
{
    struct rng rng;
    size_t covered = 0, trials = 1000;
    rng_seed(&rng, 31);
    for (size_t k = 0; k < trials; k++) {
        struct comparison rows[6];
        struct suite s;
        for (size_t i = 0; i < 6; i++) {
            double a[12], b[12], noise = 0.01 * (double)(i + 1);
            for (size_t j = 0; j < 12; j++) {
                a[j] = exp(noise * rng_normal(&rng));
                b[j] = (1 + 0.1 * (double)i) * exp(noise * rng_normal(&rng));
            }
            stats_compare_paired(a, b, 12, 0.99, &rows[i], NULL);
        }
        stats_suite(rows, 6, 0.95, &s);
        double truth = pow(1 * 1.1 * 1.2 * 1.3 * 1.4 * 1.5, 1.0 / 6);
        covered += s.low <= truth && truth <= s.high;
    }
    CHECK(covered >= 945);
}

/* Two samples of equal programs; in a round the machine slows down all benchmarks alike. */
TEST(suites_of_samples_that_were_taken_apart_hold)
{
    enum { ROWS = 6, VALUES = 20 };
    struct rng rng;
    size_t covered = 0, trials = 500;
    rng_seed(&rng, 32);
    for (size_t k = 0; k < trials; k++) {
        double values[2][ROWS][VALUES];
        for (size_t side = 0; side < 2; side++)
            for (size_t j = 0; j < VALUES; j++) {
                double machine = 0.03 * rng_normal(&rng);
                for (size_t i = 0; i < ROWS; i++)
                    values[side][i][j] = exp(machine + 0.01 * rng_normal(&rng));
            }
        struct comparison rows[ROWS];
        struct suite s;
        for (size_t i = 0; i < ROWS; i++)
            stats_compare_unpaired(values[0][i], VALUES, values[1][i], VALUES, 0.95, &rows[i],
                                   NULL);
        stats_suite(rows, ROWS, 0.95, &s);
        covered += s.low <= 1 && s.high >= 1;
    }
    CHECK(covered >= 465);
}

TEST(a_sample_in_one_line)
{
    const double values[] = {1, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 5};
    uint8_t levels[10];
    char text[32];
    sketch_levels(values, 14, 1, 5.5, 5, levels); /* by logs: 1.41, 1.98, 2.78, 3.91 */
    sketch_levels(values, 14, 0, 5, 5, levels);
    sketch_text(levels, 5, text, sizeof(text));
    CHECK_STR(text, " ▁▂█▃");
    sketch_levels(values, 14, 3, 3, 5, levels);
    CHECK_INT(levels[2], 8);
    CHECK_INT(levels[0], 0);
    const double modes[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 10};
    sketch_levels(modes, 10, 1, 10, 4, levels);
    sketch_text(levels, 4, text, sizeof(text));
    CHECK_STR(text, "█  ▁");
    sketch_text(levels, 4, text, 4); /* only the first fits */
    CHECK_STR(text, "█");
    sketch_levels(modes, 0, 1, 10, 4, levels);
    CHECK_INT(levels[0] + levels[1] + levels[2] + levels[3], 0);
}

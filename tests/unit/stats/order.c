/* SPDX-License-Identifier: MIT */
/* Sorting, selecting, ranking, sums of pairs, summaries. */
#include "base/memory.h"
#include "numbers/pairsums.h"
#include "numbers/random.h"
#include "numbers/sort.h"
#include "stats/median.h"
#include "stats/summary.h"
#include "test.h"

#include <errno.h>

enum { COUNT = 3000 };

/* Fills in a few patterns that are hard on quicksort. */
static void fill(double *values, size_t count, int pattern, struct rng *rng)
{
    for (size_t i = 0; i < count; i++) {
        double x = (double)i;
        values[i] = pattern == 0   ? rng_normal(rng)
                    : pattern == 1 ? x
                    : pattern == 2 ? -x
                    : pattern == 3 ? 1
                    : pattern == 4 ? (double)(i % 7)
                                   : fabs(x - (double)count / 2);
    }
}

TEST(sorting_and_selecting_agree)
{
    struct rng rng;
    double values[COUNT], sorted[COUNT], copy[COUNT];
    rng_seed(&rng, 1);
    for (int pattern = 0; pattern < 6; pattern++) {
        for (size_t count = 0; count <= COUNT; count = count * 3 + 1) {
            fill(values, count, pattern, &rng);
            memcpy(sorted, values, sizeof(values));
            sort_doubles(sorted, count);
            for (size_t i = 1; i < count; i++)
                CHECK(sorted[i - 1] <= sorted[i]);
            for (size_t i = 0; i < count; i += count / 5 + 1) {
                memcpy(copy, values, sizeof(values));
                CHECK_NEAR(select_double(copy, count, i), sorted[i], 0);
            }
        }
    }
}

TEST(ranks_of_equal_values_are_shared)
{
    double values[] = {3, 1, 3, 2, 3}, sorted[] = {1, 2, 3, 3, 3}, ranks[5];
    rank_doubles(values, sorted, 5, ranks);
    CHECK_NEAR(ranks[0], 4, 0);
    CHECK_NEAR(ranks[1], 1, 0);
    CHECK_NEAR(ranks[2], 4, 0);
    CHECK_NEAR(ranks[3], 2, 0);
}

TEST(ranks_of_many_values)
{
    enum { MANY = 5000 };
    static double values[MANY], sorted[MANY], ranks[MANY];
    struct rng rng;
    rng_seed(&rng, 9);
    for (int pattern = 0; pattern < 6; pattern++) {
        fill(values, MANY, pattern, &rng);
        memcpy(sorted, values, sizeof(values));
        sort_doubles(sorted, MANY);
        rank_doubles(values, sorted, MANY, ranks);
        for (size_t i = 0; i < MANY; i++) {
            size_t at = (size_t)ranks[i] - 1;
            CHECK(sorted[at] == values[i]);
            if (i % 97 == 0) {
                size_t below = 0, equal = 0;
                for (size_t j = 0; j < MANY; j++) {
                    below += values[j] < values[i];
                    equal += values[j] == values[i];
                }
                CHECK_NEAR(ranks[i], (double)below + (double)(equal + 1) / 2, 0);
            }
        }
    }
}

static void check_sums(const double *rows, size_t n, const double *cols, size_t m, size_t room)
{
    double all[40 * 40], scratch[100];
    struct pair_sums sums = {rows, cols, n, m};
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            all[total++] = rows[i] + cols[j];
    sort_doubles(all, total);
    CHECK_INT(pair_sums_total(&sums), total);
    for (size_t i = 0; i < total; i++)
        CHECK_NEAR(pair_sums_select(&sums, i, scratch, room), all[i], 0);
    for (double value = -8.25; value < 8; value += 0.5) {
        double below, above;
        size_t count = pair_sums_count(&sums, value, &below, &above), expected = 0;
        while (expected < total && all[expected] <= value)
            expected++;
        CHECK_INT(count, expected);
        CHECK(expected == 0 ? isinf(below) : below == all[expected - 1]);
        CHECK(expected == total ? isinf(above) : above == all[expected]);
    }
}

TEST(sums_of_pairs_agree_with_making_them_all)
{
    struct rng rng;
    double rows[40], cols[40];
    rng_seed(&rng, 5);
    for (int trial = 0; trial < 30; trial++) {
        size_t n = 1 + (size_t)rng_below(&rng, 40), m = 1 + (size_t)rng_below(&rng, 40);
        for (size_t i = 0; i < n; i++)
            rows[i] = trial % 2 ? (double)rng_below(&rng, 4) : 2 * rng_normal(&rng);
        for (size_t i = 0; i < m; i++)
            cols[i] = trial % 2 ? (double)rng_below(&rng, 4) : 2 * rng_normal(&rng);
        sort_doubles(rows, n);
        sort_doubles(cols, m);
        check_sums(rows, n, cols, m, trial % 3 ? 40 : 3);
    }
}

TEST(quantiles_are_of_type_7)
{
    double sorted[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    CHECK_NEAR(stats_quantile(sorted, 10, 0.25), 3.25, 1e-12);
    CHECK_NEAR(stats_quantile(sorted, 10, 0.9), 9.1, 1e-12);
    CHECK_NEAR(stats_quantile(sorted, 10, 0), 1, 0);
    CHECK_NEAR(stats_quantile(sorted, 10, 1), 10, 0);
    CHECK_NEAR(stats_quantile(sorted, 1, 0.3), 1, 0);
    CHECK(isnan(stats_quantile(sorted, 0, 0.5)));
    CHECK(isnan(stats_quantile(sorted, 10, 1.5)));
}

TEST(summaries_of_few_values)
{
    struct summary s;
    struct error err;
    double values[] = {4, 2, 9};
    CHECK_INT(stats_summarise(values, 0, &s, &err), 0);
    CHECK_INT(s.count, 0);
    CHECK(isnan(s.mean) && isnan(s.median) && isnan(s.stddev) && isnan(s.mad) && isnan(s.min));
    CHECK_INT(stats_summarise(values, 1, &s, &err), 0);
    CHECK(s.mean == 4 && s.median == 4 && s.min == 4 && s.max == 4 && s.mad == 0);
    CHECK(isnan(s.stddev));
    CHECK_INT(stats_summarise(values, 2, &s, &err), 0);
    CHECK(s.mean == 3 && s.median == 3 && s.q1 == 2.5 && s.q3 == 3.5);
    CHECK_NEAR(s.stddev, M_SQRT2, 1e-12);
    CHECK_INT(stats_summarise(values, 3, &s, &err), 0);
    CHECK(s.median == 4);
    CHECK_NEAR(s.mad, 2 * 1.4826, 1e-4);
}

TEST(a_large_offset_does_not_spoil_the_spread)
{
    struct running running = {0};
    const double values[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
    for (size_t i = 0; i < 4; i++)
        running_add(&running, values[i]);
    CHECK_NEAR(running.mean, 1e9 + 10, 1e-6);
    CHECK_NEAR(running_stddev(&running), sqrt(30), 1e-9);
    CHECK(running.min == 1e9 + 4 && running.max == 1e9 + 16);
}

TEST(what_is_no_number_is_refused)
{
    struct summary s = {.count = 77};
    struct error err;
    double values[] = {1, 2, NAN, 4};
    CHECK_INT(stats_summarise(values, 4, &s, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "value 3 of 4");
    CHECK_INT(s.count, 77);
    values[2] = INFINITY;
    CHECK_INT(stats_summarise(values, 4, &s, &err), -EINVAL);
}

/* The depths that tables of confidence intervals for the median give, and their levels. */
TEST(intervals_of_the_median)
{
    static const struct {
        size_t count, depth;
        double level;
    } table[] = {{8, 2, 0.9297},  {9, 2, 0.9609},   {10, 2, 0.9785}, {15, 4, 0.9648},
                 {20, 6, 0.9586}, {50, 18, 0.9672}, {6, 1, 0.96875}};
    double sorted[50];
    for (size_t i = 0; i < 50; i++)
        sorted[i] = (double)(i + 1);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct median_interval m;
        size_t n = table[i].count;
        median_interval(sorted, n, table[i].level - 1e-4, &m);
        CHECK_NEAR(m.median, (double)(n + 1) / 2, 1e-12);
        CHECK_NEAR(m.low, (double)table[i].depth, 0.02);
        CHECK_NEAR(m.high, (double)(n + 1 - table[i].depth), 0.02);
    }
    struct median_interval m;
    median_interval(sorted, 5, 0.95, &m);
    CHECK_NEAR(m.level, 0.9375, 1e-12);
    CHECK(m.low == 1 && m.high == 5);
    median_interval(sorted, 1, 0.95, &m);
    CHECK_NEAR(m.level, 0, 1e-12);
    /* The sign test: 10 values above, P = 2 / 1024; 2 of 10 below, 112 / 1024. */
    CHECK_NEAR(median_p(sorted, 10, 0), 2.0 / 1024, 1e-12);
    CHECK_NEAR(median_p(sorted, 10, 3 - 1e-9), 112.0 / 1024, 1e-6);
    CHECK_NEAR(median_p(sorted, 10, 8 + 1e-9), 112.0 / 1024, 1e-6);
    CHECK_NEAR(median_p(sorted, 10, 5.5), 1, 0);
}

/* SPDX-License-Identifier: MIT */
/* Against the tables printed in every statistics book. */
#include "numbers/distributions.h"
#include "numbers/random.h"
#include "numbers/sort.h"
#include "stats/ranksum.h"
#include "stats/signedrank.h"
#include "test.h"

TEST(normal)
{
    CHECK_NEAR(dist_normal_cdf(0), 0.5, 1e-15);
    CHECK_NEAR(dist_normal_cdf(1.96), 0.9750021049, 1e-10);
    CHECK_NEAR(dist_normal_cdf(-3), 0.0013498980, 1e-10);
    CHECK_NEAR(dist_normal_quantile(0.975), 1.9599639845, 1e-9);
    CHECK_NEAR(dist_normal_quantile(0.995), 2.5758293035, 1e-9);
    CHECK_NEAR(dist_normal_quantile(0.9999), 3.7190164855, 1e-9);
    CHECK_NEAR(dist_normal_quantile(0.5), 0, 1e-12);
    for (double p = 1e-12; p < 1; p = p < 0.01 ? p * 10 : p + 0.01)
        CHECK_NEAR(dist_normal_cdf(dist_normal_quantile(p)), p, 1e-12 * p + 1e-15);
    CHECK(isinf(dist_normal_quantile(0)));
    CHECK(isinf(dist_normal_quantile(1)));
    CHECK(isnan(dist_normal_quantile(1.1)));
    CHECK(isnan(dist_normal_quantile(NAN)));
}

TEST(student)
{
    static const struct {
        double p, freedom, t;
    } table[] = {{0.975, 1, 12.7062}, {0.975, 2, 4.3027},   {0.975, 5, 2.5706},
                 {0.975, 10, 2.2281}, {0.975, 30, 2.0423},  {0.975, 120, 1.9799},
                 {0.995, 4, 4.6041},  {0.9995, 10, 4.5869}, {0.90, 3, 1.6377},
                 {0.75, 7, 0.7111},   {0.60, 1, 0.3249},    {0.95, 1000, 1.6464}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        CHECK_NEAR(dist_t_quantile(table[i].p, table[i].freedom), table[i].t, 6e-5);
        CHECK_NEAR(dist_t_quantile(1 - table[i].p, table[i].freedom), -table[i].t, 6e-5);
        CHECK_NEAR(dist_t_cdf(dist_t_quantile(table[i].p, table[i].freedom), table[i].freedom),
                   table[i].p, 1e-10);
    }
    CHECK_NEAR(dist_t_cdf(1, 1), 0.75, 1e-12); /* Cauchy: 1/2 + atan(1)/pi */
    CHECK(isnan(dist_t_quantile(0.5, 0)));
}

TEST(chi_square)
{
    CHECK_NEAR(dist_chi_square_tail(3.8415, 1), 0.05, 1e-5);
    CHECK_NEAR(dist_chi_square_tail(11.0705, 5), 0.05, 1e-6);
    CHECK_NEAR(dist_chi_square_tail(18.3070, 10), 0.05, 1e-6);
    CHECK_NEAR(dist_chi_square_tail(43.7730, 30), 0.05, 1e-6);
    CHECK_NEAR(dist_chi_square_tail(124.342, 100), 0.05, 1e-5);
    CHECK_NEAR(dist_chi_square_tail(0.0039321, 1), 0.95, 1e-6);
    CHECK_NEAR(dist_chi_square_tail(1e6, 1e6), 0.5, 1e-3);
}

TEST(beta)
{
    CHECK_NEAR(dist_beta_cdf(0.3, 1, 1), 0.3, 1e-14);
    CHECK_NEAR(dist_beta_cdf(0.5, 2, 2), 0.5, 1e-14);
    CHECK_NEAR(dist_beta_cdf(0.2, 2, 3), 0.1808, 1e-12);
    CHECK_NEAR(dist_beta_cdf(0.5, 5e5, 5e5), 0.5, 1e-9);
    for (double p = 0.001; p < 1; p += 0.037)
        CHECK_NEAR(dist_beta_cdf(dist_beta_quantile(p, 3, 0.5), 3, 0.5), p, 1e-10);
    CHECK(isnan(dist_beta_cdf(0.5, 0, 1)));
}

TEST(binomial)
{
    CHECK_NEAR(dist_binomial_cdf(2, 10, 0.5), 56.0 / 1024, 1e-12);
    CHECK_NEAR(dist_binomial_cdf(1, 20, 0.05), 0.735840, 1e-6);
    CHECK_NEAR(dist_binomial_cdf(10, 10, 0.3), 1, 0);
    CHECK_NEAR(dist_binomial_cdf(0, 3, 1), 0, 0);
    CHECK_NEAR(dist_binomial_cdf(0, 3, 0), 1, 0);
}

TEST(clopper_and_pearson)
{
    static const struct {
        size_t successes, trials;
        double low, high;
    } table[] = {{5, 10, 0.1871, 0.8129},
                 {0, 10, 0, 0.3085},
                 {10, 10, 0.6915, 1},
                 {1, 20, 0.0013, 0.2487},
                 {10, 100, 0.0490, 0.1762}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        double low, high;
        dist_binomial_interval(table[i].successes, table[i].trials, 0.95, &low, &high);
        CHECK_NEAR(low, table[i].low, 6e-5);
        CHECK_NEAR(high, table[i].high, 6e-5);
    }
}

/* The table of Mann & Whitney's critical values, two-sided 5 %; -1 where there is none. */
TEST(mann_and_whitney)
{
    static const struct {
        size_t n, m;
        int critical;
    } table[] = {{3, 3, -1}, {4, 4, 0},   {3, 5, 0},    {5, 5, 2},     {5, 10, 8},
                 {8, 8, 13}, {7, 12, 18}, {10, 10, 23}, {20, 20, 127}, {12, 7, 18}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct rank_sum test;
        rank_sum_init(&test, table[i].n, table[i].m);
        CHECK_INT(floor(rank_sum_critical(&test, 0.05)), table[i].critical);
        double k = rank_sum_critical(&test, 0.05);
        if (k >= 0)
            CHECK_NEAR(rank_sum_p(&test, k), 0.05, 1e-12);
        CHECK_NEAR(rank_sum_p(&test, 1e9), 1, 0);
    }
    struct rank_sum test;
    rank_sum_init(&test, 4, 4);
    CHECK_NEAR(rank_sum_p(&test, 0), 2.0 / 70, 1e-12);
    /* Beyond the exact range the approximation goes on where the counting ends. */
    struct rank_sum exact, normal;
    rank_sum_init(&exact, 20, 20);
    normal = exact;
    normal.exact = false;
    CHECK_NEAR(rank_sum_p(&exact, 130), rank_sum_p(&normal, 130), 0.001);
}

/* Hollander & Wolfe, table A.4: P(T+ >= 28) = 0.500 … for n = 10 P(T+ <= 8) = 0.024, for n = 20
 * P(T+ <= 52) = 0.024; by hand for n = 4. */
TEST(wilcoxons_signed_ranks)
{
    struct signed_rank test;
    signed_rank_init(&test, 4);
    CHECK_NEAR(signed_rank_p(&test, 0), 2.0 / 16, 1e-12);
    CHECK_NEAR(signed_rank_p(&test, 3), 10.0 / 16, 1e-12);
    CHECK_INT(signed_rank_critical(&test, 0.05), -1);
    signed_rank_init(&test, 10);
    CHECK_NEAR(signed_rank_p(&test, 8), 2 * 25.0 / 1024, 1e-12);
    CHECK_NEAR(signed_rank_p(&test, 10), 2 * 43.0 / 1024, 1e-12);
    CHECK_NEAR(signed_rank_p(&test, signed_rank_critical(&test, 0.05)), 0.05, 1e-12);
    signed_rank_init(&test, 20);
    CHECK_NEAR(signed_rank_p(&test, 52) / 2, 0.0242, 5e-5);
    CHECK_NEAR(signed_rank_p(&test, 60) / 2, 0.0487, 5e-5);
    struct signed_rank large = {0};
    signed_rank_init(&test, SIGNED_RANK_EXACT_MAX);
    signed_rank_init(&large, SIGNED_RANK_EXACT_MAX + 1);
    CHECK(test.tail && !large.tail);
    CHECK_NEAR(signed_rank_critical(&large, 0.05) / large.mean,
               signed_rank_critical(&test, 0.05) / test.mean, 0.01);
}

/* All means of pairs, made and sorted, give the same centre, interval and p. */
TEST(signed_ranks_agree_with_making_all_pairs)
{
    struct rng rng;
    rng_seed(&rng, 8);
    for (int trial = 0; trial < 200; trial++) {
        double sorted[30], means[465];
        size_t n = 6 + (size_t)rng_below(&rng, 25), count = 0;
        for (size_t i = 0; i < n; i++)
            sorted[i] = trial % 2 ? rng_normal(&rng) : rint(4 * rng_normal(&rng)) / 4;
        sort_doubles(sorted, n);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j <= i; j++)
                means[count++] = (sorted[i] + sorted[j]) / 2;
        sort_doubles(means, count);
        struct signed_rank test;
        signed_rank_init(&test, n);
        double low, high, centre;
        signed_rank_locate(&test, sorted, n, 0.05, &centre, &low, &high);
        CHECK_NEAR(centre, (means[(count - 1) / 2] + means[count / 2]) / 2, 1e-12);
        size_t place = (size_t)signed_rank_critical(&test, 0.05);
        CHECK(low >= means[place] - 1e-12 && low <= means[place + 1] + 1e-12);
        CHECK(high <= means[count - 1 - place] + 1e-12 && high >= means[count - 2 - place] - 1e-12);
        CHECK(signed_rank_p_of(&test, sorted, n, centre, nextafter(low, -INFINITY)) <= 0.05 + 1e-9);
        CHECK(signed_rank_p_of(&test, sorted, n, centre, low + 1e-9) >= 0.05 - 1e-9);
        CHECK(signed_rank_p_of(&test, sorted, n, centre, high + 1e-9) <= 0.05 + 1e-9);
    }
}

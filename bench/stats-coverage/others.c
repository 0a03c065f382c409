/* SPDX-License-Identifier: MIT */
/* See others.h. */
#include "others.h"
#include "base/memory.h"
#include "fits/crossover.h"
#include "fits/noise.h"
#include "numbers/sort.h"
#include "simulate.h"
#include "stats/comparison.h"
#include "stats/summary.h"

#include <math.h>
#include <stdio.h>

enum { VALUES_MAX = 2400 };

static struct rng seeded(size_t shape, size_t cell, uint64_t salt)
{
    struct rng rng;
    rng_seed(&rng, shape * 1000003 + cell * 101 + salt * 7919);
    return rng;
}

static void print_head(const char *title, size_t experiments)
{
    printf("%s; %zu experiments each\n\n%-26s", title, experiments, "");
}

/* Drift differs between two sittings, and no arithmetic can tell it from a difference. */
static bool apart(const struct shape *shape)
{
    return shape->kind != SHAPE_DRIFT && shape->kind != SHAPE_NEIGHBOURS &&
           shape->kind != SHAPE_UNLIKE;
}

static void print_unpaired(size_t experiments)
{
    static const size_t counts[][2] = {{4, 4},   {6, 6},   {8, 8},  {10, 10},
                                       {10, 40}, {20, 20}, {50, 50}};
    double a[50], b[50], unused[50];
    print_head("Unpaired: coverage of the 95 % interval in %", experiments);
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++)
        printf("%4zu v %-3zu", counts[i][0], counts[i][1]);
    putchar('\n');
    for (size_t s = 0; s < shape_count; s++) {
        if (!apart(&shapes[s]))
            continue;
        printf("%-26s", shapes[s].name);
        for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
            struct rng rng = seeded(s, i, 5);
            size_t covered = 0;
            for (size_t e = 0; e < experiments; e++) {
                struct comparison c = {0};
                simulate(&rng, &shapes[s], 1, true, a, unused, counts[i][0]);
                simulate(&rng, &shapes[s], 1, true, unused, b, counts[i][1]);
                stats_compare_unpaired(a, counts[i][0], b, counts[i][1], 0.95, &c, NULL);
                covered += c.low <= 1 && 1 <= c.high;
            }
            printf("%8.1f ", 100 * (double)covered / (double)experiments);
        }
        putchar('\n');
        fflush(stdout);
    }
    putchar('\n');
}

static void print_smallest_change(size_t test_rounds, size_t experiments)
{
    static const size_t budgets[] = {10, 20, 50, 100, 300, 1000};
    enum { AGAIN = 10 };
    static double a[VALUES_MAX], b[VALUES_MAX];
    char title[128];
    snprintf(title, sizeof(title),
             "The smallest change after a noise test of %zu rounds: found in %% of budgets",
             test_rounds);
    print_head(title, experiments);
    for (size_t i = 0; i < ARRAY_COUNT(budgets); i++)
        printf("%7zu", budgets[i]);
    putchar('\n');
    for (size_t s = 0; s < shape_count; s++) {
        if (shapes[s].kind == SHAPE_UNLIKE)
            continue;
        printf("%-26s", shapes[s].name);
        for (size_t i = 0; i < ARRAY_COUNT(budgets); i++) {
            struct rng rng = seeded(s, i, 7);
            size_t found = 0, tried = 0;
            while (tried < experiments) {
                struct noise noise;
                simulate(&rng, &shapes[s], 1, true, a, b, test_rounds);
                stats_noise(a, b, test_rounds, 1, (double)budgets[i], &noise);
                for (size_t again = 0; again < AGAIN; again++, tried++) {
                    struct comparison c = {0};
                    simulate(&rng, &shapes[s], 1 + noise.smallest_change, true, a, b, budgets[i]);
                    stats_compare_paired(a, b, budgets[i], 0.95, &c, NULL);
                    found += c.low > 1;
                }
            }
            printf("%7.1f", 100 * (double)found / (double)tried);
            fflush(stdout);
        }
        putchar('\n');
    }
    putchar('\n');
}

enum { SIZES = 6, CROSSING_ROUNDS_MAX = 60, RESAMPLES = 500 };

/* The percentile bootstrap of the place where the medians pass 1, as log size. */
static void bootstrap_crossing(double logs[SIZES][CROSSING_ROUNDS_MAX], size_t rounds,
                               struct rng *rng, double *ret_low, double *ret_high)
{
    double found[RESAMPLES];
    for (size_t k = 0; k < RESAMPLES; k++) {
        double sample[CROSSING_ROUNDS_MAX], scratch[CROSSING_ROUNDS_MAX], last = 0;
        found[k] = 0; /* how far the ratio is below 1 */
        for (size_t i = 0; i < SIZES; i++) {
            for (size_t j = 0; j < rounds; j++)
                sample[j] = logs[i][rng_below(rng, rounds)];
            double now = stats_median(sample, rounds, scratch);
            if (i > 0 && last < 0 && now < 0)
                found[k] += M_LN2;
            else if (i > 0 && (last < 0) != (now < 0))
                found[k] += M_LN2 * (last < 0 ? last / (last - now) : now / (now - last));
            last = now;
        }
    }
    sort_doubles(found, RESAMPLES);
    *ret_low = stats_quantile(found, RESAMPLES, 0.025);
    *ret_high = stats_quantile(found, RESAMPLES, 0.975);
}

static void print_crossing(const struct shape *shape, size_t rounds, size_t experiments)
{
    struct rng rng = seeded((size_t)(shape - shapes), rounds, 8);
    size_t located = 0, covered = 0, boot_covered = 0;
    double width = 0, boot_width = 0;
    for (size_t e = 0; e < experiments; e++) {
        double a[CROSSING_ROUNDS_MAX], b[CROSSING_ROUNDS_MAX], logs[SIZES][CROSSING_ROUNDS_MAX];
        struct crossover_point points[SIZES];
        double truth = 5 * M_LN2 * (0.3 + 0.4 * rng_uniform(&rng)), low, high;
        for (size_t i = 0; i < SIZES; i++) {
            points[i].size = (double)(1 << i);
            double ratio = exp(0.05 * (log(points[i].size) - truth));
            simulate(&rng, shape, ratio, true, a, b, rounds);
            stats_compare_paired(a, b, rounds, 0.95, &points[i].comparison, NULL);
            for (size_t j = 0; j < rounds; j++)
                logs[i][j] = log(b[j] / a[j]);
        }
        struct crossovers found;
        if (crossovers_find(points, SIZES, &found, NULL) < 0)
            continue;
        if (found.count == 1) {
            located++;
            covered += log(found.items[0].low) <= truth && truth <= log(found.items[0].high);
            width += log(found.items[0].high / found.items[0].low);
            bootstrap_crossing(logs, rounds, &rng, &low, &high);
            boot_covered += low <= truth && truth <= high;
            boot_width += high - low;
        }
        crossovers_done(&found);
    }
    double all = (double)located;
    printf("%-26s%8zu%12zu%14.1f%8.2f%14.1f%8.2f\n", shape->name, rounds, located,
           100 * (double)covered / all, width / all, 100 * (double)boot_covered / all,
           boot_width / all);
    fflush(stdout);
}

static void print_crossings(size_t experiments)
{
    static const size_t rounds[] = {8, 12, 30, 60};
    print_head(
        "Crossovers over six sizes: coverage in % and width in logs, inverted and bootstrapped",
        experiments);
    printf("%8s%12s%14s%8s%14s%8s\n", "rounds", "located", "inverted", "width", "bootstrap",
           "width");
    for (size_t s = 0; s < shape_count; s++) {
        bool shown = shapes[s].kind == SHAPE_NORMAL || shapes[s].kind == SHAPE_OUTLIERS ||
                     (shapes[s].kind == SHAPE_AR && shapes[s].group == SHAPE_DEPENDENT);
        for (size_t i = 0; shown && i < ARRAY_COUNT(rounds); i++)
            print_crossing(&shapes[s], rounds[i], experiments);
    }
    putchar('\n');
}

void others_print(size_t experiments)
{
    print_unpaired(experiments);
    print_smallest_change(400, experiments / 2 + 1);
    print_smallest_change(60, experiments / 2 + 1);
    print_crossings(experiments / 2 + 1);
}

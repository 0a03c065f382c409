/* SPDX-License-Identifier: MIT */
/*
 * How often do the intervals of assay's comparison hold?  Simulates experiments on machines with
 * known noise and prints, per shape of noise and number of rounds,
 *   - how often the 95 % interval of `assay ab` covers the true ratio,
 *   - the same for methods that were tried and rejected,
 *   - how often two identical programs are called different, beside hyperfine's and the kernel
 *     test robot's rule, each measuring in the order in which that tool does,
 *   - how often a planted change is found,
 *   - the same for what else stats/ promises (others.c), and how quick it is.
 * Exits with 1 when a bar is missed: 93 to 97 % for independent noise, 90 % otherwise.
 *
 *   stats-coverage [EXPERIMENTS [coverage]]
 *
 * does 10,000 experiments unless said otherwise; "coverage" prints the first table only.
 *
 *   stats-coverage rivals|rules EXPERIMENTS
 *
 * prints the methods that were rejected, or the rules of other tools, alone.
 *
 *   stats-coverage PART [EXPERIMENTS]
 *
 * prints one of the tables about verdicts (judging.h): power, few, families, tails, ticks, means,
 * stopping, trends, changes, odd-changes, short-changes, gates, busy, tables, lasting, speed;
 * "judging" prints all of these.
 *
 *   stats-coverage aa ROUNDS COMMAND [ARGUMENT…]
 *
 * asks the same of a real program on this machine, run against itself.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "judging.h"
#include "others.h"
#include "real.h"
#include "rivals.h"
#include "simulate.h"
#include "stats/comparison.h"

#include <math.h>
#include <stdio.h>

static const size_t round_counts[] = {8, 9, 10, 12, 15, 20, 30, 50, 100, 300};
static const size_t rival_rounds[] = {8, 10, 20, 50};
enum { ROUNDS_MAX = 300, RIVAL_EXPERIMENTS = 2000 };

static const double true_ratio = 1.05;

static struct rng seeded(const struct shape *shape, size_t rounds, uint64_t salt)
{
    struct rng rng;
    rng_seed(&rng, (uint64_t)(shape - shapes) * 1000003 + rounds + salt * 7919);
    return rng;
}

static double coverage(const struct shape *shape, size_t rounds, size_t experiments)
{
    double base_values[ROUNDS_MAX], new_values[ROUNDS_MAX];
    double ratio = shape->kind == SHAPE_COARSE ? 1 : true_ratio;
    double truth = exp(simulate_truth(shape, ratio));
    struct rng rng = seeded(shape, rounds, 1);
    size_t covered = 0;
    for (size_t i = 0; i < experiments; i++) {
        struct comparison c;
        simulate(&rng, shape, ratio, true, base_values, new_values, rounds);
        if (stats_compare_paired(base_values, new_values, rounds, 0.95, &c, NULL) == 0)
            covered += c.low <= truth && truth <= c.high;
    }
    return (double)covered / (double)experiments;
}

static bool within_bar(const struct shape *shape, double share)
{
    switch (shape->group) {
    case SHAPE_INDEPENDENT:
        return share >= 0.93 && share <= 0.97;
    case SHAPE_DEPENDENT:
        return share >= 0.9;
    case SHAPE_BEYOND:
        return true;
    }
    return false;
}

static int print_coverage(size_t experiments)
{
    int missed = 0;
    printf("Coverage of assay's 95 %% interval in %%, %zu experiments each\n\n%-26s", experiments,
           "rounds");
    for (size_t i = 0; i < ARRAY_COUNT(round_counts); i++)
        printf("%7zu", round_counts[i]);
    putchar('\n');
    for (size_t s = 0; s < shape_count; s++) {
        if (s > 0 && shapes[s].group != shapes[s - 1].group)
            printf("%s\n", shapes[s].group == SHAPE_BEYOND ? "-- beyond the promise"
                                                           : "-- ties, drift, autocorrelation");
        printf("%-26s", shapes[s].name);
        for (size_t i = 0; i < ARRAY_COUNT(round_counts); i++) {
            double share = coverage(&shapes[s], round_counts[i], experiments);
            bool good = within_bar(&shapes[s], share);
            missed += !good;
            printf("%6.1f%c", 100 * share, good ? ' ' : '!');
            fflush(stdout);
        }
        putchar('\n');
    }
    printf(
        "\n%d cells outside of the bars (marked !); shapes with a star were not used to choose the "
        "method\n\n",
        missed);
    return missed;
}

enum { METHOD_COUNT = 7 };
static const char *const method_names[METHOD_COUNT] = {
    "assay", "signed rank", "t of logs", "median, sign", "percentile", "BCa", "block boot",
};

static void intervals(const double *base_values, const double *new_values, size_t rounds,
                      struct rng *rng, struct interval *out)
{
    double logs[ROUNDS_MAX];
    struct comparison c = {0};
    for (size_t i = 0; i < rounds; i++)
        logs[i] = log(new_values[i] / base_values[i]);
    stats_compare_paired(base_values, new_values, rounds, 0.95, &c, NULL);
    out[0] = (struct interval){log(c.low), log(c.high)};
    out[1] = rival_signed_rank(logs, rounds);
    out[2] = rival_student(logs, rounds);
    out[3] = rival_sign(logs, rounds);
    out[4] = rival_percentile(logs, rounds, rng);
    out[5] = rival_bca(logs, rounds, rng);
    out[6] = rival_block_bootstrap(logs, rounds, rng);
}

/* Coverage, and the mean width beside assay's. */
static void print_rivals_row(const struct shape *shape, size_t rounds, size_t experiments)
{
    double base_values[ROUNDS_MAX], new_values[ROUNDS_MAX], width[METHOD_COUNT] = {0};
    size_t covered[METHOD_COUNT] = {0};
    struct rng rng = seeded(shape, rounds, 2), resampling = seeded(shape, rounds, 3);
    for (size_t e = 0; e < experiments; e++) {
        struct interval found[METHOD_COUNT];
        simulate(&rng, shape, true_ratio, true, base_values, new_values, rounds);
        intervals(base_values, new_values, rounds, &resampling, found);
        for (size_t m = 0; m < METHOD_COUNT; m++) {
            covered[m] += found[m].low <= log(true_ratio) && log(true_ratio) <= found[m].high;
            width[m] += found[m].high - found[m].low;
        }
    }
    printf("%-26s%4zu", shape->name, rounds);
    for (size_t m = 0; m < METHOD_COUNT; m++)
        printf("  %5.1f %5.2f", 100 * (double)covered[m] / (double)experiments,
               width[m] / width[0]);
    putchar('\n');
    fflush(stdout);
}

static void print_rivals(size_t experiments)
{
    printf("Methods side by side: coverage in %%, and mean width (assay's is 1); "
           "%zu experiments each\n\n%-26s   n",
           experiments, "");
    for (size_t m = 0; m < METHOD_COUNT; m++)
        printf("%13s", method_names[m]);
    putchar('\n');
    for (size_t s = 0; s < shape_count; s++) {
        if (shapes[s].kind == SHAPE_COARSE || shapes[s].kind == SHAPE_UNLIKE)
            continue; /* the methods estimate different things there */
        for (size_t i = 0; i < ARRAY_COUNT(rival_rounds); i++)
            print_rivals_row(&shapes[s], rival_rounds[i], experiments);
    }
    putchar('\n');
}

struct calls {
    double assay, hyperfine, robot;
};

/* How often each rule calls the two programs different. */
static struct calls called_different(const struct shape *shape, double ratio, size_t rounds,
                                     size_t experiments)
{
    double base_values[ROUNDS_MAX], new_values[ROUNDS_MAX];
    struct rng rng = seeded(shape, rounds, 4);
    size_t assay = 0, hyperfine = 0, robot = 0;
    for (size_t e = 0; e < experiments; e++) {
        struct comparison c = {0};
        simulate(&rng, shape, ratio, true, base_values, new_values, rounds);
        stats_compare_paired(base_values, new_values, rounds, 0.95, &c, NULL);
        assay += comparison_differs(&c);
        simulate(&rng, shape, ratio, false, base_values, new_values, rounds);
        hyperfine += rival_hyperfine_differs(base_values, new_values, rounds);
        robot += rival_robot_differs(base_values, new_values, rounds);
    }
    double all = (double)experiments;
    return (struct calls){(double)assay / all, (double)hyperfine / all, (double)robot / all};
}

static void print_calls(const char *title, double ratio, const size_t *rounds, size_t rounds_count,
                        size_t experiments)
{
    printf("%s, in %%; %zu experiments each (A: assay, interleaved; H: hyperfine's ratio ± σ, "
           "R: the robot's\nrule, both one command after the other)\n\n%-26s",
           title, experiments, "runs of each");
    for (size_t i = 0; i < rounds_count; i++)
        printf("%8zu A     H     R", rounds[i]);
    putchar('\n');
    for (size_t s = 0; s < shape_count; s++) {
        if (shapes[s].kind == SHAPE_UNLIKE)
            continue; /* these differ in more than the planted change */
        printf("%-26s", shapes[s].name);
        for (size_t i = 0; i < rounds_count; i++) {
            struct calls calls = called_different(&shapes[s], ratio, rounds[i], experiments);
            printf("    %6.1f%6.1f%6.1f", 100 * calls.assay, 100 * calls.hyperfine,
                   100 * calls.robot);
            fflush(stdout);
        }
        putchar('\n');
    }
    putchar('\n');
}

static void print_speed(void)
{
    enum { VALUES = 1000000 };
    double *room = memory_alloc(2 * (size_t)VALUES * sizeof(double));
    struct rng rng;
    struct comparison c;
    rng_seed(&rng, 1);
    for (size_t i = 0; i < 2 * (size_t)VALUES; i++)
        room[i] = exp(0.1 * rng_normal(&rng));
    uint64_t start = clock_now_ns();
    stats_compare_paired(room, room + VALUES / 2, VALUES / 2, 0.95, &c, NULL);
    uint64_t middle = clock_now_ns();
    stats_compare_unpaired(room, VALUES / 2, room + VALUES / 2, VALUES / 2, 0.95, &c, NULL);
    uint64_t end = clock_now_ns();
    printf("10^6 raw values compared: paired %.2f s, unpaired %.2f s\n",
           (double)(middle - start) / 1e9, (double)(end - middle) / 1e9);
    free(room);
}

static void print_all_calls(size_t experiments)
{
    static const size_t alarm_rounds[] = {3, 4, 6, 10, 20}, found_rounds[] = {10, 20, 50};
    print_calls("Identical programs called different", 1, alarm_rounds, ARRAY_COUNT(alarm_rounds),
                experiments);
    print_calls("A change of 5 % found", 1.05, found_rounds, ARRAY_COUNT(found_rounds),
                experiments);
}

int main(int argc, char **argv)
{
    uint64_t experiments = 10000, rounds = 0;
    struct error err;
    if (argc >= 4 && str_eq(argv[1], "aa") && parse_u64(argv[2], &rounds, &err) == 0) {
        int r = real_print(argv + 3, (size_t)rounds, &err);
        if (r < 0)
            fprintf(stderr, "stats-coverage: %s\n", err.message);
        return r < 0;
    }
    if ((argc == 2 || (argc == 3 && parse_u64(argv[2], &rounds, &err) == 0)) &&
        judging_print(argv[1], (size_t)rounds))
        return 0;
    if (argc == 3 && (str_eq(argv[1], "rivals") || str_eq(argv[1], "rules")) &&
        parse_u64(argv[2], &rounds, &err) == 0) {
        str_eq(argv[1], "rivals") ? print_rivals((size_t)rounds) : print_all_calls((size_t)rounds);
        return 0;
    }
    if (argc > 3 || (argc == 3 && !str_eq(argv[2], "coverage")) ||
        (argc >= 2 && parse_u64(argv[1], &experiments, &err) < 0) || experiments == 0) {
        fprintf(stderr, "usage: stats-coverage [EXPERIMENTS [coverage]]\n"
                        "       stats-coverage rivals|rules EXPERIMENTS\n"
                        "       stats-coverage PART [EXPERIMENTS]\n"
                        "       stats-coverage aa ROUNDS COMMAND [ARGUMENT…]\n"
                        "parts: power few families tails ticks means stopping trends changes "
                        "odd-changes short-changes speed\n");
        return 2;
    }
    int missed = print_coverage((size_t)experiments);
    if (argc == 3)
        return missed > 0;
    size_t few = experiments < RIVAL_EXPERIMENTS ? (size_t)experiments : RIVAL_EXPERIMENTS;
    print_rivals(few);
    print_all_calls((size_t)experiments);
    others_print(few);
    judging_print("judging", 0);
    print_speed();
    return missed > 0;
}

/* SPDX-License-Identifier: MIT */
/* See judging.h. */
#include "judging.h"
#include "analysis/judge.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "changes.h"
#include "fits/trend.h"
#include "gates.h"
#include "numbers/distributions.h"
#include "simulate.h"
#include "stats/comparison.h"
#include "stats/family.h"
#include "stats/means.h"
#include "stats/plan.h"
#include "stats/summary.h"
#include "stats/tails.h"
#include "tables.h"

#include <math.h>
#include <stdio.h>

enum { ROUNDS_MAX = 2000, ROWS_MAX = 200 };

static const double error = 0.05;
static double first[ROUNDS_MAX], second[ROUNDS_MAX];

/* Shapes that only these tables have. */
static const struct shape sticky = {"autocorrelation 0.9", SHAPE_AR, SHAPE_BEYOND, 0.9};

static struct rng seeded(size_t row, size_t column, uint64_t salt)
{
    struct rng rng;
    rng_seed(&rng, row * 1000003 + column * 101 + salt * 7919);
    return rng;
}

static double percent(size_t part, size_t all)
{
    return 100 * (double)part / (double)all;
}

/* Beside Student's t of the log ratios, normal noise of 3 % on each run. */
static void print_power(size_t experiments)
{
    static const struct {
        size_t rounds;
        double change;
    } cases[] = {{20, 0.02}, {30, 0.015}, {50, 0.01}, {100, 0.01}, {300, 0.005}};
    printf("A change amid 3 %% of normal noise found, in %%; %zu experiments each\n\n"
           "%8s%10s%10s%10s%10s%14s\n",
           experiments, "rounds", "change", "assay", "t", "ratio", "mean width");
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct rng rng = seeded(i, 0, 1);
        size_t found = 0, student = 0, n = cases[i].rounds;
        double width = 0, student_width = 0;
        for (size_t e = 0; e < experiments; e++) {
            struct running running = {0};
            struct comparison c;
            for (size_t k = 0; k < n; k++) {
                first[k] = exp(0.03 * rng_normal(&rng));
                second[k] = (1 + cases[i].change) * exp(0.03 * rng_normal(&rng));
                running_add(&running, log(second[k] / first[k]));
            }
            stats_compare_paired(first, second, n, 0.95, &c, NULL);
            double half =
                dist_t_quantile(0.975, (double)n - 1) * running_stddev(&running) / sqrt((double)n);
            found += comparison_differs(&c);
            student += fabs(running.mean) > half;
            width += log(c.high / c.low);
            student_width += 2 * half;
        }
        printf("%8zu%9.1f%%%10.1f%10.1f%10.3f%14.3f\n", n, 100 * cases[i].change,
               percent(found, experiments), percent(student, experiments),
               (double)found / (double)student, width / student_width);
    }
    putchar('\n');
}

static void print_few(size_t experiments)
{
    static const size_t rounds[] = {2, 3, 4, 5, 6, 7};
    printf("Few rounds: coverage of the 95 %% interval in %% (log-normal noise assumed below 6); "
           "%zu experiments each\n\n%-26s",
           experiments, "rounds");
    for (size_t i = 0; i < ARRAY_COUNT(rounds); i++)
        printf("%7zu", rounds[i]);
    putchar('\n');
    for (size_t s = 0; s < shape_count; s++) {
        if (shapes[s].kind == SHAPE_UNLIKE || shapes[s].kind == SHAPE_COARSE)
            continue;
        printf("%-26s", shapes[s].name);
        for (size_t i = 0; i < ARRAY_COUNT(rounds); i++) {
            struct rng rng = seeded(s, i, 2);
            size_t covered = 0;
            for (size_t e = 0; e < experiments; e++) {
                struct comparison c;
                simulate(&rng, &shapes[s], 1.05, true, first, second, rounds[i]);
                stats_compare_paired(first, second, rounds[i], 0.95, &c, NULL);
                covered += c.low <= 1.05 && 1.05 <= c.high;
            }
            printf("%7.1f", percent(covered, experiments));
        }
        putchar('\n');
    }
    putchar('\n');
}

/* Equal programs against one base.  Gives how many rows were called. */
static size_t null_family(struct rng *rng, const struct shape *shape, size_t rows, size_t rounds,
                          bool headlines, bool adjusted)
{
    static double values[ROWS_MAX][100], unused[100];
    static struct family_row family[ROWS_MAX];
    size_t called = 0;
    simulate(rng, shape, 1, true, first, values[0], rounds);
    for (size_t i = 0; i < rows; i++) {
        struct comparison c;
        if (i > 0)
            simulate(rng, shape, 1, true, unused, values[i], rounds);
        stats_compare_paired(first, values[i], rounds, 0.95, &c, NULL);
        family[i] = (struct family_row){.p = c.p, .is_headline = headlines};
    }
    family_adjust(family, rows, error);
    for (size_t i = 0; i < rows; i++)
        called += adjusted ? family[i].differs : family[i].p < error;
    return called;
}

static void print_families(size_t experiments)
{
    static const size_t rows[] = {2, 8, 40, 200}, rounds[] = {10, 30, 100};
    printf(
        "Families of equal programs with any row called different, in %% (unadjusted, headlines, "
        "the rest); %zu families each\n\n%-26s%8s",
        experiments, "", "rounds");
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        printf("%16zu rows", rows[i]);
    putchar('\n');
    for (size_t s = 0; s < 6; s++)
        for (size_t r = 0; r < ARRAY_COUNT(rounds); r++) {
            printf("%-26s%8zu", shapes[s].name, rounds[r]);
            for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
                size_t any[3] = {0};
                for (size_t k = 0; k < 3; k++) {
                    struct rng rng = seeded(s, r * 10 + i, 3);
                    for (size_t e = 0; e < experiments; e++)
                        any[k] +=
                            null_family(&rng, &shapes[s], rows[i], rounds[r], k == 1, k > 0) > 0;
                }
                printf("%9.1f%6.1f%6.1f", percent(any[0], experiments),
                       percent(any[1], experiments), percent(any[2], experiments));
                fflush(stdout);
            }
            putchar('\n');
        }
    putchar('\n');
}

/* What only the tail of the new program shows. */
struct tail_case {
    const char *name;
    double base_share, new_share, times, spread, mean;
};

static const struct tail_case tail_cases[] = {
    {"1 in 10 takes 10 times", 0, 0.1, 10, 0, 1.9},
    {"3 in 10 take twice", 0, 0.3, 2, 0, 1.3},
    {"1 in 20 takes 5 times", 0, 0.05, 5, 0, 1.2},
    {"spread 2.2 times", 0, 0, 1, 0.04, 1.0008},
    {"equal, 3 in 100 take 10 times", 0.03, 0.03, 10, 0, 1},
};

static void draw_tail(struct rng *rng, const struct tail_case *t, size_t rounds)
{
    for (size_t i = 0; i < rounds; i++) {
        double level = exp(0.05 * rng_normal(rng));
        first[i] = level * exp(0.02 * rng_normal(rng));
        second[i] = level * exp(0.02 * rng_normal(rng)) * exp(t->spread * rng_normal(rng));
        first[i] *= rng_uniform(rng) < t->base_share ? t->times : 1;
        second[i] *= rng_uniform(rng) < t->new_share ? t->times : 1;
    }
}

static void judge_tail(size_t rounds, size_t *centre_called, size_t *tail_called, size_t *any)
{
    struct comparison c;
    struct tails t;
    stats_compare_paired(first, second, rounds, 1 - (1 - TAILS_SHARE) * error, &c, NULL);
    stats_tails_paired(first, second, rounds, &c, 0.95, true, &t, NULL);
    bool centre = comparison_differs(&c), tail = t.p <= TAILS_SHARE * error;
    *centre_called += centre;
    *tail_called += tail;
    *any += centre || tail;
}

static void print_tails(size_t experiments)
{
    static const size_t rounds[] = {10, 20, 50, 100, 300};
    printf(
        "Called different in %% (by the centre, by the tails, by either); %zu experiments each\n\n"
        "%-32s",
        experiments, "rounds");
    for (size_t i = 0; i < ARRAY_COUNT(rounds); i++)
        printf("%20zu", rounds[i]);
    putchar('\n');
    for (size_t s = 0; s < ARRAY_COUNT(tail_cases) + shape_count; s++) {
        bool own = s < ARRAY_COUNT(tail_cases);
        const struct shape *shape = own ? NULL : &shapes[s - ARRAY_COUNT(tail_cases)];
        if (shape && (shape->kind == SHAPE_UNLIKE || shape->group == SHAPE_BEYOND))
            continue;
        printf("%-32s", own ? tail_cases[s].name : shape->name);
        for (size_t i = 0; i < ARRAY_COUNT(rounds); i++) {
            struct rng rng = seeded(s, i, 4);
            size_t called[3] = {0};
            for (size_t e = 0; e < experiments; e++) {
                if (own)
                    draw_tail(&rng, &tail_cases[s], rounds[i]);
                else
                    simulate(&rng, shape, 1, true, first, second, rounds[i]);
                judge_tail(rounds[i], &called[0], &called[1], &called[2]);
            }
            printf("%8.1f%6.1f%6.1f", percent(called[0], experiments),
                   percent(called[1], experiments), percent(called[2], experiments));
            fflush(stdout);
        }
        putchar('\n');
    }
    putchar('\n');
}

/* A clock that ticks, beside 2 % of noise. */
static void print_ticks(size_t experiments)
{
    static const double ticks[] = {0.005, 0.01, 0.02, 0.03, 0.05, 0.08};
    static const size_t rounds[] = {8, 10, 20, 50, 100, 300};
    static const double ratio = 1.03;
    printf(
        "A clock that ticks, 2 %% of normal noise, 3 %% slower: coverage in %%, taken as they are "
        "and by the judge; %zu experiments each\n\n%-26s",
        experiments, "rounds");
    for (size_t i = 0; i < ARRAY_COUNT(rounds); i++)
        printf("%13zu", rounds[i]);
    putchar('\n');
    for (size_t t = 0; t < ARRAY_COUNT(ticks); t++) {
        const struct shape shape = {"", SHAPE_COARSE, SHAPE_DEPENDENT, ticks[t]};
        printf("tick of %4.1f %%            ", 100 * ticks[t]);
        for (size_t i = 0; i < ARRAY_COUNT(rounds); i++) {
            struct rng rng = seeded(t, i, 21);
            size_t plain = 0, judged = 0;
            for (size_t e = 0; e < experiments; e++) {
                struct comparison c;
                simulate(&rng, &shape, ratio, true, first, second, rounds[i]);
                stats_compare_paired(first, second, rounds[i], 0.95, &c, NULL);
                plain += c.low <= ratio && ratio <= c.high;
                struct judge_values v = {first, second, rounds[i], rounds[i], .paired = true};
                judge_values(&v, JUDGE_LEVEL, &c, NULL);
                judged += c.low <= ratio && ratio <= c.high;
            }
            printf("%7.1f%6.1f", percent(plain, experiments), percent(judged, experiments));
            fflush(stdout);
        }
        putchar('\n');
    }
    putchar('\n');
}

static void print_means(size_t experiments)
{
    static const size_t rounds[] = {10, 20, 50, 100, 300};
    printf("Ratio of means: coverage of the 95 %% interval in %%; %zu experiments each\n\n%-32s",
           experiments, "rounds");
    for (size_t i = 0; i < ARRAY_COUNT(rounds); i++)
        printf("%7zu", rounds[i]);
    putchar('\n');
    for (size_t s = 0; s < ARRAY_COUNT(tail_cases) + shape_count; s++) {
        bool own = s < ARRAY_COUNT(tail_cases);
        const struct shape *shape = own ? NULL : &shapes[s - ARRAY_COUNT(tail_cases)];
        if (shape && (shape->kind == SHAPE_UNLIKE || shape->group == SHAPE_BEYOND))
            continue;
        printf("%-32s", own ? tail_cases[s].name : shape->name);
        double truth = own ? tail_cases[s].mean : 1;
        for (size_t i = 0; i < ARRAY_COUNT(rounds); i++) {
            struct rng rng = seeded(s, i, 5);
            size_t covered = 0;
            for (size_t e = 0; e < experiments; e++) {
                struct comparison c;
                if (own)
                    draw_tail(&rng, &tail_cases[s], rounds[i]);
                else
                    simulate(&rng, shape, 1, true, first, second, rounds[i]);
                stats_compare_means_paired(first, second, rounds[i], 0.95, &c, NULL);
                covered += c.low <= truth && truth <= c.high;
            }
            printf("%7.1f", percent(covered, experiments));
        }
        putchar('\n');
        fflush(stdout);
    }
    putchar('\n');
}

/* Steps of load: it comes and goes for some twenty rounds, moves both programs by half and makes
 * their noise three times as large. */
static void simulate_load(struct rng *rng, size_t rounds)
{
    bool loaded = rng_uniform(rng) < 0.5;
    for (size_t i = 0; i < rounds; i++)
        for (int k = 0; k < 2; k++) {
            loaded = rng_uniform(rng) < 0.025 ? !loaded : loaded;
            double value = exp((loaded ? 0.4 : 0) + (loaded ? 0.06 : 0.02) * rng_normal(rng));
            *(k ? &second[i] : &first[i]) = value;
        }
}

/* Looks again and again and stops at the first interval that is narrow enough. */
static size_t stop(const struct shape *shape, double precision, struct rng *rng, bool *ret_covered)
{
    struct comparison c = {0};
    size_t n = COMPARISON_ROUNDS_MIN;
    if (shape)
        simulate(rng, shape, 1, true, first, second, ROUNDS_MAX);
    else
        simulate_load(rng, ROUNDS_MAX);
    for (;; n += 1 + n / 40) {
        n = n < ROUNDS_MAX ? n : ROUNDS_MAX;
        struct compared *running;
        stats_compared_paired(first, second, n, true, &running, NULL);
        compared_ask(running, 0.95, &c, NULL);
        if (plan_may_stop(&c, precision) || n == ROUNDS_MAX)
            break;
    }
    *ret_covered = c.low <= 1 && 1 <= c.high;
    return n;
}

static void print_stopping(size_t experiments)
{
    static const double precisions[] = {0.04, 0.02, 0.01};
    static const size_t shown[] = {0, 1, 2, 3, 4, 5, 7, 10, 12};
    printf(
        "Stopped at the first interval that is narrow enough: coverage in %% (mean rounds, at most "
        "%d); %zu experiments each\n\n%-26s%15s%15s%15s\n",
        ROUNDS_MAX, experiments, "", "4 %", "2 %", "1 %");
    for (size_t s = 0; s < ARRAY_COUNT(shown) + 2; s++) {
        const struct shape *shape = s < ARRAY_COUNT(shown)    ? &shapes[shown[s]]
                                    : s == ARRAY_COUNT(shown) ? &sticky
                                                              : NULL;
        printf("%-26s", shape ? shape->name : "steps of load");
        for (size_t i = 0; i < ARRAY_COUNT(precisions); i++) {
            struct rng rng = seeded(s, i, 6);
            size_t covered = 0, spent = 0;
            for (size_t e = 0; e < experiments; e++) {
                bool holds;
                spent += stop(shape, precisions[i], &rng, &holds);
                covered += holds;
            }
            printf("%8.1f (%4.0f)", percent(covered, experiments),
                   (double)spent / (double)experiments);
            fflush(stdout);
        }
        putchar('\n');
    }
    putchar('\n');
}

static void print_trends(size_t experiments)
{
    enum { ROUNDS = 60 };
    printf(
        "A ratio that moves by so many times the noise of a round over %d rounds: trend found, in "
        "%%; %zu experiments each\n\n%-26s%8s%8s%8s%8s\n",
        ROUNDS, experiments, "", "0", "1", "2", "4");
    for (size_t s = 0; s < shape_count; s++) {
        if (shapes[s].kind == SHAPE_UNLIKE || shapes[s].group == SHAPE_BEYOND)
            continue;
        printf("%-26s", shapes[s].name);
        for (size_t k = 0; k < 4; k++) {
            struct rng rng = seeded(s, k, 7);
            size_t found = 0;
            for (size_t e = 0; e < experiments; e++) {
                struct trend t;
                simulate(&rng, &shapes[s], 1.05, true, first, second, ROUNDS);
                double move = k == 0 ? 0 : 0.028 * (double)(1 << (k - 1));
                for (size_t i = 0; i < ROUNDS; i++)
                    second[i] *= exp(move * (double)i / (ROUNDS - 1));
                stats_trend(first, second, ROUNDS, &t, NULL);
                found += t.found;
            }
            printf("%8.1f", percent(found, experiments));
        }
        putchar('\n');
    }
    putchar('\n');
}

/* 200 rows of 100 rounds, everything that a judge asks. */
static void print_speed(size_t experiments)
{
    enum { ROUNDS = 100 };
    struct rng rng = seeded(0, 0, 9);
    uint64_t start = clock_now_ns();
    for (size_t i = 0; i < experiments; i++) {
        struct comparison c;
        struct tails t;
        struct trend trend;
        simulate(&rng, &shapes[i % 6], 1, true, first, second, ROUNDS);
        stats_compare_paired(first, second, ROUNDS, 0.95, &c, NULL);
        stats_compare_paired(first, second, ROUNDS, 0.9997, &c, NULL);
        stats_tails_paired(first, second, ROUNDS, &c, 0.9997, true, &t, NULL);
        stats_trend(first, second, ROUNDS, &trend, NULL);
    }
    printf("%zu rows of %d rounds judged in %.2f s\n\n", experiments, ROUNDS,
           (double)(clock_now_ns() - start) / 1e9);
}

bool judging_print(const char *name, size_t experiments)
{
    static const struct {
        const char *name;
        void (*print)(size_t experiments);
        size_t experiments;
    } parts[] = {{"power", print_power, 20000},
                 {"few", print_few, 4000},
                 {"families", print_families, 400},
                 {"tails", print_tails, 1000},
                 {"ticks", print_ticks, 1000},
                 {"means", print_means, 1000},
                 {"stopping", print_stopping, 1000},
                 {"trends", print_trends, 1000},
                 {"changes", changes_print, 200},
                 {"odd-changes", changes_print_odd, 200},
                 {"short-changes", changes_print_short, 500},
                 {"gates", gates_print, 400},
                 {"busy", busy_print, 4000},
                 {"tables", tables_print, 200},
                 {"lasting", lasting_print, 200},
                 {"speed", print_speed, 200}};
    bool known = false;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        if (!str_eq(name, parts[i].name) && !str_eq(name, "judging"))
            continue;
        parts[i].print(experiments ? experiments : parts[i].experiments);
        known = true;
    }
    return known;
}

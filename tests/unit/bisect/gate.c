/* SPDX-License-Identifier: MIT */
/* The gate's judge: what passes, what is a regression, what is void, over one row and over many. */
#include "bisect/gate.h"
#include "base/memory.h"
#include "numbers/random.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDES = 3 };

static const struct metric_facts time_facts = {.better = METRIC_LOWER, .is_speed = true};

static void make(struct dataset *d)
{
    dataset_start(d, "gate");
    dataset_add_factor(d, "side");
    static const char *const sides[SIDES] = {"base", "control", "new"};
    for (size_t i = 0; i < SIDES; i++)
        dataset_add_cell(d, sides[i], "x", &sides[i]);
}

/* Values of a metric: each side's level, with noise. */
static void put(struct dataset *d, const char *name, struct metric_facts facts,
                const double *levels, double noise, size_t rounds, struct rng *rng)
{
    size_t metric = dataset_add_metric(d, name, "ns", "metric", facts);
    for (uint32_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < SIDES; i++)
            dataset_put(d, metric, i, r, levels[i] * exp(noise * rng_normal(rng)));
}

static void set_headline(struct dataset *d, const char *names)
{
    free(d->experiment.headline);
    d->experiment.headline = memory_strdup(names);
    dataset_settle(d);
}

/* One metric; the whole result. */
static enum gate_result judge_one(const double *levels, double noise, size_t rounds,
                                  struct metric_facts facts, struct gate_result_set *set)
{
    CLEANUP(dataset_done) struct dataset d;
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, 11);
    make(&d);
    put(&d, "v", facts, levels, noise, rounds, &rng);
    set_headline(&d, "v");
    set->max_regression = 0.02;
    if (gate_judge(set, &d, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return set->result;
}

static enum gate_result result_of(const double *levels, double noise, size_t rounds,
                                  struct metric_facts facts)
{
    CLEANUP(gate_result_set_done) struct gate_result_set set = {0};
    return judge_one(levels, noise, rounds, facts, &set);
}

TEST(the_same_passes_and_slower_does_not)
{
    CHECK_INT(result_of((double[]){100, 100, 100}, 0.002, 20, time_facts), GATE_PASS);
    CHECK_INT(result_of((double[]){100, 100, 105}, 0.002, 20, time_facts), GATE_REGRESSION);
    CHECK_INT(result_of((double[]){100, 100, 101}, 0.002, 20, time_facts), GATE_PASS);
    CHECK_INT(result_of((double[]){100, 100, 80}, 0.002, 20, time_facts), GATE_PASS);
    CHECK_INT(result_of((double[]){100, 100, 102}, 0.01, 12, time_facts), GATE_INCONCLUSIVE);
}

TEST(which_way_is_worse_is_the_metrics)
{
    struct metric_facts rate = {.better = METRIC_HIGHER};
    CHECK_INT(result_of((double[]){100, 100, 80}, 0.002, 20, rate), GATE_REGRESSION);
    CHECK_INT(result_of((double[]){100, 100, 120}, 0.002, 20, rate), GATE_PASS);
}

TEST(values_that_never_vary_are_decided)
{
    CHECK_INT(result_of((double[]){7, 7, 7}, 0, 10, time_facts), GATE_PASS);
    CHECK_INT(result_of((double[]){7, 7, 8}, 0, 10, time_facts), GATE_REGRESSION);
}

TEST(one_round_decides_nothing)
{
    CHECK_INT(result_of((double[]){100, 100, 100}, 0.02, 1, time_facts), GATE_INCONCLUSIVE);
    CHECK_INT(result_of((double[]){100, 100, 300}, 0.02, 1, time_facts), GATE_INCONCLUSIVE);
}

/* How often a gate of 2 %, over some rounds with 2 % of noise, gives a result. */
static size_t count_results(double level, size_t rounds, enum gate_result result)
{
    size_t count = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        CLEANUP(dataset_done) struct dataset d;
        CLEANUP(gate_result_set_done) struct gate_result_set set = {.max_regression = 0.02};
        struct error err = {0};
        struct rng rng;
        rng_seed(&rng, seed);
        make(&d);
        put(&d, "v", time_facts, (double[]){100, 100, level}, 0.02, rounds, &rng);
        set_headline(&d, "v");
        CHECK_INT(gate_judge(&set, &d, &err), 0);
        count += set.result == result;
    }
    return count;
}

TEST(wrong_results_are_rare_on_any_number_of_rounds)
{
    static const size_t rounds[] = {2, 5, 12, 30};
    for (size_t i = 0; i < ARRAY_COUNT(rounds); i++) {
        CHECK(count_results(103, rounds[i], GATE_PASS) <= 12);
        CHECK(count_results(101, rounds[i], GATE_REGRESSION) <= 12);
    }
    CHECK(count_results(108, 30, GATE_REGRESSION) >= 180);
}

TEST(a_control_that_shifts_as_the_change_does_voids_the_row)
{
    CLEANUP(gate_result_set_done) struct gate_result_set set = {0}, clear = {0};
    CHECK_INT(judge_one((double[]){100, 130, 140}, 0.002, 20, time_facts, &set), GATE_INCONCLUSIVE);
    CHECK(set.rows[0].control_failed && set.control_failed);
    /* A control off by 3 % does not void a change of 100 %. */
    CHECK_INT(judge_one((double[]){100, 103, 200}, 0.002, 20, time_facts, &clear), GATE_REGRESSION);
    CHECK(!clear.rows[0].control_failed && !clear.control_failed);
}

TEST(one_void_row_leaves_a_clear_regression_of_another)
{
    CLEANUP(dataset_done) struct dataset d;
    CLEANUP(gate_result_set_done) struct gate_result_set set = {.max_regression = 0.02};
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, 5);
    make(&d);
    put(&d, "void", time_facts, (double[]){100, 130, 140}, 0.002, 20, &rng);
    put(&d, "clear", time_facts, (double[]){100, 100, 150}, 0.002, 20, &rng);
    set_headline(&d, "void\nclear");
    CHECK_INT(gate_judge(&set, &d, &err), 0);
    CHECK_INT(set.count, 2);
    CHECK_INT(set.result, GATE_REGRESSION);
    CHECK(!set.control_failed);
}

TEST(twenty_metrics_twice_as_slow_are_regressions)
{
    size_t void_rows = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        CLEANUP(dataset_done) struct dataset d;
        CLEANUP(gate_result_set_done) struct gate_result_set set = {.max_regression = 0.02};
        CLEANUP(strbuf_done) struct strbuf names = {0};
        struct error err = {0};
        struct rng rng;
        rng_seed(&rng, seed);
        make(&d);
        for (size_t i = 0; i < 20; i++) {
            char name[16];
            snprintf(name, sizeof(name), "m%zu", i);
            put(&d, name, time_facts, (double[]){100, 100, 200}, 0.05, 12, &rng);
            strbuf_printf(&names, "%s%s", i ? "\n" : "", name);
        }
        set_headline(&d, strbuf_text(&names));
        CHECK_INT(gate_judge(&set, &d, &err), 0);
        CHECK_INT(set.count, 20);
        CHECK_INT(set.result, GATE_REGRESSION);
        for (size_t i = 0; i < set.count; i++)
            void_rows += set.rows[i].control_failed;
    }
    CHECK_INT(void_rows, 0);
}

TEST(a_tail_is_a_regression_too)
{
    CLEANUP(dataset_done) struct dataset d;
    CLEANUP(gate_result_set_done) struct gate_result_set set = {.max_regression = 0.05};
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, 3);
    make(&d);
    size_t metric = dataset_add_metric(&d, "v", "ns", "metric", time_facts);
    for (uint32_t r = 0; r < 100; r++)
        for (size_t i = 0; i < SIDES; i++) {
            bool slow = i == 2 && rng_uniform(&rng) < 0.1;
            dataset_put(&d, metric, i, r, (slow ? 1000 : 100) * exp(0.005 * rng_normal(&rng)));
        }
    set_headline(&d, "v");
    CHECK_INT(gate_judge(&set, &d, &err), 0);
    CHECK_INT(set.result, GATE_REGRESSION);
    CHECK(set.rows[0].change.tails.beyond);
    CHECK_CONTAINS(set.rows[0].change.verdict.text, "mean +");
}

TEST(cells_are_judged_one_by_one)
{
    CLEANUP(dataset_done) struct dataset d;
    CLEANUP(gate_result_set_done) struct gate_result_set set = {.max_regression = 0.02};
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, 9);
    dataset_start(&d, "gate");
    dataset_add_factor(&d, "size");
    dataset_add_factor(&d, "side");
    static const char *const levels[][2] = {{"1", "base"}, {"1", "control"}, {"1", "new"},
                                            {"2", "base"}, {"2", "control"}, {"2", "new"},
                                            {"3", "base"}, {"3", "new"}};
    for (size_t i = 0; i < ARRAY_COUNT(levels); i++)
        dataset_add_cell(&d, "x", "x", levels[i]);
    size_t metric = dataset_add_metric(&d, "v", "ns", "metric", time_facts);
    for (uint32_t r = 0; r < 20; r++)
        for (size_t c = 0; c < ARRAY_COUNT(levels); c++)
            dataset_put(&d, metric, c, r, (c == 5 ? 150 : 100) * exp(0.002 * rng_normal(&rng)));
    set_headline(&d, "v");
    CHECK_INT(gate_judge(&set, &d, &err), 0);
    CHECK_INT(set.count, 2); /* size 3 has no control: not judged */
    CHECK_STR(set.rows[0].cell, "size=1");
    CHECK_INT(set.rows[0].result, GATE_PASS);
    CHECK_STR(set.rows[1].cell, "size=2");
    CHECK_INT(set.rows[1].result, GATE_REGRESSION);
}

TEST(change_and_control_have_the_same_rounds)
{
    CLEANUP(dataset_done) struct dataset d;
    CLEANUP(gate_result_set_done) struct gate_result_set set = {.max_regression = 0.02};
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, 13);
    make(&d);
    size_t metric = dataset_add_metric(&d, "v", "ns", "metric", time_facts);
    /* The control misses rounds 3 and 4, the new one round 8: those count for nobody. */
    for (uint32_t r = 0; r < 20; r++)
        for (size_t i = 0; i < SIDES; i++)
            if (!(i == 1 && (r == 3 || r == 4)) && !(i == 2 && r == 8))
                dataset_put(&d, metric, i, r, 100 * exp(0.002 * rng_normal(&rng)));
    set_headline(&d, "v");
    CHECK_INT(gate_judge(&set, &d, &err), 0);
    CHECK_INT(set.rows[0].change.comparison.base_count, 17);
    CHECK_INT(set.rows[0].control.comparison.base_count, 17);
    CHECK_NEAR(set.rows[0].change.comparison.base_median,
               set.rows[0].control.comparison.base_median, 0);
}

TEST(what_cannot_be_judged_is_an_error)
{
    CLEANUP(dataset_done) struct dataset d;
    CLEANUP(gate_result_set_done) struct gate_result_set set = {.max_regression = 0.02};
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, 1);
    make(&d);
    put(&d, "v", (struct metric_facts){.better = METRIC_NEITHER}, (double[]){1, 1, 2}, 0.01, 20,
        &rng);
    set_headline(&d, "v");
    CHECK_INT(gate_judge(&set, &d, &err), -ENODATA);
    CHECK_CONTAINS(err.message, "which way is better");
    CHECK_INT(set.count, 0);
}

/* Wall times that others made long, and the CPU times of the same runs; `switches` is how often a
 * run gave its CPU away. */
static void put_busy(struct dataset *d, double growth, double switches, struct rng *rng)
{
    static const struct metric_facts cost = {.better = METRIC_LOWER};
    size_t wall = dataset_add_metric(d, "wall", "ns", "time", time_facts);
    size_t user = dataset_add_metric(d, "user", "ns", "time", cost);
    size_t sys = dataset_add_metric(d, "sys", "ns", "time", cost);
    size_t left = dataset_add_metric(d, "voluntary-switches", "", "time", (struct metric_facts){0});
    for (uint32_t r = 0; r < 30; r++)
        for (size_t i = 0; i < SIDES; i++) {
            double cpu = 1e6 * (i == 2 ? growth : 1) * exp(0.002 * rng_normal(rng));
            dataset_put(d, wall, i, r, cpu * exp(fabs(1.5 * rng_normal(rng))));
            dataset_put(d, user, i, r, 0.9 * cpu);
            dataset_put(d, sys, i, r, 0.1 * cpu);
            dataset_put(d, left, i, r, switches);
        }
    set_headline(d, "wall\n");
}

static void judge_busy(struct gate_result_set *set, double growth, double switches)
{
    CLEANUP(dataset_done) struct dataset d;
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, 31);
    make(&d);
    put_busy(&d, growth, switches, &rng);
    set->max_regression = 0.02;
    CHECK_INT(gate_judge(set, &d, &err), 0);
}

TEST(cpu_time_stands_in_for_a_command_that_never_waits)
{
    CLEANUP(gate_result_set_done) struct gate_result_set slower = {.cpu_stands_in = true};
    CLEANUP(gate_result_set_done) struct gate_result_set same = {.cpu_stands_in = true};
    judge_busy(&slower, 1.1, 1);
    CHECK(slower.by_cpu);
    CHECK_INT(slower.result, GATE_REGRESSION);
    CHECK_INT(slower.count, 2);
    CHECK(slower.rows[0].set_aside && !slower.rows[1].set_aside);
    CHECK_STR(slower.rows[1].metric, "cpu");
    CHECK_NEAR(slower.rows[1].change.comparison.estimate, 1.1, 0.005);
    CHECK(slower.rows[1].change.comparison.level > 0.97); /* a second look is paid for */
    judge_busy(&same, 1, 1);
    CHECK(same.by_cpu);
    CHECK_INT(same.result, GATE_PASS);
}

TEST(cpu_time_says_nothing_about_waiting)
{
    CLEANUP(gate_result_set_done) struct gate_result_set waits = {.cpu_stands_in = true};
    CLEANUP(gate_result_set_done) struct gate_result_set unasked = {0};
    judge_busy(&waits, 1.1, 7);
    CHECK(!waits.by_cpu);
    CHECK_INT(waits.result, GATE_INCONCLUSIVE);
    CHECK_INT(waits.count, 1);
    CHECK(!waits.rows[0].set_aside);
    judge_busy(&unasked, 1.1, 1);
    CHECK_INT(unasked.result, GATE_INCONCLUSIVE);
}

TEST(the_figure_that_is_judged_can_be_chosen)
{
    CLEANUP(dataset_done) struct dataset d;
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, 3);
    make(&d);
    size_t metric = dataset_add_metric(&d, "v", "ns", "metric", time_facts);
    for (uint32_t r = 0; r < 100; r++)
        for (size_t i = 0; i < SIDES; i++) {
            bool slow = i == 2 && r % 10 == 3;
            dataset_put(&d, metric, i, r, (slow ? 1000 : 100) * exp(0.005 * rng_normal(&rng)));
        }
    set_headline(&d, "v");
    static const enum gate_result expected[] = {[GATE_BY_BOTH] = GATE_REGRESSION,
                                                [GATE_BY_MEDIAN] = GATE_PASS,
                                                [GATE_BY_MEAN] = GATE_REGRESSION,
                                                [GATE_BY_P95] = GATE_REGRESSION};
    for (size_t by = 0; by < ARRAY_COUNT(expected); by++) {
        CLEANUP(gate_result_set_done)
        struct gate_result_set set = {.max_regression = 0.05, .by = (enum gate_by)by};
        CHECK_INT(gate_judge(&set, &d, &err), 0);
        CHECK_INT(set.result, expected[by]);
    }
}

TEST(stored_results_are_two_samples)
{
    CLEANUP(dataset_done) struct dataset old, now;
    struct error err = {0};
    struct rng rng;
    rng_seed(&rng, 7);
    make(&old); /* an earlier gate: of its sides the new one counts */
    put(&old, "v", time_facts, (double[]){50, 50, 100}, 0.002, 20, &rng);
    set_headline(&old, "v");
    for (int slower = 0; slower < 2; slower++) {
        CLEANUP(gate_result_set_done) struct gate_result_set set = {.max_regression = 0.02};
        dataset_start(&now, "gate");
        dataset_add_factor(&now, "side");
        dataset_add_cell(&now, "new", "x", (const char *const[]){"new"});
        size_t metric = dataset_add_metric(&now, "v", "ns", "metric", time_facts);
        for (uint32_t r = 0; r < 12; r++)
            dataset_put(&now, metric, 0, r, (slower ? 110 : 100) * exp(0.002 * rng_normal(&rng)));
        set_headline(&now, "v");
        CHECK_INT(gate_judge_stored(&set, &old, &now, &err), 0);
        CHECK_INT(set.result, slower ? GATE_REGRESSION : GATE_PASS);
        CHECK(!set.rows[0].change.comparison.paired && !set.rows[0].has_control);
        CHECK_INT(set.rows[0].change.comparison.base_count, 20);
        CHECK_INT(set.rows[0].change.comparison.new_count, 12);
        if (!slower)
            dataset_done(&now);
    }
}

TEST(which_stored_result_is_meant_must_be_clear)
{
    CLEANUP(dataset_done) struct dataset old, now;
    CLEANUP(gate_result_set_done) struct gate_result_set set = {.max_regression = 0.02};
    struct error err = {0};
    dataset_start(&old, "ab");
    dataset_add_factor(&old, "command");
    dataset_add_cell(&old, "a", "./a", (const char *const[]){"a"});
    dataset_add_cell(&old, "b", "./b", (const char *const[]){"b"});
    dataset_start(&now, "gate");
    size_t cell = dataset_add_cell(&now, "new", "./c", NULL);
    for (int i = 0; i < 2; i++) {
        struct dataset *d = i ? &now : &old;
        size_t metric = dataset_add_metric(d, "v", "ns", "metric", time_facts);
        for (size_t c = 0; c < d->cell_count; c++)
            for (uint32_t r = 0; r < 10; r++)
                dataset_put(d, metric, c, r, 100 + (double)c + 0.01 * r);
        set_headline(d, "v");
    }
    CHECK_INT(gate_judge_stored(&set, &old, &now, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "'./a', './b'");
    free(now.cells[cell].command);
    now.cells[cell].command = memory_strdup("./b");
    CHECK_INT(gate_judge_stored(&set, &old, &now, &err), 0);
    CHECK_NEAR(set.rows[0].change.base.median, 101, 0.1);
    set_headline(&now, "v");
    old.metrics[0].name[0] = 'w';
    CHECK_INT(gate_judge_stored(&set, &old, &now, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "no metric 'v'");
}

/* A pure shift, of noise of any width, is no tail beyond it. */
TEST(a_shift_is_not_taken_for_a_tail)
{
    static const double noises[] = {0.005, 0.05, 0.5};
    size_t beyond = 0, trials = 0;
    for (size_t k = 0; k < ARRAY_COUNT(noises); k++)
        for (uint64_t seed = 1; seed <= 200; seed++, trials++) {
            CLEANUP(dataset_done) struct dataset d;
            CLEANUP(gate_result_set_done) struct gate_result_set set = {.max_regression = 0.02};
            struct error err = {0};
            struct rng rng;
            rng_seed(&rng, seed);
            make(&d);
            put(&d, "v", time_facts, (double[]){100, 100, 120}, noises[k], 60, &rng);
            set_headline(&d, "v");
            CHECK_INT(gate_judge(&set, &d, &err), 0);
            beyond += set.rows[0].change.tails.beyond;
        }
    /* 0.5 % of comparisons are allowed; 3 of 600, and what chance adds to that. */
    CHECK(beyond <= 9);
    if (getenv("GATE_SHOW"))
        printf("# %zu of %zu\n", beyond, trials);
}

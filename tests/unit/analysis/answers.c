/* SPDX-License-Identifier: MIT */
/* Answers from a matrix: right where the values say so, silent or undecided where they do not. */
#include "analysis/answers.h"
#include "base/memory.h"
#include "base/strings.h"
#include "numbers/random.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>

static const struct metric_facts time_facts = {.better = METRIC_LOWER, .is_speed = true};
static const struct metric_facts rate_facts = {.better = METRIC_HIGHER};

/* A matrix of two factors; value() says what each cell shows. */
struct made {
    struct dataset d;
    struct answers a;
    size_t metric;
    struct rng rng;
};

static void start(struct made *m, const char *first, const char *second, const char *metric,
                  struct metric_facts facts)
{
    *m = (struct made){0};
    rng_seed(&m->rng, 21);
    dataset_start(&m->d, "t");
    dataset_add_factor(&m->d, first);
    dataset_add_factor(&m->d, second);
    m->metric = dataset_add_metric(&m->d, metric, "ns", "time", facts);
    free(m->d.experiment.headline);
    m->d.experiment.headline = memory_strdup(metric);
}

static size_t add_cell(struct made *m, const char *a, const char *b, double level, double noise,
                       size_t rounds)
{
    CLEANUP(memory_freep) char *label = memory_printf("%s %s", a, b);
    const char *levels[] = {a, b};
    size_t cell = dataset_add_cell(&m->d, label, "x", levels);
    for (uint32_t r = 0; r < rounds; r++)
        dataset_put(&m->d, m->metric, cell, r, level * exp(noise * rng_normal(&m->rng)));
    return cell;
}

static void find(struct made *m)
{
    struct error err = {0};
    dataset_settle(&m->d);
    if (answers_find(&m->a, &m->d, NULL, NULL, NULL, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
}

static void made_done(struct made *m)
{
    answers_done(&m->a);
    dataset_done(&m->d);
}

/* The n-th answer of a kind; NULL when there are fewer. */
static const struct answer *answer(const struct made *m, const char *kind, size_t n)
{
    for (size_t i = 0; i < m->a.count; i++)
        if (str_eq(m->a.items[i].kind, kind) && n-- == 0)
            return &m->a.items[i];
    return NULL;
}

static const char *text(const struct made *m, const char *kind, size_t n)
{
    const struct answer *a = answer(m, kind, n);
    return a ? a->text : "";
}

static double number(const struct answer *a, const char *name)
{
    for (size_t i = 0; a && i < a->number_count; i++)
        if (str_eq(a->numbers[i].name, name))
            return a->numbers[i].value;
    return NAN;
}

TEST(the_best_variant_is_named_with_its_lead)
{
    CLEANUP(made_done) struct made m;
    start(&m, "variant", "size", "wall", time_facts);
    add_cell(&m, "slow", "1", 300, 0.01, 20);
    add_cell(&m, "fast", "1", 100, 0.01, 20);
    add_cell(&m, "middle", "1", 150, 0.01, 20);
    find(&m);
    CHECK_CONTAINS(text(&m, "best", 0), "fast is best with ");
    CHECK_CONTAINS(text(&m, "best", 0), "better than middle");
    CHECK_NEAR(number(answer(&m, "best", 0), "ratio"), 1.5, 0.03);
    CHECK(number(answer(&m, "best", 0), "low") > 1);
    CHECK(answer(&m, "best", 0)->certain);
    CHECK(!answer(&m, "best", 1)); /* one context: no summary */
}

TEST(higher_can_be_better)
{
    CLEANUP(made_done) struct made m;
    start(&m, "variant", "size", "rate", rate_facts);
    add_cell(&m, "a", "1", 100, 0.01, 20);
    add_cell(&m, "b", "1", 200, 0.01, 20);
    find(&m);
    CHECK_CONTAINS(text(&m, "best", 0), "b is best");
    CHECK_NEAR(number(answer(&m, "best", 0), "ratio"), 2, 0.05);
}

TEST(ties_and_few_rounds_are_undecided)
{
    CLEANUP(made_done) struct made m;
    start(&m, "variant", "size", "wall", time_facts);
    add_cell(&m, "a", "1", 100, 0, 20);
    add_cell(&m, "b", "1", 100, 0, 20);
    add_cell(&m, "a", "2", 100, 0.3, 1);
    add_cell(&m, "b", "2", 110, 0.3, 1);
    add_cell(&m, "a", "3", 100, 0.01, 20);
    add_cell(&m, "b", "3", 300, 0.01, 20);
    find(&m);
    CHECK_CONTAINS(text(&m, "best", 0), "a is best in 1 of 3 cells; 2 cells are undecided");
    CHECK_CONTAINS(text(&m, "best", 0), "1 of them because there are fewer than 8 rounds");
    CHECK(!answer(&m, "best", 0)->certain);
    CHECK(!answer(&m, "best", 1)->certain);
    CHECK_STR(answer(&m, "best", 1)->where, "size=1");
    CHECK_CONTAINS(text(&m, "best", 2), "too few rounds: 1 of at least 8");
    CHECK(answer(&m, "best", 3)->certain);
}

/* Answers stand beside each other: of ten contexts without a difference, one at 5 % each would be
 * told in 40 % of cases. */
TEST(of_many_ties_none_is_told)
{
    enum { MATRICES = 60, SIZES = 10 };
    size_t alarms = 0;
    for (uint64_t seed = 0; seed < MATRICES; seed++) {
        CLEANUP(made_done) struct made m;
        start(&m, "variant", "size", "wall", time_facts);
        rng_seed(&m.rng, seed);
        for (int size = 1; size <= SIZES; size++) {
            char number_text[16];
            snprintf(number_text, sizeof(number_text), "%d", size);
            add_cell(&m, "a", number_text, 100, 0.05, 12);
            add_cell(&m, "b", number_text, 100, 0.05, 12);
        }
        find(&m);
        bool alarm = false;
        for (size_t i = 0; i < m.a.count; i++)
            alarm |= m.a.items[i].certain &&
                     (str_eq(m.a.items[i].kind, "best") || str_eq(m.a.items[i].kind, "crossover"));
        alarms += alarm;
    }
    if (alarms > 8)
        test_fail(__FILE__, __LINE__, "%zu of %d matrices without a difference", alarms, MATRICES);
}

/* What is told of the range is what was measured. */
TEST(a_lead_ends_where_the_values_end)
{
    CLEANUP(made_done) struct made m;
    start(&m, "variant", "size", "wall", time_facts);
    for (int size = 1; size <= 4; size++) {
        char number_text[16];
        snprintf(number_text, sizeof(number_text), "%d", size);
        add_cell(&m, "a", number_text, 100, 0.01, 12);
        add_cell(&m, "b", number_text, 200, 0.01, size == 4 ? 0 : 12);
    }
    find(&m);
    CHECK_STR(text(&m, "crossover", 0),
              "a is better than b wherever they differ, from size = 1 to 3 (3 points)");
}

TEST(a_winner_beyond_the_64th_is_counted)
{
    CLEANUP(made_done) struct made m;
    start(&m, "variant", "size", "wall", time_facts);
    for (int size = 1; size <= 2; size++)
        for (int i = 0; i < 70; i++) {
            char name[16], number_text[16];
            snprintf(name, sizeof(name), "v%02d", i);
            snprintf(number_text, sizeof(number_text), "%d", size);
            add_cell(&m, name, number_text, i == 69 ? 50 : 100 + i, 0.001, 10);
        }
    find(&m);
    CHECK_STR(text(&m, "best", 0), "v69 is best in 2 of 2 cells");
    CHECK(answer(&m, "best", 0)->certain);
}

TEST(overtaking_is_found_between_the_sizes)
{
    CLEANUP(made_done) struct made m;
    start(&m, "variant", "size", "wall", time_facts);
    /* a takes 100 + size, b 10 + 2 size: equal at 90. */
    static const char *const sizes[] = {"10", "30", "100", "300", "1k"};
    static const double numbers[] = {10, 30, 100, 300, 1024};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        add_cell(&m, "a", sizes[i], 100 + numbers[i], 0.002, 20);
        add_cell(&m, "b", sizes[i], 10 + 2 * numbers[i], 0.002, 20);
    }
    find(&m);
    CHECK_CONTAINS(text(&m, "crossover", 0), "a overtakes b at size = ");
    CHECK_NEAR(number(answer(&m, "crossover", 0), "size"), 90, 15);
    CHECK(number(answer(&m, "crossover", 0), "low") <= number(answer(&m, "crossover", 0), "size"));
    CHECK(!answer(&m, "crossover", 1));
}

TEST(what_is_always_better_does_not_cross)
{
    CLEANUP(made_done) struct made m;
    start(&m, "variant", "size", "wall", time_facts);
    for (int i = 1; i <= 3; i++) {
        char size[8];
        snprintf(size, sizeof(size), "%d", i * 10);
        add_cell(&m, "a", size, 100 * i, 0.002, 20);
        add_cell(&m, "b", size, 120 * i, 0.002, 20);
    }
    find(&m);
    CHECK_CONTAINS(text(&m, "crossover", 0),
                   "a is better than b wherever they differ, from size = 10 to 30 (3 points)");
}

TEST(levels_are_numbers_as_people_write_them)
{
    CLEANUP(made_done) struct made m;
    start(&m, "variant", "load", "wall", time_facts);
    /* In the order of the spec; by their numbers 9 % comes before 50 % and 100 %. */
    static const char *const loads[] = {"100%", "9%", "50%"};
    static const double factors[] = {4, 1, 2};
    for (size_t i = 0; i < ARRAY_COUNT(loads); i++) {
        add_cell(&m, "a", loads[i], 100 * factors[i], 0.002, 20);
        add_cell(&m, "b", loads[i], 130 * factors[i], 0.002, 20);
    }
    find(&m);
    CHECK_CONTAINS(text(&m, "crossover", 0), "from load = 9% to 100%");
}

TEST(threads_help_up_to_where_they_do)
{
    CLEANUP(made_done) struct made m;
    start(&m, "variant", "threads", "rate", rate_facts);
    static const double rates[] = {100, 195, 380, 380, 300};
    for (size_t i = 0; i < ARRAY_COUNT(rates); i++) {
        char threads[8];
        snprintf(threads, sizeof(threads), "%d", 1 << i);
        add_cell(&m, "only", threads, rates[i], 0.003, 20);
    }
    find(&m);
    CHECK_STR(text(&m, "saturation", 0), "more threads help up to 4; it gets worse at 16");
    CHECK_NEAR(number(answer(&m, "saturation", 0), "last_gain"), 4, 0);
    CHECK_CONTAINS(text(&m, "saturation", 1), "too few different values (5) of threads");
}

TEST(threads_that_never_help_are_not_said_to)
{
    CLEANUP(made_done) struct made m;
    start(&m, "variant", "threads", "rate", rate_facts);
    add_cell(&m, "only", "1", 100, 0.002, 20);
    add_cell(&m, "only", "2", 80, 0.002, 20);
    find(&m);
    CHECK_STR(text(&m, "saturation", 0), "more threads than 1 do not help; it gets worse at 2");
}

TEST(a_cell_off_its_neighbours_line_surprises)
{
    CLEANUP(made_done) struct made m;
    start(&m, "variant", "size", "wall", time_facts);
    for (int i = 0; i < 14; i++) {
        char size[8];
        snprintf(size, sizeof(size), "%d", 1 << i);
        add_cell(&m, "only", size, 100.0 * (1 << i) * (i == 4 ? 3 : 1), 0.0005, 20);
    }
    find(&m);
    const struct answer *a = answer(&m, "surprise", 0);
    CHECK_CONTAINS(text(&m, "surprise", 0), "where its neighbours in size suggest 1.");
    CHECK_CONTAINS(text(&m, "surprise", 0), " µs (+200 %)");
    CHECK_STR(a ? a->where : "", "only 16");
    CHECK_NEAR(number(a, "value") / number(a, "expected"), 3, 0.02);
    CHECK_CONTAINS(text(&m, "surprise", 0), "'assay explain size=8 size=16'");
    CHECK(!answer(&m, "surprise", 1)); /* its neighbours look odd because of it alone */
}

TEST(the_largest_surprise_comes_first_and_none_is_an_answer)
{
    CLEANUP(made_done) struct made m, n;
    start(&m, "variant", "size", "wall", time_facts);
    start(&n, "variant", "size", "wall", time_facts);
    for (int i = 0; i < 24; i++) {
        char size[16];
        snprintf(size, sizeof(size), "%d", 1 << i);
        double ns = 100.0 * (1 << i);
        add_cell(&m, "only", size, ns * (i == 4 ? 2 : i == 9 ? 5 : 1), 0.0005, 20);
        add_cell(&n, "only", size, ns * (i == 7 ? 1.05 : 1), 0.0005, 20);
    }
    find(&m);
    const struct answer *first = answer(&m, "surprise", 0), *second = answer(&m, "surprise", 1);
    CHECK_STR(first ? first->where : "", "only 512");
    CHECK_STR(second ? second->where : "", "only 16");
    CHECK(!strstr(text(&m, "surprise", 1), "assay explain"));
    find(&n);
    CHECK_CONTAINS(text(&n, "surprise", 0), "no cell stands out");
    CHECK_CONTAINS(text(&n, "surprise", 0), "the farthest is only 128");
    CHECK_CONTAINS(text(&n, "surprise", 0), "(+5 %)");
    CHECK(!answer(&n, "surprise", 1));
}

TEST(one_cell_alone_has_nothing_to_say)
{
    CLEANUP(made_done) struct made m;
    start(&m, "variant", "size", "wall", time_facts);
    add_cell(&m, "only", "1", 100, 0.01, 20);
    find(&m);
    CHECK_INT(m.a.count, 0);
}

TEST(figures_that_never_change_are_told_once)
{
    CLEANUP(made_done) struct made m;
    start(&m, "variant", "size", "wall", time_facts);
    size_t calls = dataset_add_metric(&m.d, "calls", "calls", "metric", (struct metric_facts){0});
    for (int i = 0; i < 3; i++) {
        char size[16];
        snprintf(size, sizeof(size), "%d", i + 1);
        for (int v = 0; v < 2; v++) {
            size_t cell = add_cell(&m, v ? "b" : "a", size, 100, 0.01, 10);
            for (uint32_t r = 0; r < 10; r++)
                dataset_put(&m.d, calls, cell, r, v ? 1 : 8);
        }
    }
    find(&m);
    CHECK_STR(text(&m, "constant", 0), "8 calls for a; 1 call for b");
    CHECK_STR(answer(&m, "constant", 0)->metric, "calls");
}

TEST(work_has_a_cost)
{
    CLEANUP(made_done) struct made m;
    struct error err = {0};
    start(&m, "variant", "size", "wall", time_facts);
    size_t work = dataset_add_metric(&m.d, "ops", "", "metric", rate_facts);
    size_t cycles = dataset_add_metric(&m.d, "cycles", "", "counter", time_facts);
    for (int v = 0; v < 2; v++) {
        size_t cell = add_cell(&m, v ? "b" : "a", "1", 100, 0.01, 10);
        for (uint32_t r = 0; r < 10; r++) {
            dataset_put(&m.d, work, cell, r, 50);
            dataset_put(&m.d, cycles, cell, r, v ? 1000 : 500);
        }
        dataset_put(&m.d, work, cell, 10, 0); /* a run without work has no cost */
        dataset_put(&m.d, cycles, cell, 10, 7);
    }
    dataset_settle(&m.d);
    CHECK_INT(answers_find(&m.a, &m.d, NULL, NULL, "ops", &err), 0);
    CHECK_STR(text(&m, "efficiency", 0),
              "10 to 20 cycles for each of ops: least at a 1, most at b 1");
}

TEST(what_is_not_there_is_an_error)
{
    CLEANUP(made_done) struct made m;
    struct error err = {0};
    start(&m, "variant", "size", "wall", time_facts);
    add_cell(&m, "a", "1", 100, 0.01, 0);
    dataset_settle(&m.d);
    CHECK_INT(answers_find(&m.a, &m.d, NULL, "colour", NULL, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "colour");
    answers_done(&m.a);
    free(m.d.experiment.headline);
    m.d.experiment.headline = memory_strdup("never measured");
    CHECK_INT(answers_find(&m.a, &m.d, NULL, NULL, NULL, &err), -ENODATA);
}

/* SPDX-License-Identifier: MIT */
/* Rows that are judged together: as one by one, with one thread and with several; few rounds beside
 * other work; figures that are looked at now and then. */
#include "analysis/compare.h"
#include "base/memory.h"
#include "numbers/random.h"
#include "stats/plan.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

static const struct metric_facts facts = {.better = METRIC_LOWER, .is_speed = true};

static void make(struct dataset *d, size_t metrics, size_t rounds, bool apart, struct rng *rng)
{
    dataset_start(d, "x");
    d->apart = apart;
    dataset_add_cell(d, "base", "", NULL);
    dataset_add_cell(d, "new", "", NULL);
    for (size_t m = 0; m < metrics; m++) {
        CLEANUP(memory_freep) char *name = memory_printf("m%zu", m);
        dataset_add_metric(d, name, "ns", "metric", facts);
        double factor = m % 5 ? 1 : 1 + 0.1 * rng_uniform(rng);
        for (uint32_t r = 0; r < rounds; r++) {
            dataset_put(d, m, 0, r, 100 * exp(0.03 * rng_normal(rng)));
            dataset_put(d, m, 1, r, 100 * factor * exp(0.03 * rng_normal(rng)));
        }
    }
    dataset_settle(d);
}

static void check_same(const struct judge_row *a, const struct judge_row *b)
{
    CHECK(a->is_there == b->is_there && a->tested == b->tested && a->changed == b->changed);
    CHECK(a->comparison.estimate == b->comparison.estimate);
    CHECK(a->comparison.low == b->comparison.low && a->comparison.high == b->comparison.high);
    CHECK(a->comparison.level == b->comparison.level);
    CHECK(a->p_adjusted == b->p_adjusted || (isnan(a->p_adjusted) && isnan(b->p_adjusted)));
    CHECK_STR(a->verdict.text, b->verdict.text);
}

/* 400 rows of 150 rounds are worth threads, 20 of 12 are not. */
TEST(together_is_as_one_by_one)
{
    static const struct {
        size_t metrics, rounds;
        bool apart;
    } cases[] = {{20, 12, false}, {20, 4, false}, {20, 12, true}, {400, 150, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rng rng;
        rng_seed(&rng, 5 + i);
        CLEANUP(dataset_done) struct dataset d;
        make(&d, cases[i].metrics, cases[i].rounds, cases[i].apart, &rng);
        size_t count = d.metric_count;
        struct judge_row *one = memory_zalloc(count, sizeof(*one)),
                         *all = memory_zalloc(count, sizeof(*all)),
                         **rows = memory_zalloc(count, sizeof(*rows));
        for (size_t m = 0; m < count; m++) {
            one[m] = all[m] =
                (struct judge_row){.sides = {&d, &d, m, m, 0, 1}, .headline = m % 7 == 0};
            CHECK(judge_row(&one[m]));
            rows[m] = &one[m];
        }
        judge_family(rows, count);
        for (size_t m = 0; m < count; m++)
            rows[m] = &all[m];
        judge_rows(rows, count);
        for (size_t m = 0; m < count; m++)
            check_same(&one[m], &all[m]);
        free(one);
        free(all);
        free(rows);
    }
}

static bool is_mine(const struct judge_row *row)
{
    return row->base.count + row->new.count > 0 && row->sides.base_metric == 1;
}

TEST(rows_without_values_and_negligible_ones_are_told)
{
    struct rng rng;
    rng_seed(&rng, 1);
    CLEANUP(dataset_done) struct dataset d;
    make(&d, 2, 10, false, &rng);
    dataset_add_metric(&d, "empty", "ns", "metric", facts);
    dataset_settle(&d);
    struct judge_row rows[3], *pointers[3];
    for (size_t m = 0; m < 3; m++) {
        rows[m] = (struct judge_row){.sides = {&d, &d, m, m, 0, 1}, .is_negligible = is_mine};
        pointers[m] = &rows[m];
    }
    judge_rows(pointers, 3);
    CHECK(rows[0].is_there && rows[0].tested);
    CHECK(rows[1].is_there && !rows[1].tested && isnan(rows[1].p_adjusted));
    CHECK(!rows[2].is_there && !rows[2].tested && !rows[2].changed);
}

TEST(few_rounds_beside_other_work_are_not_taken_for_independent)
{
    static const double base[] = {10, 10.1, 9.9, 10.05}, new[] = {10.5, 11.3, 10.2, 11.2};
    struct judge_row rows[2];
    for (size_t busy = 0; busy < 2; busy++) {
        CLEANUP(dataset_done) struct dataset d;
        dataset_start(&d, "x");
        dataset_add_cell(&d, "base", "", NULL);
        dataset_add_cell(&d, "new", "", NULL);
        dataset_add_metric(&d, "wall", "ns", "time", facts);
        for (uint32_t r = 0; r < 4; r++) {
            dataset_put(&d, 0, 0, r, base[r]);
            dataset_put(&d, 0, 1, r, new[r]);
        }
        dataset_settle(&d);
        d.cells[0].run_count = d.cells[1].run_count = 4;
        d.cells[1].disturbed_count = busy ? 2 : 1;
        rows[busy] = (struct judge_row){.sides = {&d, &d, 0, 0, 0, 1}, .headline = true};
        CHECK(judge_row(&rows[busy]));
    }
    CHECK(rows[0].changed && !rows[1].changed);
    CHECK(rows[1].comparison.low < rows[0].comparison.low);
}

/* Of equal programs that are switched away from in every second run. */
TEST(few_equal_counts_of_the_machine_may_be_luck)
{
    static const char *const names[] = {"wall",        "user",        "cpu", "context-switches",
                                        "page-faults", "minor-faults"};
    enum { ROWS = ARRAY_COUNT(names), FAMILIES = 400 };
    size_t alarms = 0;
    struct rng rng;
    rng_seed(&rng, 11);
    for (size_t f = 0; f < FAMILIES; f++) {
        struct judge_row rows[ROWS], *pointers[ROWS];
        bool any = false;
        CLEANUP(dataset_done) struct dataset d;
        dataset_start(&d, "x");
        dataset_add_cell(&d, "base", "", NULL);
        dataset_add_cell(&d, "new", "", NULL);
        for (size_t m = 0; m < ROWS; m++) {
            struct metric_facts counted = {.better = METRIC_LOWER, .is_count = m > 2};
            dataset_add_metric(&d, names[m], m > 2 ? "" : "ns", "x", counted);
            for (uint32_t r = 0; r < 3; r++)
                for (size_t cell = 0; cell < 2; cell++)
                    dataset_put(&d, m, cell, r,
                                m > 2 ? 20 * (double)(m > 3) + (rng_uniform(&rng) < 0.5)
                                      : 100 + rng_uniform(&rng));
        }
        dataset_settle(&d);
        for (size_t m = 0; m < ROWS; m++) {
            rows[m] = (struct judge_row){.sides = {&d, &d, m, m, 0, 1}, .headline = m == 0};
            pointers[m] = &rows[m];
        }
        judge_rows(pointers, ROWS);
        for (size_t m = 0; m < ROWS; m++)
            any |= m > 2 && rows[m].changed;
        alarms += any;
    }
    CHECK(alarms <= FAMILIES / 100);
}

/* Each value is a median of many samples; the mean of the same samples is beside it. */
TEST(a_mean_beside_the_headline_is_looked_at)
{
    for (int slower = 0; slower < 2; slower++) {
        CLEANUP(dataset_done) struct dataset d;
        struct rng rng;
        rng_seed(&rng, 5);
        dataset_start(&d, "x");
        dataset_add_cell(&d, "base", "", NULL);
        dataset_add_cell(&d, "new", "", NULL);
        dataset_add_metric(&d, "time", "ns", "time", facts);
        dataset_add_metric(&d, "mean-time", "ns", "time", facts);
        for (uint32_t r = 0; r < 30; r++)
            for (size_t cell = 0; cell < 2; cell++) {
                double rare = slower && cell && r % 3 ? 1.3 : 1;
                dataset_put(&d, 0, cell, r, 100 + 0.01 * rng_uniform(&rng));
                dataset_put(&d, 1, cell, r, 101 * rare + rng_uniform(&rng));
            }
        dataset_settle(&d);
        struct judge_row row = {.sides = {&d, &d, 0, 0, 0, 1}, .headline = true};
        CHECK(judge_row(&row));
        CHECK_INT(row.changed, slower);
        CHECK_INT(row.tails.differs, slower);
        CHECK(fabs(row.comparison.estimate - 1) < 1e-3);
        if (slower) {
            CHECK(row.tails.mean.low > 1.1 && row.tails.mean.high < 1.3);
            CHECK(row.verdict.kind == VERDICT_WORSE);
            CHECK(strncmp(row.verdict.text, "same median, but ", 17) == 0);
        } else { /* the bound is the mean's, which is known less well */
            CHECK(row.verdict.kind == VERDICT_SAME);
            CHECK(row.verdict.bound > 5e-4);
        }
    }
}

TEST(looks_share_the_error)
{
    double spent = 0;
    size_t looks = 0, last = 0;
    for (size_t n = 1; n < 100000; n++) {
        if (!plan_is_look(n)) {
            CHECK(fabs(1 - plan_look_level(0.95, n) - 0.025) < 1e-12);
            continue;
        }
        CHECK(n >= PLAN_TAILS_ROUNDS_MIN && (!last || n == last + last / 2));
        spent += 1 - plan_look_level(0.95, n);
        last = n;
        looks++;
    }
    CHECK(looks > 10 && spent < 0.025);
}

TEST(another_figure_than_the_centre_may_stop_only_at_looks)
{
    struct rng rng;
    for (size_t rounds = 99; rounds <= 101; rounds++) {
        rng_seed(&rng, 3);
        CLEANUP(dataset_done) struct dataset d;
        make(&d, 1, rounds, false, &rng);
        struct comparison fixed, adaptive;
        CHECK(judge_cells_by(&d, 0, 0, 1, JUDGE_MEAN, &fixed));
        d.experiment.adaptive = true;
        CHECK(judge_cells_by(&d, 0, 0, 1, JUDGE_MEAN, &adaptive));
        CHECK(adaptive.low < fixed.low && adaptive.high > fixed.high);
        CHECK_INT(plan_may_stop(&adaptive, 0.05), rounds == 100);
        CHECK(!plan_may_stop(&fixed, 0.05));
    }
}

/* In seven layouts; the last value of a side is that of the seventh. */
static void say_layouts(struct strbuf *out, const double *base, const double *new)
{
    CLEANUP(dataset_done) struct dataset d;
    dataset_start(&d, "x");
    d.has_layouts = true;
    dataset_add_cell(&d, "base", "", NULL);
    dataset_add_cell(&d, "new", "", NULL);
    dataset_add_metric(&d, "path-length", "", "metric", facts);
    for (uint32_t r = 0; r < 7; r++) {
        dataset_put(&d, 0, 0, r, base[r]);
        dataset_put(&d, 0, 1, r, new[r]);
    }
    dataset_settle(&d);
    struct compare_pair pair = {0, 1, (char *)""};
    struct compare_row row = {.metric = &d.metrics[0],
                              .judged = {.sides = {&d, &d, 0, 0, 0, 1}, .headline = true}};
    judge_row(&row.judged);
    const struct compare c = {.base = &d,
                              .new = &d,
                              .within = true,
                              .pairs = &pair,
                              .pair_count = 1,
                              .rows = &row,
                              .row_count = 1};
    strbuf_clear(out);
    compare_put_layouts(out, &c);
}

TEST(a_result_that_depends_on_the_layout_says_so)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    const double base[] = {100, 100, 100, 100, 100, 100, 100};
    const double less[] = {70, 71, 72, 73, 70, 71, 99};
    const double mixed[] = {70, 71, 72, 108, 70, 71, 72};
    const double some[] = {100, 100, 71, 100, 100, 100, 72};
    say_layouts(&out, base, less);
    CHECK_STR(strbuf_text(&out), "path-length: less in all 7 memory layouts\n");
    say_layouts(&out, base, mixed);
    CHECK_STR(strbuf_text(&out), "path-length: depends on the layout: less in 6 of 7, more in 1\n");
    say_layouts(&out, base, some);
    CHECK_STR(strbuf_text(&out),
              "path-length: depends on the layout: less in 2 of 7, the same in the others\n");
    say_layouts(&out, base, base);
    CHECK_STR(strbuf_text(&out), "path-length: the same in all 7 memory layouts\n");
}

/* Three rounds of nine metrics ask for more certainty than three rounds of times can give, but
 * counts of an emulator hide no mode that is twice as large. */
TEST(few_rounds_of_an_emulator_tell_a_fifth_more)
{
    static const double base[] = {4064855, 4064731, 4064583}, new[] = {4913404, 4913495, 4913473};
    static const double like[] = {4064805, 4064781, 4064603};
    struct judge_values v = {.base = base,
                             .new = new,
                             .base_count = 3,
                             .new_count = 3,
                             .paired = true,
                             .is_exact = true};
    struct comparison c;
    CHECK_INT(judge_values(&v, 0.9885, &c, NULL), 0);
    CHECK(!comparison_excludes_same(&c));
    v.is_emulated = true;
    CHECK_INT(judge_values(&v, 0.9885, &c, NULL), 0);
    CHECK(comparison_excludes_same(&c));
    CHECK(c.low > 1.195 && c.high < 1.225 && c.p < 0.0115);
    v.new = like;
    CHECK_INT(judge_values(&v, 0.9885, &c, NULL), 0);
    CHECK(!comparison_excludes_same(&c));
}

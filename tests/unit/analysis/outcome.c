/* SPDX-License-Identifier: MIT */
/* From values to verdicts: references, groups, bounds, gaps, and chance among many metrics. */
#include "analysis/outcome.h"
#include "base/memory.h"
#include "numbers/random.h"
#include "test.h"

#include <math.h>
#include <stdio.h>

enum { ROUNDS = 20 };

static const struct metric_facts time_facts = {.better = METRIC_LOWER, .is_speed = true};

/* A metric, each participant's values a level with a little noise. */
static size_t add(struct dataset *d, struct rng *rng, const char *name, const double *levels)
{
    size_t metric = dataset_add_metric(d, name, "ns", "time", time_facts);
    for (size_t i = 0; i < d->cell_count; i++)
        for (uint32_t j = 0; j < ROUNDS; j++)
            dataset_put(d, metric, i, j, levels[i] * exp(0.01 * rng_normal(rng)));
    return metric;
}

static void forget(struct dataset *d, size_t metric, size_t cell, uint32_t round)
{
    for (size_t i = 0; i < d->loose_count; i++) {
        struct dataset_value *v = &d->loose[i];
        if (v->metric == metric && v->cell == cell && v->round == round) {
            memmove(v, v + 1, (d->loose_count - i - 1) * sizeof(*v));
            d->loose_count--;
            return;
        }
    }
}

static struct participant someone(const char *name, size_t group, bool is_reference)
{
    return (struct participant){.name = (char *)name,
                                .command = (char *)"x",
                                .parameters = (char *)"",
                                .group = group,
                                .is_reference = is_reference};
}

static void judge(struct outcome *o, struct dataset *d, const struct participant *people)
{
    dataset_settle(d);
    outcome_set_headline(d, "wall");
    outcome_judge(o, d, people, "wall");
}

TEST(each_is_compared_with_the_reference_of_its_group)
{
    struct rng rng;
    rng_seed(&rng, 1);
    CLEANUP(dataset_done) struct dataset d;
    CLEANUP(outcome_done) struct outcome o = {0};
    struct participant people[] = {someone("a", 0, false), someone("b", 0, true),
                                   someone("c", 1, true), someone("d", 1, false)};
    outcome_start(&d, people, 4);
    add(&d, &rng, "wall", (double[]){200, 100, 1000, 500});
    judge(&o, &d, people);
    CHECK_INT(outcome_reference(&o, 0), 1);
    CHECK_INT(outcome_reference(&o, 3), 2);
    CHECK(!outcome_cell(&o, 0, 1)->judged);
    CHECK(!outcome_cell(&o, 0, 2)->judged);
    CHECK_NEAR(outcome_cell(&o, 0, 0)->judged->comparison.estimate, 2, 0.05);
    CHECK_INT(outcome_cell(&o, 0, 0)->judged->verdict.kind, VERDICT_WORSE);
    CHECK_NEAR(outcome_cell(&o, 0, 3)->judged->comparison.estimate, 0.5, 0.02);
    CHECK_INT(outcome_cell(&o, 0, 3)->judged->verdict.kind, VERDICT_BETTER);
    CHECK(outcome_differs(&o, 0));
    double half = outcome_half_width(&o, 0);
    CHECK(half > 0 && half < 0.05);
}

TEST(missing_values_take_their_round_along)
{
    struct rng rng;
    rng_seed(&rng, 2);
    CLEANUP(dataset_done) struct dataset d;
    CLEANUP(outcome_done) struct outcome o = {0};
    struct participant people[] = {someone("a", 0, true), someone("b", 0, false)};
    outcome_start(&d, people, 2);
    add(&d, &rng, "wall", (double[]){100, 100});
    forget(&d, 0, 0, 3);
    forget(&d, 0, 1, 5);
    add(&d, &rng, "nothing", (double[]){1, 1});
    for (uint32_t i = 0; i < ROUNDS; i++)
        forget(&d, 1, 1, i);
    judge(&o, &d, people);
    CHECK_INT(outcome_cell(&o, 0, 1)->judged->comparison.base_count, ROUNDS - 2);
    CHECK_INT(outcome_cell(&o, 0, 0)->summary.count, ROUNDS - 1);
    CHECK(!outcome_cell(&o, 1, 1)->judged);
    CHECK_INT(outcome_cell(&o, 1, 1)->summary.count, 0);
    CHECK(!outcome_is_same(&o, 1));
}

TEST(bounds_are_not_compared)
{
    struct rng rng;
    rng_seed(&rng, 3);
    CLEANUP(dataset_done) struct dataset d;
    CLEANUP(outcome_done) struct outcome o = {0};
    struct participant people[] = {someone("a", 0, true), someone("b", 0, false)};
    outcome_start(&d, people, 2);
    add(&d, &rng, "peak-rss", (double[]){100, 300});
    d.loose[0].is_bound = true;
    judge(&o, &d, people);
    CHECK(!outcome_cell(&o, 0, 1)->judged);
    CHECK(o.headline == DATASET_NONE);
}

TEST(chance_among_many_metrics_is_not_a_difference)
{
    struct rng rng;
    rng_seed(&rng, 4);
    CLEANUP(dataset_done) struct dataset d;
    CLEANUP(outcome_done) struct outcome o = {0};
    struct participant people[] = {someone("a", 0, true), someone("b", 0, false)};
    outcome_start(&d, people, 2);
    add(&d, &rng, "wall", (double[]){100, 100});
    add(&d, &rng, "planted", (double[]){100, 150});
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof(name), "null%d", i);
        add(&d, &rng, name, (double[]){100, 100});
    }
    judge(&o, &d, people);
    size_t looks = 0, stands = 0;
    for (size_t i = 2; i < d.metric_count; i++) {
        const struct judge_row *j = outcome_cell(&o, i, 1)->judged;
        looks += j->comparison.p < 0.05;
        stands += j->changed;
        CHECK(j->p_adjusted >= j->comparison.p - 1e-9);
    }
    CHECK(looks > 0 && looks < 45);
    CHECK(stands <= 1);
    CHECK(outcome_cell(&o, 1, 1)->judged->changed);
}

TEST(samples_taken_apart_may_differ_in_length)
{
    struct rng rng;
    rng_seed(&rng, 5);
    CLEANUP(dataset_done) struct dataset d;
    CLEANUP(outcome_done) struct outcome o = {0};
    struct participant people[] = {someone("a", 0, true), someone("b", 0, false)};
    outcome_start(&d, people, 2);
    add(&d, &rng, "wall", (double[]){100, 130});
    for (uint32_t i = 9; i < ROUNDS; i++)
        forget(&d, 0, 1, i);
    d.apart = true;
    judge(&o, &d, people);
    const struct judge_row *j = outcome_cell(&o, 0, 1)->judged;
    CHECK(!j->comparison.paired);
    CHECK_INT(j->comparison.base_count, ROUNDS);
    CHECK_INT(j->comparison.new_count, 9);
    CHECK(j->changed);
}

TEST(one_alone_has_a_median_with_an_interval)
{
    struct rng rng;
    rng_seed(&rng, 6);
    CLEANUP(dataset_done) struct dataset d;
    CLEANUP(outcome_done) struct outcome o = {0};
    struct participant people[] = {someone("a", 0, true)};
    outcome_start(&d, people, 1);
    add(&d, &rng, "wall", (double[]){100});
    judge(&o, &d, people);
    const struct outcome_cell *cell = outcome_cell(&o, 0, 0);
    CHECK(cell->median.low < cell->median.median && cell->median.median < cell->median.high);
    CHECK_NEAR(outcome_half_width(&o, 0),
               (cell->median.high - cell->median.low) / 2 / cell->median.median, 1e-12);
}

TEST(a_headline_stands_for_all_metrics_of_its_name_and_each_comes_once)
{
    CLEANUP(dataset_done) struct dataset d;
    const struct participant people[] = {someone("a", 0, true)};
    outcome_start(&d, people, 1);
    static const char *const metrics[][2] = {{"score", "us/op"}, {"wall", "s"}, {"score", "ms/op"}};
    for (size_t i = 0; i < 3; i++)
        dataset_add_metric(&d, metrics[i][0], metrics[i][1], "metric", time_facts);
    free(d.experiment.headline);
    d.experiment.headline = memory_strdup("none\nscore\nwall\nscore\n");
    size_t position = 0;
    static const size_t expected[] = {0, 2, 1, DATASET_NONE, DATASET_NONE};
    for (size_t i = 0; i < 5; i++)
        CHECK(dataset_headline(&d, &position) == expected[i]);
}

/* SPDX-License-Identifier: MIT */
/* From values to verdicts: references, groups, bounds, gaps, and chance among many metrics. */
#include "analysis/outcome.h"
#include "base/memory.h"
#include "stats/random.h"
#include "test.h"

#include <math.h>

enum { ROUNDS = 20 };

/* A set of metrics by name, each contestant's values a level with a little noise. */
static void add(struct series_set *set, struct rng *rng, const char *name, const double *levels)
{
    struct series *s = series_add(set, name, "ns", SERIES_TIME, ROUNDS);
    for (size_t i = 0; i < set->contestant_count; i++) {
        s->counts[i] = ROUNDS;
        for (size_t j = 0; j < ROUNDS; j++)
            s->values[i][j] = levels[i] * exp(0.01 * rng_normal(rng));
    }
}

static struct participant someone(size_t group, bool is_reference)
{
    return (struct participant){
        .name = "x", .command = "x", .group = group, .is_reference = is_reference};
}

TEST(each_is_compared_with_the_reference_of_its_group)
{
    struct rng rng;
    rng_seed(&rng, 1);
    CLEANUP(series_set_done) struct series_set set = {.contestant_count = 4, .paired = true};
    CLEANUP(outcome_done) struct outcome o = {0};
    struct participant people[] = {someone(0, false), someone(0, true), someone(1, true),
                                   someone(1, false)};
    add(&set, &rng, "wall", (double[]){200, 100, 1000, 500});
    CHECK_INT(outcome_judge(&o, &set, people, "wall", 1, NULL), 0);
    CHECK_INT(outcome_reference(&o, 0), 1);
    CHECK_INT(outcome_reference(&o, 3), 2);
    CHECK(!outcome_cell(&o, 0, 1)->is_compared);
    CHECK(!outcome_cell(&o, 0, 2)->is_compared);
    CHECK_NEAR(outcome_cell(&o, 0, 0)->comparison.estimate, 2, 0.05);
    CHECK_INT(outcome_cell(&o, 0, 0)->verdict.kind, VERDICT_WORSE);
    CHECK_NEAR(outcome_cell(&o, 0, 3)->comparison.estimate, 0.5, 0.02);
    CHECK_INT(outcome_cell(&o, 0, 3)->verdict.kind, VERDICT_BETTER);
    CHECK(outcome_differs(&o, 0));
    double half = outcome_half_width(&o, 0);
    CHECK(half > 0 && half < 0.05);
}

TEST(missing_values_take_their_round_along)
{
    struct rng rng;
    rng_seed(&rng, 2);
    CLEANUP(series_set_done) struct series_set set = {.contestant_count = 2, .paired = true};
    CLEANUP(outcome_done) struct outcome o = {0};
    struct participant people[] = {someone(0, true), someone(0, false)};
    add(&set, &rng, "wall", (double[]){100, 100});
    set.items[0].values[0][3] = NAN;
    set.items[0].values[1][5] = NAN;
    add(&set, &rng, "nothing", (double[]){1, 1});
    for (size_t i = 0; i < ROUNDS; i++)
        set.items[1].values[1][i] = NAN;
    CHECK_INT(outcome_judge(&o, &set, people, "wall", 1, NULL), 0);
    CHECK_INT(outcome_cell(&o, 0, 1)->comparison.base_count, ROUNDS - 2);
    CHECK_INT(outcome_cell(&o, 0, 0)->summary.count, ROUNDS - 1);
    CHECK(!outcome_cell(&o, 1, 1)->is_compared);
    CHECK_INT(outcome_cell(&o, 1, 1)->summary.count, 0);
    CHECK(!outcome_is_same(&o, 1));
}

TEST(bounds_are_not_compared)
{
    struct rng rng;
    rng_seed(&rng, 3);
    CLEANUP(series_set_done) struct series_set set = {.contestant_count = 2, .paired = true};
    CLEANUP(outcome_done) struct outcome o = {0};
    struct participant people[] = {someone(0, true), someone(0, false)};
    add(&set, &rng, "peak-rss", (double[]){100, 300});
    set.items[0].is_bound[0] = true;
    CHECK_INT(outcome_judge(&o, &set, people, "wall", 1, NULL), 0);
    CHECK(!outcome_cell(&o, 0, 1)->is_compared);
    CHECK(o.headline == SIZE_MAX);
}

TEST(chance_among_many_metrics_is_not_a_difference)
{
    struct rng rng;
    rng_seed(&rng, 4);
    CLEANUP(series_set_done) struct series_set set = {.contestant_count = 2, .paired = true};
    CLEANUP(outcome_done) struct outcome o = {0};
    struct participant people[] = {someone(0, true), someone(0, false)};
    add(&set, &rng, "wall", (double[]){100, 100});
    add(&set, &rng, "planted", (double[]){100, 150});
    for (int i = 0; i < 300; i++)
        add(&set, &rng, "null", (double[]){100, 100});
    CHECK_INT(outcome_judge(&o, &set, people, "wall", 1, NULL), 0);
    size_t looks = 0, stands = 0;
    for (size_t i = 2; i < set.count; i++) {
        const struct outcome_cell *cell = outcome_cell(&o, i, 1);
        looks += cell->verdict.kind == VERDICT_WORSE || cell->verdict.kind == VERDICT_BETTER;
        stands += cell->stands;
        CHECK(cell->adjusted_p >= cell->comparison.p - 1e-9);
    }
    CHECK(looks > 0 && looks < 45);
    CHECK(stands <= 1);
    CHECK(outcome_cell(&o, 1, 1)->stands);
    CHECK_NEAR(outcome_cell(&o, 0, 1)->adjusted_p, outcome_cell(&o, 0, 1)->comparison.p, 0);
}

TEST(samples_taken_apart_may_differ_in_length)
{
    struct rng rng;
    rng_seed(&rng, 5);
    CLEANUP(series_set_done) struct series_set set = {.contestant_count = 2};
    CLEANUP(outcome_done) struct outcome o = {0};
    struct participant people[] = {someone(0, true), someone(0, false)};
    add(&set, &rng, "wall", (double[]){100, 130});
    set.items[0].counts[1] = 9;
    CHECK_INT(outcome_judge(&o, &set, people, "wall", 0, NULL), 0);
    const struct comparison *c = &outcome_cell(&o, 0, 1)->comparison;
    CHECK(!c->paired);
    CHECK_INT(c->base_count, ROUNDS);
    CHECK_INT(c->new_count, 9);
    CHECK(outcome_cell(&o, 0, 1)->stands);
}

TEST(one_alone_has_a_median_with_an_interval)
{
    struct rng rng;
    rng_seed(&rng, 6);
    CLEANUP(series_set_done) struct series_set set = {.contestant_count = 1, .paired = true};
    CLEANUP(outcome_done) struct outcome o = {0};
    struct participant people[] = {someone(0, true)};
    add(&set, &rng, "wall", (double[]){100});
    CHECK_INT(outcome_judge(&o, &set, people, "wall", 1, NULL), 0);
    const struct outcome_cell *cell = outcome_cell(&o, 0, 0);
    CHECK(cell->median.low < cell->median.median && cell->median.median < cell->median.high);
    CHECK_NEAR(outcome_half_width(&o, 0),
               (cell->median.high - cell->median.low) / 2 / cell->median.median, 1e-12);
}

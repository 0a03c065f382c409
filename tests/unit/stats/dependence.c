/* SPDX-License-Identifier: MIT */
#include "stats/dependence.h"
#include "analysis/judge.h"
#include "base/memory.h"
#include "numbers/random.h"
#include "simulate.h"
#include "test.h"

#include <math.h>
#include <stdio.h>

enum { CELLS = 8, ROUNDS = 12 };

static const struct shape sticky = {"autocorrelation 0.9", SHAPE_AR, SHAPE_BEYOND, 0.9};
static const struct shape machine = {"the machine", SHAPE_MACHINE, SHAPE_BEYOND, 0.9};

TEST(many_series_tell_what_one_cannot)
{
    double values[CELLS * ROUNDS];
    const double *series[CELLS];
    struct rng rng;
    size_t found[3] = {0}, experiments = 200;
    const struct shape *tried[] = {&shapes[0], &sticky, &machine};
    rng_seed(&rng, 3);
    for (size_t i = 0; i < CELLS; i++)
        series[i] = values + i * ROUNDS;
    for (size_t k = 0; k < 3; k++)
        for (size_t e = 0; e < experiments; e++) {
            simulate_cells(&rng, tried[k], values, CELLS, ROUNDS);
            double lag1 = dependence_of_series(series, CELLS, ROUNDS);
            found[k] += dependence_sure(lag1, ROUNDS, CELLS - 1) > 0.5;
        }
    CHECK(found[0] <= 10);  /* independent */
    CHECK(found[1] >= 190); /* each program resembles itself */
    CHECK(found[2] <= 20);  /* what the machine remembers, all share */
}

TEST(what_is_sure_grows_with_the_rounds)
{
    CHECK(dependence_sure(0.3, 10, 1) == 0);
    CHECK(dependence_sure(0.3, 300, 1) > 0.3);
    CHECK(dependence_sure(0.3, 10, 40) > 0.3);
    CHECK(dependence_sure(0.9, 3, 1) == 0);
    CHECK(dependence_sure_widening(0, 10, 0.05) == 1);
    CHECK_NEAR(dependence_sure_widening(0.9, 100000, 0.05), sqrt(19), 0.01);
    CHECK(dependence_sure_widening(0.9, 20, 0.001) > dependence_sure_widening(0.9, 20, 0.05));
}

static bool alarms(struct rng *rng)
{
    static const char *const names[CELLS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    double values[CELLS * ROUNDS];
    CLEANUP(dataset_done) struct dataset d;
    dataset_start(&d, "x");
    dataset_add_metric(&d, "wall", "ns", "time",
                       (struct metric_facts){.better = METRIC_LOWER, .is_speed = true});
    simulate_cells(rng, &sticky, values, CELLS, ROUNDS);
    for (size_t i = 0; i < CELLS; i++) {
        dataset_add_cell(&d, names[i], "", NULL);
        for (size_t k = 0; k < ROUNDS; k++)
            dataset_put(&d, 0, i, (uint32_t)k, values[i * ROUNDS + k]);
    }
    dataset_settle(&d);
    struct judge_row rows[CELLS - 1], *pointers[CELLS - 1];
    bool any = false;
    for (size_t i = 0; i < CELLS - 1; i++) {
        rows[i] = (struct judge_row){.sides = {&d, &d, 0, 0, 0, i + 1}, .headline = true};
        pointers[i] = &rows[i];
    }
    judge_rows(pointers, CELLS - 1);
    for (size_t i = 0; i < CELLS - 1; i++)
        any |= rows[i].changed;
    return any;
}

/* One by one they raised an alarm in half of all families. */
TEST(rows_of_the_same_rounds_share_their_dependence)
{
    struct rng rng;
    size_t count = 0;
    rng_seed(&rng, 8);
    for (size_t e = 0; e < 200; e++)
        count += alarms(&rng);
    if (count > 16)
        printf("# %zu families\n", count);
    CHECK(count <= 16);
}

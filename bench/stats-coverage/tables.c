/* SPDX-License-Identifier: MIT */
/* See tables.h. */
#include "tables.h"
#include "analysis/compare.h"
#include "analysis/ranking.h"
#include "base/memory.h"
#include "simulate.h"

#include <stdio.h>

enum { CELLS_MAX = 40, SHAPES = 6 };

/* Equal programs, measured in the same rounds; cell 0 is the baseline of the others if one is. */
static void make(struct dataset *d, struct rng *rng, const struct shape *shape, size_t cells,
                 size_t rounds, bool has_baseline)
{
    double *values CLEANUP(memory_freep) = memory_alloc(cells * rounds * sizeof(double));
    dataset_start(d, "made");
    free(d->experiment.headline);
    d->experiment.headline = memory_strdup("wall");
    dataset_add_factor(d, "command");
    dataset_add_metric(d, "wall", "ns", "time",
                       (struct metric_facts){.better = METRIC_LOWER, .is_speed = true});
    for (size_t i = 0; i < cells; i++) {
        char name[24];
        snprintf(name, sizeof(name), "c%zu", i);
        const char *level = name;
        dataset_add_cell(d, name, "x", &level);
        d->cells[i].baseline = has_baseline && i ? 0 : DATASET_NONE;
    }
    simulate_cells(rng, shape, values, cells, rounds);
    for (size_t i = 0; i < cells; i++)
        for (size_t k = 0; k < rounds; k++)
            dataset_put(d, 0, i, (uint32_t)k, values[i * rounds + k]);
    dataset_settle(d);
    dataset_index(d);
}

static bool any_changed(const struct compare *c)
{
    for (size_t i = 0; i < c->row_count; i++)
        if (c->rows[i].judged.changed)
            return true;
    return false;
}

/* One `assay ab` of equal commands: whether a row is called, and whether a row or the ranking is.
 */
static void sit(struct rng *rng, const struct shape *shape, size_t cells, size_t rounds,
                size_t *table, size_t *any)
{
    struct participant participants[CELLS_MAX];
    CLEANUP(dataset_done) struct dataset d;
    CLEANUP(outcome_done) struct outcome o = {0};
    struct ranking ranking;
    make(&d, rng, shape, cells, rounds, true);
    for (size_t i = 0; i < cells; i++)
        participants[i] = (struct participant){
            .name = d.cells[i].label, .command = "x", .parameters = "", .is_reference = i == 0};
    outcome_judge(&o, &d, participants, "wall");
    bool called = any_changed(&o.compare), ranked = false;
    if (ranking_make(&ranking, &o, 0)) {
        ranked = any_changed(&ranking.against_best.compare);
        ranking_done(&ranking);
    }
    *table += called;
    *any += called || ranked;
}

static void print_sittings(const struct shape *kinds, size_t kind_count, const size_t *cells,
                           size_t cell_count, size_t experiments)
{
    static const size_t rounds[] = {3, 4, 6, 10, 30, 100};
    printf("Equal commands of one assay ab: sittings in which a row is called different, and in "
           "which a row is or the\nranking puts one behind the first, in %%; %zu sittings each\n\n"
           "%-26s%8s",
           experiments, "", "rounds");
    for (size_t i = 0; i < cell_count; i++)
        printf("%7zu commands", cells[i]);
    putchar('\n');
    for (size_t s = 0; s < kind_count; s++)
        for (size_t r = 0; r < ARRAY_COUNT(rounds); r++) {
            printf("%-26s%8zu", kinds[s].name, rounds[r]);
            for (size_t i = 0; i < cell_count; i++) {
                size_t table = 0, any = 0;
                struct rng rng;
                rng_seed(&rng, 10000 * kinds[s].kind + 100 * s + 10 * r + i);
                for (size_t e = 0; e < experiments; e++)
                    sit(&rng, &kinds[s], cells[i], rounds[r], &table, &any);
                printf("%10.1f%6.1f", 100 * (double)table / (double)experiments,
                       100 * (double)any / (double)experiments);
                fflush(stdout);
            }
            putchar('\n');
        }
    putchar('\n');
}

void lasting_print(size_t experiments)
{
    static const size_t cells[] = {2, 3, 8};
    static const struct shape kinds[] = {
        {"3 in 10 take twice", SHAPE_NOW_AND_THEN, SHAPE_INDEPENDENT, 2},
        {"1 in 10 takes 10 times", SHAPE_NOW_AND_THEN, SHAPE_INDEPENDENT, 10},
        {"coarse clock", SHAPE_COARSE, SHAPE_DEPENDENT, 0.05},
        {"first run 10 % slower", SHAPE_FIRST, SHAPE_DEPENDENT, 0.1},
        {"drift of 30 %", SHAPE_DRIFT, SHAPE_DEPENDENT, 0},
        {"neighbours come and go", SHAPE_NEIGHBOURS, SHAPE_DEPENDENT, 0},
        {"the machine, 0.9", SHAPE_MACHINE, SHAPE_DEPENDENT, 0.9},
        {"each program, 0.5", SHAPE_AR, SHAPE_DEPENDENT, 0.5},
        {"each program, 0.9", SHAPE_AR, SHAPE_BEYOND, 0.9},
    };
    print_sittings(kinds, ARRAY_COUNT(kinds), cells, ARRAY_COUNT(cells), experiments);
}

static void print_apart(size_t experiments)
{
    static const size_t cells[] = {1, 2, 8, 40}, runs[] = {2, 3, 4, 5, 8, 20};
    printf("Two experiments of equal programs, not run together: comparisons in which any of so "
           "many cells is called\ndifferent, in %%; %zu comparisons each\n\n%-26s%8s",
           experiments, "", "runs");
    for (size_t i = 0; i < ARRAY_COUNT(cells); i++)
        printf("%8zu", cells[i]);
    putchar('\n');
    for (size_t s = 0; s < SHAPES; s++)
        for (size_t r = 0; r < ARRAY_COUNT(runs); r++) {
            printf("%-26s%8zu", shapes[s].name, runs[r]);
            for (size_t i = 0; i < ARRAY_COUNT(cells); i++) {
                size_t any = 0;
                struct rng rng;
                rng_seed(&rng, 1000 + 100 * s + 10 * r + i);
                for (size_t e = 0; e < experiments; e++) {
                    CLEANUP(dataset_done) struct dataset base;
                    CLEANUP(dataset_done) struct dataset new;
                    CLEANUP(compare_done) struct compare c = {0};
                    make(&base, &rng, &shapes[s], cells[i], runs[r], false);
                    make(&new, &rng, &shapes[s], cells[i], runs[r], false);
                    any += compare_experiments(&c, &base, &new, NULL) == 0 && any_changed(&c);
                }
                printf("%8.1f", 100 * (double)any / (double)experiments);
                fflush(stdout);
            }
            putchar('\n');
        }
    putchar('\n');
}

void tables_print(size_t experiments)
{
    static const size_t cells[] = {2, 3, 8, 40};
    print_sittings(shapes, SHAPES, cells, ARRAY_COUNT(cells), experiments);
    print_apart(experiments);
}

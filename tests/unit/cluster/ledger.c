/* SPDX-License-Identifier: MIT */
/* Which cells stay together, how units become tasks, and that nothing is lost or measured twice. */
#include "cluster/ledger.h"
#include "base/memory.h"
#include "cluster/task_text.h"
#include "cluster_sim.h"
#include "test.h"

#include <errno.h>
#include <stdlib.h>

struct fixture {
    struct spec spec;
    struct matrix matrix;
    bool *kept;
    struct ledger ledger;
};

static bool with_bit(const struct matrix *m, size_t cell, const char *value)
{
    for (size_t f = 0; f < m->spec->factor_count; f++)
        if (str_eq(m->cells[cell].levels[f]->name, value))
            return true;
    return false;
}

/* Cells with a value "special" need the first thing. */
static uint32_t needs_of(void *context, size_t cell)
{
    return with_bit(context, cell, "special") ? 1 : 0;
}

static void start(struct fixture *x, const char *text, const bool *together)
{
    struct error err = {0};
    if (spec_parse(&x->spec, "t.yaml", text, strlen(text), false, &err) < 0 ||
        matrix_make(&x->matrix, &x->spec, &err) < 0) {
        test_fail(__FILE__, __LINE__, "%s", err.message);
        abort();
    }
    x->kept = memory_zalloc(x->matrix.count, sizeof(bool));
    memset(x->kept, true, x->matrix.count);
    ledger_init(&x->ledger, &(struct ledger_spec){.matrix = &x->matrix,
                                                  .kept = x->kept,
                                                  .together = together,
                                                  .needs_of = needs_of,
                                                  .context = &x->matrix});
}

static void end(struct fixture *x)
{
    ledger_done(&x->ledger);
    matrix_done(&x->matrix);
    spec_done(&x->spec);
    free(x->kept);
}

static void want_rounds(struct ledger *l, uint64_t rounds)
{
    for (uint64_t r = 0; r < rounds; r++)
        for (uint32_t b = 0; b < l->block_count; b++)
            ledger_want(l, b, r);
}

static const char sizes[] = "name: t\ncommand: 'true'\nfactors:\n  size: [1, 2, 3]\n  v: [a, b]\n"
                            "  t: [x, y]\nbaseline: {v: a}\n";

TEST(cells_that_are_compared_stay_together)
{
    struct fixture x;
    start(&x, sizes, NULL);
    CHECK_INT(x.ledger.block_count, 6); /* size and t apart, v together */
    for (size_t c = 0; c < x.matrix.count; c++)
        CHECK_INT(x.ledger.block_of[c], x.ledger.block_of[x.matrix.cells[c].baseline]);
    end(&x);
    bool together[] = {true, false, false};
    start(&x, sizes, together);
    CHECK_INT(x.ledger.block_count, 2);
    CHECK_INT(ledger_block_size(&x.ledger, 0), 6);
    end(&x);
    start(&x, "name: t\ncommand: 'true'\nfactors: {size: [1, 2], v: [a, b]}\n", NULL);
    CHECK_INT(x.ledger.block_count, 1); /* without a baseline everything may be compared */
    end(&x);
}

TEST(units_of_one_round_are_in_as_many_tasks_as_nodes_can_use)
{
    struct fixture x;
    struct ledger_batch batch;
    start(&x, sizes, NULL);
    want_rounds(&x.ledger, 10);
    CHECK_INT(x.ledger.missing, 60);
    CHECK_INT(x.ledger.runs_wanted, 120);
    ledger_finish(&x.ledger, (struct ledger_unit){.block = 2, .round = 4});
    ledger_take(&x.ledger, &(struct ledger_limits){.node_count = 100}, &batch);
    CHECK_INT(batch.task_count, 59);
    CHECK_INT(x.ledger.missing, 0);
    CHECK_INT(x.ledger.queued, 59);
    for (size_t u = 0; u < batch.unit_count; u++)
        CHECK(ledger_give_back(&x.ledger, batch.units[u], false, 3));
    ledger_batch_done(&batch);
    ledger_take(&x.ledger, &(struct ledger_limits){.node_count = 2, .tasks_per_node = 5}, &batch);
    CHECK_INT(batch.task_count, 10);
    CHECK_INT(batch.tasks[9].count, 5);
    ledger_batch_done(&batch);
    end(&x);
}

TEST(tries_come_to_an_end)
{
    struct fixture x;
    struct ledger_batch batch;
    start(&x, "name: t\ncommand: 'true'\n", NULL);
    want_rounds(&x.ledger, 1);
    for (int tries = 1; tries <= 3; tries++) {
        ledger_take(&x.ledger, &(struct ledger_limits){.node_count = 1}, &batch);
        CHECK_INT(batch.unit_count, 1);
        CHECK_INT(ledger_give_back(&x.ledger, batch.units[0], true, 3), tries < 3);
        ledger_batch_done(&batch);
    }
    CHECK_INT(x.ledger.given_up, 1);
    CHECK_INT(x.ledger.missing + x.ledger.queued + x.ledger.done, 0);
    end(&x);
}

TEST(tasks_do_not_mix_what_needs_different_nodes)
{
    struct fixture x;
    struct ledger_batch batch;
    start(&x,
          "name: t\ncommand: 'true'\nfactors: {size: [1, 2, 3, 4], v: [plain, special]}\n"
          "baseline: {size: 1}\n",
          NULL);
    CHECK_INT(x.ledger.block_count, 2);
    want_rounds(&x.ledger, 5);
    ledger_take(&x.ledger, &(struct ledger_limits){.node_count = 1, .tasks_per_node = 3}, &batch);
    CHECK_INT(batch.task_count, 4);
    for (size_t t = 0; t < batch.task_count; t++)
        for (size_t u = 0; u < batch.tasks[t].count; u++)
            CHECK_INT(x.ledger.needs[batch.units[batch.tasks[t].first + u].block],
                      batch.tasks[t].needs);
    ledger_batch_done(&batch);
    end(&x);
}

TEST(a_plan_reads_as_it_was_written)
{
    struct fixture x;
    struct ledger_batch batch;
    struct task_plan plan;
    struct error err = {0};
    CLEANUP(strbuf_done) struct strbuf text = {0};
    start(&x, sizes, NULL);
    want_rounds(&x.ledger, 2);
    ledger_take(&x.ledger, &(struct ledger_limits){.node_count = 1, .tasks_per_node = 1}, &batch);
    struct task_text what = {.ledger = &x.ledger,
                             .units = batch.units,
                             .unit_count = batch.unit_count,
                             .uuid = "01234567-89ab-cdef-0123-456789abcdef",
                             .mode = TASK_WAIVED};
    task_plan_write(&text, &what);
    CHECK_INT(task_plan_parse(&plan, "t", strbuf_text(&text), x.matrix.count, &err), 0);
    CHECK_INT(plan.count, 12);
    CHECK_INT(plan.mode, TASK_WAIVED);
    for (size_t u = 0; u < plan.count; u++) {
        CHECK_INT(plan.units[u].round, batch.units[u].round);
        CHECK_INT(plan.units[u].count, 2);
        CHECK_INT(x.ledger.block_of[plan.units[u].cells[1]], batch.units[u].block);
    }
    task_plan_done(&plan);
    CHECK_INT(task_plan_parse(&plan, "t", strbuf_text(&text), 3, &err), -EINVAL);
    CLEANUP(memory_freep) bool *only = memory_zalloc(x.matrix.count, sizeof(*only));
    CLEANUP(strbuf_done) struct strbuf part = {0};
    for (size_t b = 0; b < x.ledger.block_count; b++) /* the second cell of each block */
        only[x.ledger.cells[x.ledger.starts[b] + 1]] = true;
    what.mode = TASK_PROFILES;
    what.only = only;
    task_plan_write(&part, &what);
    CHECK_INT(task_plan_parse(&plan, "t", strbuf_text(&part), x.matrix.count, &err), 0);
    CHECK_INT(plan.mode, TASK_PROFILES);
    CHECK_INT(plan.units[0].count, 1);
    CHECK(only[plan.units[0].cells[0]]);
    task_plan_done(&plan);
    CHECK_INT(task_plan_parse(&plan, "t", "assay task 1\n", 3, &err), -EINVAL);
    ledger_batch_done(&batch);
    end(&x);
}

TEST(nodes_that_die_cost_nothing_but_time)
{
    struct fixture x;
    start(&x,
          "name: t\ncommand: 'true'\nfactors:\n  a: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
          "  b: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n  v: [a, b, c]\nbaseline: {v: a}\n",
          NULL);
    want_rounds(&x.ledger, 10);
    struct cluster_sim sim = {.node_count = 20, .deaths = 9, .seed = 5};
    cluster_sim_run(&sim, &x.ledger);
    CHECK_INT(x.ledger.done, 1000);
    CHECK_INT(x.ledger.runs_done, 3000);
    CHECK_INT(x.ledger.missing + x.ledger.queued + x.ledger.given_up, 0);
    CHECK_INT(sim.lost_tasks, 9);
    CHECK_INT(sim.twice, 0);
    CHECK_INT(sim.nodes_used, 20);
    CHECK(sim.batches > 1 && sim.shortest > 0);
    end(&x);
}

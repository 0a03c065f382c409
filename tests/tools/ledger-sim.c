/* SPDX-License-Identifier: MIT */
/* Plans a spec for many nodes and plays it through: tool-ledger-sim SPEC NODES DEATHS.  Prints how
 * long each part took, the peak of memory, and what came of it. */
#include "base/clock.h"
#include "base/memory.h"
#include "cluster/task_text.h"
#include "cluster_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static double seconds_since(uint64_t *start_ns)
{
    uint64_t now = clock_now_ns();
    double seconds = (double)(now - *start_ns) / 1e9;
    *start_ns = now;
    return seconds;
}

/* As many bytes as the tasks' files would have. */
static size_t write_plans(struct ledger *l, const struct ledger_batch *batch)
{
    size_t bytes = 0;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    for (size_t t = 0; t < batch->task_count; t++) {
        strbuf_clear(&text);
        struct task_text what = {.ledger = l,
                                 .units = batch->units + batch->tasks[t].first,
                                 .unit_count = batch->tasks[t].count,
                                 .uuid = "01234567-89ab-cdef-0123-456789abcdef"};
        task_plan_write(&text, &what);
        bytes += text.length;
    }
    return bytes;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    struct spec spec;
    struct matrix matrix;
    if (argc != 4)
        return 2;
    uint64_t at = clock_now_ns(), all = at;
    if (spec_load(&spec, argv[1], false, &err) < 0 || matrix_make(&matrix, &spec, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    printf("cells %zu\nspec_s %.3f\n", matrix.count, seconds_since(&at));
    bool *kept = memory_zalloc(matrix.count, sizeof(*kept));
    memset(kept, true, matrix.count);
    struct ledger l;
    ledger_init(&l, &(struct ledger_spec){.matrix = &matrix, .kept = kept});
    for (uint64_t r = 0; r < spec.rounds; r++)
        for (uint32_t b = 0; b < l.block_count; b++)
            ledger_want(&l, b, r);
    size_t units = l.missing;
    printf("blocks %zu\nunits %zu\nblocks_s %.3f\n", l.block_count, units, seconds_since(&at));
    struct cluster_sim sim = {.node_count = (size_t)atol(argv[2]), .deaths = (size_t)atol(argv[3])};
    struct ledger_batch batch;
    ledger_take(&l, &(struct ledger_limits){.node_count = sim.node_count}, &batch);
    printf("tasks %zu\ntasks_s %.3f\n", batch.task_count, seconds_since(&at));
    size_t bytes = write_plans(&l, &batch);
    printf("plan_bytes %zu\nplans_s %.3f\n", bytes, seconds_since(&at));
    printf("planning_s %.3f\n", (double)(at - all) / 1e9);
    for (size_t u = 0; u < batch.unit_count; u++)
        ledger_give_back(&l, batch.units[u], false, 3);
    ledger_batch_done(&batch);
    cluster_sim_run(&sim, &l);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("done %zu\nlost_tasks %zu\nbatches %zu\ntwice %zu\nunits_of_node %zu %zu\n"
           "simulation_s %.3f\nrss_bytes_max %ld\n",
           l.done, sim.lost_tasks, sim.batches, sim.twice, sim.shortest, sim.longest,
           seconds_since(&at), usage.ru_maxrss * 1024);
    bool good = l.done == units && sim.twice == 0;
    ledger_done(&l);
    matrix_done(&matrix);
    spec_done(&spec);
    free(kept);
    return good ? 0 : 1;
}

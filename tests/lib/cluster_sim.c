/* SPDX-License-Identifier: MIT */
/* See cluster_sim.h. */
#include "cluster_sim.h"
#include "base/memory.h"
#include "numbers/random.h"

struct node {
    double free_at; /* when it takes its next task */
    double speed;
    double dies_at; /* 0: lives */
    size_t units;
    bool dead;
};

struct heap {
    size_t *items; /* nodes, the one that is free first at the top */
    size_t count;
    const struct node *nodes;
};

static void sift_down(struct heap *h, size_t i)
{
    for (;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < h->count; child++)
            if (h->nodes[h->items[child]].free_at < h->nodes[h->items[least]].free_at)
                least = child;
        if (least == i)
            return;
        size_t other = h->items[i];
        h->items[i] = h->items[least];
        h->items[least] = other;
        i = least;
    }
}

static void run_task(struct cluster_sim *sim, struct ledger *l, const struct ledger_batch *batch,
                     const struct ledger_task *t, struct node *n)
{
    for (size_t u = 0; u < t->count; u++) {
        struct ledger_unit unit = batch->units[t->first + u];
        double end = n->free_at + (double)ledger_block_size(l, unit.block) / n->speed;
        if (n->dies_at > 0 && end > n->dies_at) {
            n->dead = true;
            sim->lost_tasks++;
            for (; u < t->count; u++)
                ledger_give_back(l, batch->units[t->first + u], true, 100);
            return;
        }
        sim->twice += ledger_state(l, unit) != UNIT_QUEUED;
        ledger_finish(l, unit);
        n->free_at = end;
        n->units++;
    }
}

static void run_batch(struct cluster_sim *sim, struct ledger *l, struct heap *heap,
                      struct node *nodes)
{
    size_t alive = 0;
    for (size_t i = 0; i < sim->node_count; i++)
        alive += !nodes[i].dead;
    struct ledger_limits limits = {
        .node_count = alive, .tasks_per_node = sim->tasks_per_node, .seed = sim->seed};
    struct ledger_batch batch;
    ledger_take(l, &limits, &batch);
    sim->batches++;
    sim->tasks += batch.task_count;
    for (size_t t = 0; t < batch.task_count && heap->count; t++) {
        struct node *n = &nodes[heap->items[0]];
        run_task(sim, l, &batch, &batch.tasks[t], n);
        if (n->dead)
            heap->items[0] = heap->items[--heap->count];
        sift_down(heap, 0);
    }
    ledger_batch_done(&batch);
}

void cluster_sim_run(struct cluster_sim *sim, struct ledger *l)
{
    struct node *nodes = memory_zalloc(sim->node_count, sizeof(*nodes));
    struct heap heap = {.items = memory_zalloc(sim->node_count, sizeof(size_t)),
                        .count = sim->node_count,
                        .nodes = nodes};
    struct rng rng;
    rng_seed(&rng, sim->seed);
    double whole = (double)l->runs_wanted / (double)sim->node_count;
    for (size_t i = 0; i < sim->node_count; i++) {
        heap.items[i] = i;
        nodes[i].speed = 1 + 0.5 * (double)rng_below(&rng, 1000) / 1000;
        if (i < sim->deaths)
            nodes[i].dies_at = whole * (0.05 + 0.5 * (double)rng_below(&rng, 1000) / 1000);
    }
    while (l->missing && heap.count)
        run_batch(sim, l, &heap, nodes);
    sim->shortest = SIZE_MAX;
    for (size_t i = 0; i < sim->node_count; i++) {
        sim->nodes_used += nodes[i].units > 0;
        if (nodes[i].dead)
            continue;
        sim->longest = nodes[i].units > sim->longest ? nodes[i].units : sim->longest;
        sim->shortest = nodes[i].units < sim->shortest ? nodes[i].units : sim->shortest;
    }
    free(nodes);
    free(heap.items);
}

/* SPDX-License-Identifier: MIT */
/*
 * Reclamation and node pools by themselves, without a queue: scenarios of models.c, which is the
 * only one to include this, so that an ordering in reclaim.h or nodes.h is one place for all.
 */
#ifndef ASSAY_TESTS_QUEUE_MODELS_RECLAIM_H
#define ASSAY_TESTS_QUEUE_MODELS_RECLAIM_H

#include "../../../workloads/queue/nodes.h"
#include "../../../workloads/queue/reclaim.h"

/* What nodes ask of the system. */
int nodes_init(struct nodes *n, enum nodes_kind kind, size_t item_bytes, uint64_t nodes_max)
{
    *n = (struct nodes){.kind = kind, .node_bytes = nodes_bytes_for(item_bytes)};
    n->base = kind == NODES_MALLOC ? NULL : explore_alloc((nodes_max + 1) * n->node_bytes);
    n->unit_end = (nodes_max + 1) * n->node_bytes / NODES_UNIT;
    n->fresh = 1;
    return 0;
}

void nodes_done(struct nodes *n)
{
    (void)n;
}

static void private_lists(const struct reclaim_thread *r)
{
    for (unsigned i = 0; i < 3; i++) {
        explore_private(&r->lists[i].count, 8);
        explore_private(&r->lists[i].epoch, 8);
        explore_private(r->lists[i].words, r->lists[i].count * 8);
    }
    explore_private(&r->since_advance, 8);
}

/*
 * Reclamation by itself: a shelf with one block on it, which is read there, or taken off and
 * replaced.  Whoever takes it off reads it a last time.
 */
struct shelf {
    struct reclaim reclaim;
    uint64_t notes[QUEUE_THREADS_MAX]; /* as a place's lists: of whoever has the place */
    QUEUE_ALIGNED uint64_t block;
};
static struct shelf *shelf;

static uint64_t new_block(void)
{
    uint64_t *block = explore_alloc_heap(sizeof(*block), false);
    Q_WRITE(block, 1);
    return (uint64_t)(uintptr_t)block;
}

static void release_block(void *owner, void *thread, uint64_t word)
{
    (void)owner;
    Q_WRITE((uint64_t *)thread, word);
    explore_free_heap((void *)(uintptr_t)word);
}

/* Room for what a thread has retired, where the explorer sees it. */
static void make_lists(struct reclaim_thread *t)
{
    for (unsigned i = 0; i < 3; i++) {
        struct reclaim_list *list = &t->lists[i];
        list->capacity = 8;
        list->words = explore_alloc(list->capacity * 8);
    }
}

static void shelf_setup(enum reclaim_kind kind, bool cheap)
{
    shelf = explore_alloc(sizeof(*shelf));
    reclaim_init(&shelf->reclaim, kind, cheap, 1, release_block, shelf);
    shelf->block = new_block();
    for (unsigned t = 0; t < QUEUE_THREADS_MAX; t++)
        make_lists(&shelf->reclaim.threads[t]);
}

static void setup_shelf_epoch(void)
{
    shelf_setup(RECLAIM_EPOCH, true);
}

static void setup_shelf_epoch_fenced(void)
{
    shelf_setup(RECLAIM_EPOCH, false);
}

static void setup_shelf_hazard(void)
{
    shelf_setup(RECLAIM_HAZARD, true);
}

static void setup_shelf_hazard_fenced(void)
{
    shelf_setup(RECLAIM_HAZARD, false);
}

static void privates_shelf(unsigned t)
{
    private_lists(&shelf->reclaim.threads[t]);
}

static uint64_t *find_block(struct reclaim_thread *at)
{
    Q_FOREVER (0) {
        uint64_t word = Q_LOAD(&shelf->block, acquire);
        if (reclaim_protect(&shelf->reclaim, at, 0, word, &shelf->block, word))
            return (uint64_t *)(uintptr_t)word;
    }
}

static void look(struct reclaim_thread *at)
{
    reclaim_enter(&shelf->reclaim, at);
    Q_READ(find_block(at));
    reclaim_exit(&shelf->reclaim, at);
}

static void take_off(struct reclaim_thread *at)
{
    uint64_t old = Q_SWAP(&shelf->block, new_block(), acq_rel);
    uint64_t *note = &shelf->notes[at - shelf->reclaim.threads];
    Q_READ((uint64_t *)(uintptr_t)old);
    Q_WRITE(note, old);
    reclaim_retire(&shelf->reclaim, at, note, old);
}

static void replace(struct reclaim_thread *at)
{
    reclaim_enter(&shelf->reclaim, at);
    take_off(at);
    reclaim_exit(&shelf->reclaim, at);
}

static void leave(struct reclaim_thread *at)
{
    reclaim_leave(&shelf->reclaim, at, &shelf->notes[at - shelf->reclaim.threads]);
}

static void run_shelf(unsigned t)
{
    struct reclaim_thread *at = &shelf->reclaim.threads[t];
    replace(at);
    look(at);
    replace(at);
}

/* Long enough for epochs: what was taken off first is released. */
static void run_readers(unsigned t)
{
    struct reclaim_thread *at = &shelf->reclaim.threads[t];
    for (unsigned i = 0; t == 0 && i < 5; i++)
        replace(at);
    for (unsigned i = 0; t > 0 && i < 2; i++)
        look(at);
}

/* A place is given up, and taken by the next thread, with what its lists hold. */
static void run_places(unsigned t)
{
    struct reclaim_thread *at = reclaim_join(&shelf->reclaim);
    replace(at);
    if (t == 0)
        look(at);
    leave(at);
}

/*
 * The last epoch that holds a block back.  The first thread has noted epoch e, the second starts
 * the next, the third notes that one and finds the block which the first then takes off.  It is
 * released in e + 3, which the second starts when the third has left, and perhaps come back: if it
 * is not known by then what was read, nothing that comes later makes up for it.
 */
static void run_last_epoch(unsigned t)
{
    struct reclaim *r = &shelf->reclaim;
    struct reclaim_thread *at = &r->threads[t];
    if (t == 0) {
        reclaim_enter(r, at);
        explore_reach(1);
        explore_await(3);
        take_off(at);
        reclaim_exit(r, at);
        explore_reach(4);
        explore_await(5);
        replace(at);
    }
    if (t == 1) {
        explore_await(1);
        replace(at);
        explore_reach(2);
        explore_await(4);
        replace(at);
        replace(at);
        explore_reach(5);
    }
    if (t == 2) {
        explore_await(2);
        reclaim_enter(r, at);
        uint64_t *block = find_block(at);
        explore_reach(3);
        explore_await(4);
        Q_READ(block);
        reclaim_exit(r, at);
        reclaim_enter(r, at);
        explore_await(5);
        reclaim_exit(r, at);
    }
}

/* A thread that is inside, and not seen there: three epochs on, what it knows is released. */
static void run_unseen(unsigned t)
{
    struct reclaim_thread *at = &shelf->reclaim.threads[t];
    if (t == 0) {
        reclaim_enter(&shelf->reclaim, at);
        uint64_t *block = find_block(at);
        explore_reach(1);
        explore_await(2);
        Q_READ(block);
        reclaim_exit(&shelf->reclaim, at);
    } else {
        explore_await(1);
        for (unsigned i = 0; i < 4; i++)
            replace(at);
        explore_reach(2);
    }
}

/* A hazard slot that names a block, and then the next. */
static void run_next_block(unsigned t)
{
    struct reclaim_thread *at = &shelf->reclaim.threads[t];
    explore_await(t);
    t == 0 ? look(at) : replace(at);
    explore_reach(t + 1);
    explore_await(t + 2);
    t == 0 ? look(at) : replace(at);
    explore_reach(t + 3);
}

/* Nodes by themselves: whoever has got one writes to it, without any order of its own. */
static struct nodes *pool;
static struct nodes_thread *pool_threads;

static void pool_setup(enum nodes_kind kind)
{
    pool = explore_alloc(sizeof(*pool));
    pool_threads = explore_alloc(EXPLORE_THREADS * sizeof(*pool_threads));
    nodes_init(pool, kind, 16, 16);
}

static void setup_pool(void)
{
    pool_setup(NODES_POOL);
}

static void setup_cache(void)
{
    pool_setup(NODES_CACHE);
}

static void privates_nodes(unsigned t)
{
    explore_private(&pool_threads[t], sizeof(pool_threads[t]));
}

static struct node *get_node(unsigned t)
{
    struct node *node = nodes_get(pool, &pool_threads[t]);
    Q_WRITE(&node->words[1], t);
    return node;
}

static void run_nodes(unsigned t)
{
    struct node *one = get_node(t), *two = get_node(t);
    nodes_put(pool, &pool_threads[t], one);
    nodes_put(pool, &pool_threads[t], two);
    nodes_leave(pool, &pool_threads[t]);
    one = get_node(t);
    two = get_node(t);
    nodes_put(pool, &pool_threads[t], one);
    nodes_put(pool, &pool_threads[t], two);
}

#endif

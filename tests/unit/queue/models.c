/* SPDX-License-Identifier: MIT */
/*
 * The cores of mpmc, ms and faa under the explorer, and of reclamation by itself: two producers and
 * two consumers with three operations each, in rings and segments so small that they wrap; calls
 * for several items; and directed schedules for what lies deep.  Then each ordering in them is
 * weakened, one at a time, and some scenario must fail (weaken.h).  spsc and gates have files of
 * their own.
 */
#define QUEUE_EXPLORE
#define QUEUE_THREADS_MAX 4
#define RECLAIM_BATCH 1
#define NODES_MAGAZINE 1
#define FAA_SLOTS faa_slots
#define FAA_SPARES 1
#define FAA_LATE faa_late
#define QUEUE_BACKOFF 0
#define MPMC_CELL_WORDS 2
#include <stdint.h>
/* Two make segments come round soon, more let threads meet in one. */
static uint64_t faa_slots = 2;
static int faa_late;
#include "../../../workloads/queue/faa.h"
#include "../../../workloads/queue/mpmc.h"
#include "../../../workloads/queue/ms.h"

#include "models_reclaim.h"
#include "test.h"
#include "weaken.h"

#include <string.h>

/* What faa asks of the system. */
void *faa_memory_get(size_t bytes)
{
    return explore_alloc_heap(bytes, true);
}

void faa_memory_put(void *memory, size_t bytes)
{
    (void)bytes;
    explore_free_heap(memory);
}

/* One queue at a time. */
static struct mpmc *mpmc_q;
static bool as_batch; /* mpmc: the code for batches, with single items, too */
static struct ms *ms_q;
static struct faa *faa_q;
static struct ms_thread *ms_threads;
static struct faa_thread *faa_threads;

enum { BATCH_MAX = 3 };

/* Thread t's k-th value. */
static uint64_t value_of(unsigned thread, unsigned k)
{
    return thread * 10 + k + 1;
}

static size_t push(unsigned t, const uint64_t *values, size_t count)
{
    if (mpmc_q)
        return count == 1 && !as_batch ? mpmc_try_push(mpmc_q, values, 8)
                                       : mpmc_push_batch(mpmc_q, values, count, 8);
    if (ms_q)
        return count == 1 ? ms_push(ms_q, &ms_threads[t], values, 8)
                          : ms_push_some(ms_q, &ms_threads[t], values, count, 8);
    return faa_push_some(faa_q, &faa_threads[t], values, count, 8);
}

static size_t pop(unsigned t, uint64_t *values, size_t count)
{
    if (mpmc_q)
        return count == 1 && !as_batch ? mpmc_try_pop(mpmc_q, values, 8)
                                       : mpmc_pop_batch(mpmc_q, values, count, 8);
    return ms_q ? ms_pop_some(ms_q, &ms_threads[t], values, count, 8)
                : faa_pop_some(faa_q, &faa_threads[t], values, count, 8);
}

/* The values from the k-th on with one call. */
static void do_pushes(unsigned t, unsigned k, unsigned count)
{
    uint64_t values[BATCH_MAX] = {0};
    for (unsigned i = 0; i < count; i++)
        values[i] = value_of(t, k + i);
    explore_begin(true, values[0]);
    size_t pushed = push(t, values, count);
    explore_end(pushed);
    for (unsigned i = 1; i < pushed; i++)
        explore_also(true, values[i], values[i]);
}

static bool do_pops(unsigned t, unsigned count)
{
    uint64_t values[BATCH_MAX] = {0};
    explore_begin(false, 0);
    size_t popped = pop(t, values, count);
    for (unsigned i = 0; i < popped; i++)
        values[i] = values[i] ? values[i] : 9999; /* nobody pushes 0 */
    explore_end(popped ? values[0] : EXPLORE_EMPTY);
    for (unsigned i = 1; i < popped; i++)
        explore_also(false, 0, values[i]);
    return popped > 0;
}

static void do_push(unsigned t, unsigned k)
{
    do_pushes(t, k, 1);
}

static bool do_pop(unsigned t)
{
    return do_pops(t, 1);
}

static void run_pairs(unsigned t)
{
    for (unsigned k = 0; k < 3; k++)
        t < 2 ? do_push(t, k) : (void)do_pop(t);
}

/* Each thread pushes and pops. */
static void run_mixed(unsigned t)
{
    do_push(t, 0);
    do_pop(t);
    do_pop(t);
}

static void run_turns(unsigned t)
{
    do_push(t, 0);
    do_pop(t);
    do_push(t, 1);
    do_pop(t);
}

/* Long enough that memory comes round. */
static void run_stream(unsigned t)
{
    for (unsigned k = 0; k < 5; k++)
        t == 0 ? do_push(t, k) : (void)do_pop(t);
}

/* Both find the segment full. */
static void run_pushes(unsigned t)
{
    do_push(t, 0);
    do_push(t, 1);
    do_pop(t);
}

/* A stream, and another producer beside it. */
static void run_aside(unsigned t)
{
    if (t == 2)
        do_push(t, 0);
    else
        run_stream(t);
}

/* Segments of two that come round: the last push links one that was used before. */
static void run_rounds(void)
{
    for (unsigned k = 0; k < 3; k++)
        do_push(0, k);
    for (unsigned k = 0; k < 3; k++)
        do_pop(0);
    do_push(0, 3);
    explore_reach(1);
    do_push(0, 4);
}

/*
 * It is linked by one thread, made the last by a second that pushes, and filled up and left by a
 * third, which must not see what its `next` was in its first life.
 */
static void run_relay(unsigned t)
{
    if (t == 0)
        run_rounds();
    if (t == 1)
        do_push(t, 0);
    if (t == 2)
        do_push(t, 0), do_push(t, 1);
}

/* The same with a second one that pops. */
static void run_relay_pop(unsigned t)
{
    if (t == 0)
        run_rounds();
    if (t == 1)
        do_pop(t), (void)do_pop(t);
    if (t == 2)
        do_push(t, 0), do_push(t, 1);
}

/* Both as far as they are alone: the first thread's last push is what the others meet. */
static void run_relay_directed(unsigned t)
{
    if (t > 0)
        explore_await(1);
    run_relay(t);
}

static void run_relay_pop_directed(unsigned t)
{
    if (t > 0)
        explore_await(1);
    run_relay_pop(t);
}

/* Places that name the same segment for the second time. */
static void run_again(unsigned t)
{
    if (t == 0)
        run_rounds();
    if (t == 1)
        do_pop(t);
    if (t > 0)
        do_push(t, 0);
    if (t == 2)
        do_pop(t);
}

/* The node that was the first when a pop began is the last when it goes on. */
static void run_recycle(unsigned t)
{
    do_push(t, 0);
    do_pop(t);
    if (t == 1)
        do_push(t, 1);
}

/* Who finds tail behind, and who comes after it was helped on. */
static void run_three(unsigned t)
{
    if (t == 1)
        do_pop(t);
    do_push(t, 0);
    if (t == 2)
        do_pop(t);
}

/* Room for an epoch that is long over when it is noted: one thread moves it on by several. */
static void run_epochs(unsigned t)
{
    if (t == 1) {
        for (unsigned k = 0; k < 7; k++)
            do_push(t, k);
        do_pop(t);
        do_pop(t);
    }
    do_pop(t);
    do_pop(t);
}

/* Calls for several items. */
static void run_batch_pairs(unsigned t)
{
    if (t < 2)
        do_pushes(t, 0, 2), do_push(t, 2), do_pushes(t, 3, 2);
    else
        do_pops(t, 2), do_pops(t, 3), (void)do_pops(t, 2);
}

static void run_batch_mixed(unsigned t)
{
    do_pushes(t, 0, 2);
    do_pops(t, 3);
    do_pop(t);
}

static void run_batch_turns(unsigned t)
{
    do_pushes(t, 0, 2);
    do_pops(t, 3);
    do_pushes(t, 2, 2);
    do_pops(t, 2);
}

static void drain(void)
{
    unsigned as = 0;
    while (do_pop(as))
        ;
}

static void forget_all(void)
{
    mpmc_q = NULL;
    ms_q = NULL;
    faa_q = NULL;
}

static void setup_mpmc(void)
{
    forget_all();
    mpmc_q = mpmc_init(explore_alloc(mpmc_bytes(2, 8)), 2, 8);
    as_batch = false;
}

static void setup_mpmc_batch(void)
{
    setup_mpmc();
    as_batch = true;
}

/* Two cells. */
static void setup_mpmc_four(void)
{
    forget_all();
    mpmc_q = mpmc_init(explore_alloc(mpmc_bytes(4, 8)), 4, 8);
    as_batch = true;
}

static void setup_ms(enum nodes_kind nodes, enum reclaim_kind kind)
{
    forget_all();
    ms_q = explore_alloc(sizeof(*ms_q));
    ms_threads = explore_alloc(4 * sizeof(*ms_threads));
    nodes_init(&ms_q->nodes, nodes, 8, 16);
    ms_init(ms_q, kind, true, 1);
    for (unsigned t = 0; t < 4; t++) {
        ms_join(ms_q, &ms_threads[t]);
        if (kind != RECLAIM_TAGGED)
            make_lists(ms_threads[t].reclaim);
    }
}

static void setup_ms_hazard(void)
{
    setup_ms(NODES_MALLOC, RECLAIM_HAZARD);
}

/* Nodes that come round, so that a place may name the same one for the second time. */
static void setup_ms_hazard_pool(void)
{
    setup_ms(NODES_POOL, RECLAIM_HAZARD);
}

/* With fences in place of membarrier(2). */
static void setup_ms_hazard_fenced(void)
{
    setup_ms(NODES_MALLOC, RECLAIM_HAZARD);
    ms_q->reclaim.cheap = false;
}

static void setup_ms_epoch_fenced(void)
{
    setup_ms(NODES_MALLOC, RECLAIM_EPOCH);
    ms_q->reclaim.cheap = false;
}

/* Lists that are never looked through: the queue's own orderings alone. */
static void setup_ms_hazard_idle(void)
{
    setup_ms(NODES_MALLOC, RECLAIM_HAZARD);
    ms_q->reclaim.batch = 100;
}

static void setup_ms_epoch(void)
{
    setup_ms(NODES_MALLOC, RECLAIM_EPOCH);
}

static void setup_ms_epoch_idle(void)
{
    setup_ms(NODES_MALLOC, RECLAIM_EPOCH);
    ms_q->reclaim.batch = 100;
}

static void setup_ms_tagged(void)
{
    setup_ms(NODES_POOL, RECLAIM_TAGGED);
}

static void setup_ms_epoch_pool(void)
{
    setup_ms(NODES_POOL, RECLAIM_EPOCH);
}

static void setup_ms_cache(void)
{
    setup_ms(NODES_CACHE, RECLAIM_TAGGED);
}

static void privates_ms(unsigned t)
{
    private_lists(ms_threads[t].reclaim);
    explore_private(&ms_threads[t].nodes, sizeof(ms_threads[t].nodes));
}

static void setup_faa_wide(uint64_t slots)
{
    forget_all();
    faa_slots = slots;
    faa_late = 0;
    faa_q = explore_alloc(sizeof(*faa_q));
    faa_threads = explore_alloc(4 * sizeof(*faa_threads));
    faa_init(faa_q, 8);
    faa_q->reclaim.batch = 1;
    for (unsigned t = 0; t < 4; t++) {
        faa_join(faa_q, &faa_threads[t]);
        struct reclaim_list *list = &faa_threads[t].reclaim->lists[0];
        list->capacity = 8;
        list->words = explore_alloc(list->capacity * 8);
    }
}

static void setup_faa(void)
{
    setup_faa_wide(2);
}

static void setup_faa_four(void)
{
    setup_faa_wide(4);
}

static void setup_faa_no_spares(void)
{
    setup_faa();
    faa_q->spare_count = 0;
}

/* A pop that finds a push late looks again. */
static void setup_faa_late(void)
{
    setup_faa();
    faa_late = 1;
}

static void privates_faa(unsigned t)
{
    private_lists(faa_threads[t].reclaim);
    explore_private(&faa_threads[t].pop_at, 16);
}

/* The last ones are tried first. */
static const struct explore_scenario scenarios[] = {
    {"mpmc", 4, 2, setup_mpmc, run_pairs, drain, NULL, 1, 1},
    {"mpmc", 2, 2, setup_mpmc, run_turns, drain, NULL, 2, 2},
    {"mpmc-batch", 4, 2, setup_mpmc_batch, run_pairs, drain, NULL, 1, 1},
    {"mpmc-batch", 2, 2, setup_mpmc_batch, run_turns, drain, NULL, 2, 2},
    {"mpmc-batch", 4, 4, setup_mpmc_four, run_batch_pairs, drain, NULL, 1, 1},
    {"mpmc-batch", 2, 4, setup_mpmc_four, run_batch_turns, drain, NULL, 2, 1},
    {"reclaim", 3, 0, setup_shelf_epoch, run_readers, NULL, privates_shelf, 1, 3},
    {"reclaim", 2, 0, setup_shelf_epoch, run_readers, NULL, privates_shelf, 2, 3},
    {"reclaim", 2, 0, setup_shelf_epoch_fenced, run_readers, NULL, privates_shelf, 2, 1},
    {"reclaim", 2, 0, setup_shelf_epoch_fenced, run_places, NULL, privates_shelf, 2, 1},
    {"reclaim", 2, 0, setup_shelf_hazard, run_shelf, NULL, privates_shelf, 3, 1},
    {"reclaim", 2, 0, setup_shelf_hazard_fenced, run_shelf, NULL, privates_shelf, 2, 1},
    {"reclaim", 2, 0, setup_shelf_hazard, run_places, NULL, privates_shelf, 2, 1},
    {"reclaim", 2, 0, setup_shelf_hazard_fenced, run_places, NULL, privates_shelf, 2, 1},
    {"reclaim", 3, 0, setup_shelf_epoch_fenced, run_last_epoch, NULL, privates_shelf, 2, 1},
    {"reclaim", 3, 0, setup_shelf_epoch, run_last_epoch, NULL, privates_shelf, 2, 1},
    {"reclaim", 2, 0, setup_shelf_epoch, run_unseen, NULL, privates_shelf, 0, 3},
    {"reclaim", 2, 0, setup_shelf_hazard_fenced, run_next_block, NULL, privates_shelf, 0, 0},
    {"nodes", 3, 0, setup_pool, run_nodes, NULL, privates_nodes, 1, 1},
    {"nodes", 2, 0, setup_cache, run_nodes, NULL, privates_nodes, 3, 1},
    {"nodes", 2, 0, setup_pool, run_nodes, NULL, privates_nodes, 3, 1},
    {"ms-hazard", 3, 0, setup_ms_hazard_idle, run_three, drain, privates_ms, 2, 1},
    {"ms-hazard", 2, 0, setup_ms_hazard_pool, run_stream, drain, privates_ms, 2, 1},
    {"ms-hazard", 4, 0, setup_ms_hazard, run_pairs, drain, privates_ms, 1, 1},
    {"ms-hazard", 2, 0, setup_ms_hazard, run_mixed, drain, privates_ms, 2, 1},
    {"ms-hazard", 2, 0, setup_ms_hazard_fenced, run_mixed, drain, privates_ms, 2, 1},
    {"ms-hazard", 2, 0, setup_ms_hazard_idle, run_turns, drain, privates_ms, 2, 1},
    {"ms-epoch", 3, 0, setup_ms_epoch, run_three, drain, privates_ms, 2, 1},
    {"ms-epoch", 4, 0, setup_ms_epoch, run_pairs, drain, privates_ms, 1, 1},
    {"ms-epoch", 2, 0, setup_ms_epoch, run_stream, drain, privates_ms, 2, 1},
    {"ms-epoch", 2, 0, setup_ms_epoch_fenced, run_stream, drain, privates_ms, 2, 2},
    {"ms-epoch", 2, 0, setup_ms_epoch_idle, run_turns, drain, privates_ms, 2, 1},
    {"ms-epoch", 2, 0, setup_ms_epoch, run_epochs, drain, privates_ms, 2, 1},
    {"ms-epoch", 3, 0, setup_ms_epoch_fenced, run_epochs, drain, privates_ms, 1, 0},
    {"ms-epoch", 2, 0, setup_ms_epoch_fenced, run_epochs, drain, privates_ms, 2, 0},
    {"ms-tagged", 3, 0, setup_ms_tagged, run_three, drain, privates_ms, 2, 1},
    {"ms-tagged", 2, 0, setup_ms_tagged, run_recycle, drain, privates_ms, 2, 1},
    {"ms-tagged", 4, 0, setup_ms_tagged, run_pairs, drain, privates_ms, 1, 1},
    {"ms-tagged", 2, 0, setup_ms_tagged, run_stream, drain, privates_ms, 2, 1},
    {"ms-tagged", 2, 0, setup_ms_tagged, run_turns, drain, privates_ms, 2, 1},
    {"ms-cache", 4, 0, setup_ms_cache, run_pairs, drain, privates_ms, 1, 1},
    {"ms-cache", 2, 0, setup_ms_cache, run_stream, drain, privates_ms, 2, 1},
    {"ms-batch", 4, 0, setup_ms_hazard, run_batch_pairs, drain, privates_ms, 1, 1},
    {"ms-batch", 4, 0, setup_ms_tagged, run_batch_pairs, drain, privates_ms, 1, 1},
    {"ms-batch", 2, 0, setup_ms_hazard_pool, run_batch_mixed, drain, privates_ms, 2, 1},
    {"ms-batch", 2, 0, setup_ms_epoch_pool, run_batch_mixed, drain, privates_ms, 2, 1},
    {"ms-batch", 2, 0, setup_ms_cache, run_batch_turns, drain, privates_ms, 2, 1},
    {"ms-batch", 2, 0, setup_ms_tagged, run_batch_turns, drain, privates_ms, 2, 1},
    {"faa", 3, 0, setup_faa, run_again, drain, privates_faa, 1, 1},
    {"faa", 3, 0, setup_faa, run_relay, drain, privates_faa, 1, 0},
    {"faa", 3, 0, setup_faa, run_relay_pop, drain, privates_faa, 1, 0},
    {"faa", 4, 0, setup_faa, run_batch_pairs, drain, privates_faa, 1, 1},
    {"faa", 2, 0, setup_faa, run_batch_turns, drain, privates_faa, 2, 1},
    {"faa", 2, 0, setup_faa_four, run_batch_turns, drain, privates_faa, 2, 1},
    {"faa", 2, 0, setup_faa_four, run_turns, drain, privates_faa, 2, 2},
    {"faa", 4, 0, setup_faa, run_pairs, drain, privates_faa, 1, 1},
    {"faa", 3, 0, setup_faa, run_aside, drain, privates_faa, 2, 1},
    {"faa", 2, 0, setup_faa, run_stream, drain, privates_faa, 3, 1},
    {"faa", 2, 0, setup_faa_no_spares, run_stream, drain, privates_faa, 3, 1},
    {"faa", 2, 0, setup_faa, run_pushes, drain, privates_faa, 3, 1},
    {"faa", 2, 0, setup_faa, run_mixed, drain, privates_faa, 3, 1},
    {"faa", 2, 0, setup_faa_late, run_mixed, drain, privates_faa, 2, 1},
    {"faa", 3, 0, setup_faa, run_relay_directed, drain, privates_faa, 2, 1},
    {"faa", 3, 0, setup_faa, run_relay_pop_directed, drain, privates_faa, 2, 1},
    {"pairs", 4, 0, setup_ms_hazard, run_pairs, drain, privates_ms, 2, 0},
    {"pairs", 4, 0, setup_ms_epoch, run_pairs, drain, privates_ms, 2, 0},
    {"pairs", 4, 0, setup_ms_cache, run_pairs, drain, privates_ms, 2, 0},
    {"pairs", 4, 0, setup_ms_tagged, run_pairs, drain, privates_ms, 2, 0},
    {"pairs", 4, 0, setup_faa, run_pairs, drain, privates_faa, 2, 0},
    {"pairs", 4, 2, setup_mpmc_batch, run_pairs, drain, NULL, 2, 1},
    {"pairs", 4, 2, setup_mpmc, run_pairs, drain, NULL, 2, 1},
};
enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

#define MODEL(id, name)                           \
    TEST(id)                                      \
    {                                             \
        weaken_check(scenarios, SCENARIOS, name); \
    }

MODEL(reclaim_holds_and_is_weakened, "reclaim")
MODEL(nodes_hold_and_are_weakened, "nodes")
MODEL(mpmc_holds_and_is_weakened, "mpmc")
MODEL(mpmc_batch_holds_and_is_weakened, "mpmc-batch")
MODEL(ms_epoch_holds_and_is_weakened, "ms-epoch")
MODEL(ms_hazard_holds_and_is_weakened, "ms-hazard")
MODEL(ms_tagged_holds_and_is_weakened, "ms-tagged")
MODEL(ms_cache_holds_and_is_weakened, "ms-cache")
MODEL(ms_batch_holds_and_is_weakened, "ms-batch")
MODEL(faa_holds_and_is_weakened, "faa")

/* Two producers and two consumers, interrupted twice. */
TEST(pairs_hold)
{
    weaken_check_long(scenarios, SCENARIOS, "pairs");
}

/* The seed's rule: a node is freed as soon as it was taken out. */
static void setup_ms_unsafe(void)
{
    setup_ms(NODES_MALLOC, RECLAIM_HAZARD);
    ms_q->reclaim.kind = (enum reclaim_kind)3; /* none: no protection, no waiting */
}

TEST(the_unsafe_rule_is_caught)
{
    static const struct explore_scenario unsafe = {
        "ms-unsafe", 2, 0, setup_ms_unsafe, run_mixed, drain, privates_ms, 2, 0};
    struct explore_report r;
    explore_run(&unsafe, &(struct explore_limits){false, 2, 0, WEAKEN_STATES_MAX}, &r);
    CHECK(r.failed);
    CHECK_CONTAINS(r.failure, "use after free");
}

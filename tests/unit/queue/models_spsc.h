/* SPDX-License-Identifier: MIT */
/*
 * spsc under the explorer, for a size of cells that the including file has chosen: single calls and
 * batches, through every cell of the ring and round again.
 */
#define QUEUE_EXPLORE
#define QUEUE_BACKOFF 0
#include "../../../workloads/queue/spsc.h"

#include "test.h"
#include "weaken.h"

enum { BATCH_MAX = 4 };

static struct spsc *q;

static void setup(void)
{
    q = spsc_init(explore_alloc(spsc_bytes(MODEL_CAPACITY, 8)), MODEL_CAPACITY, 8);
}

/* In a ring that is too large for it the consumer claims no lines. */
static void setup_unclaimed(void)
{
    setup();
    q->claims = 0;
}

/* What each side keeps for itself. */
static void privates(unsigned t)
{
    size_t producer = offsetof(struct spsc, tail), consumer = offsetof(struct spsc, head);
    if (t == 0)
        explore_private((char *)q + producer, consumer - producer);
    else
        explore_private((char *)q + consumer, offsetof(struct spsc, ring) - consumer);
}

/* The values *next and on, `count` of them with one call; how many were pushed. */
static unsigned push(uint64_t *next, unsigned count)
{
    uint64_t values[BATCH_MAX] = {0};
    for (unsigned i = 0; i < count; i++)
        values[i] = *next + i;
    explore_begin(true, values[0]);
    unsigned pushed =
        count == 1 ? spsc_try_push(q, values, 8) : (unsigned)spsc_push_some(q, values, count, 8);
    explore_end(pushed ? values[0] : EXPLORE_EMPTY);
    for (unsigned i = 1; i < pushed; i++)
        explore_also(true, values[i], values[i]);
    *next += pushed;
    return pushed;
}

static unsigned pop(unsigned count)
{
    uint64_t values[BATCH_MAX] = {0};
    explore_begin(false, 0);
    unsigned popped =
        count == 1 ? spsc_try_pop(q, values, 8) : (unsigned)spsc_pop_some(q, values, count, 8);
    for (unsigned i = 0; i < popped; i++)
        values[i] = values[i] ? values[i] : 9999; /* nobody pushes 0 */
    explore_end(popped ? values[0] : EXPLORE_EMPTY);
    for (unsigned i = 1; i < popped; i++)
        explore_also(false, 0, values[i]);
    return popped;
}

static void drain(void)
{
    while (pop(1))
        ;
}

/* How many items each call of the two sides is for, 0 for the end. */
static void run_calls(unsigned t, const unsigned *pushes, const unsigned *pops)
{
    uint64_t next = 1;
    for (const unsigned *count = t == 0 ? pushes : pops; *count; count++)
        t == 0 ? push(&next, *count) : pop(*count);
}

static void run_singles(unsigned t)
{
    run_calls(t, MODEL_SINGLES, MODEL_SINGLES);
}

static void run_batches(unsigned t)
{
    run_calls(t, (const unsigned[]){3, 2, 4, 3, 0}, (const unsigned[]){2, 4, 3, 3, 0});
}

/* Each side's calls in the middle of what the other does with one. */
static void run_single_pushes(unsigned t)
{
    run_calls(t, MODEL_SINGLES, (const unsigned[]){3, 2, 4, 2, 0});
}

static void run_single_pops(unsigned t)
{
    run_calls(t, (const unsigned[]){4, 3, 2, 3, 0}, MODEL_SINGLES);
}

static const struct explore_scenario scenarios[] = {
    {MODEL_NAME, 2, MODEL_ITEMS, setup, run_singles, drain, privates, MODEL_DEPTH},
    {MODEL_NAME, 2, MODEL_ITEMS, setup, run_single_pushes, drain, privates, MODEL_DEPTH},
    {MODEL_NAME, 2, MODEL_ITEMS, setup, run_single_pops, drain, privates, MODEL_DEPTH},
    {MODEL_NAME, 2, MODEL_ITEMS, setup, run_batches, drain, privates, MODEL_DEPTH},
    {MODEL_NAME, 2, MODEL_ITEMS, setup_unclaimed, run_batches, drain, privates, MODEL_DEPTH},
};

#define TEST_OF(name) TEST(name)
TEST_OF(MODEL_TEST)
{
    /* The ring is one cell larger than its items need, and the calls go round it. */
    CHECK_INT(spsc_capacity(MODEL_CAPACITY, 8), MODEL_ITEMS);
    weaken_check(scenarios, sizeof(scenarios) / sizeof(scenarios[0]), MODEL_NAME);
}

/* SPDX-License-Identifier: MIT */
/* wait.h: how long a thread waits after what it got, counted in pauses and yields. */
#include "../../../workloads/queue/wait.h"
#include "test.h"

static uint64_t steps;

void queue_step(void)
{
    steps++;
}

/* How many pauses (or yields, one step each) one wait takes. */
static uint64_t waited(struct queue_waiter *w)
{
    uint64_t before = steps;
    queue_wait_once(w);
    return steps - before;
}

static uint64_t waited_after(struct queue_waiter *w, uint64_t got)
{
    queue_wait_got(w, got);
    return waited(w);
}

TEST(a_stream_is_waited_for_longer_and_longer)
{
    struct queue_waiter w = QUEUE_WAITER;
    uint64_t expected[] = {8, 16, 32, 64, 128, 256, 256, 256};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        CHECK_INT(waited_after(&w, 2), expected[i]);
}

TEST(an_answer_is_looked_for_at_once)
{
    struct queue_waiter w = QUEUE_WAITER;
    for (int i = 0; i < 100; i++)
        CHECK_INT(waited_after(&w, 1), 1);
}

TEST(who_waited_in_vain_waits_less)
{
    struct queue_waiter w = QUEUE_WAITER;
    for (int i = 0; i < 10; i++)
        waited_after(&w, 100);
    uint64_t expected[] = {128, 64, 32, 16, 8, 4, 2, 1, 1, 1};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        CHECK_INT(waited(&w), expected[i]);
    /* A single item is no stream. */
    CHECK_INT(waited_after(&w, 1), 1);
    CHECK_INT(waited_after(&w, 7), 8);
}

TEST(others_may_run_after_some_looks)
{
    struct queue_waiter w = QUEUE_WAITER;
    for (int i = 0; i < QUEUE_WAIT_LOOKS - 1; i++)
        waited(&w);
    CHECK_INT(w.looks, QUEUE_WAIT_LOOKS - 1);
    w.patience = 64;
    CHECK_INT(waited(&w), 1); /* a yield, and the patience is gone */
    CHECK_INT(w.patience, 0);
    CHECK_INT(waited(&w), 1);
    /* With more threads than CPUs, at once. */
    struct queue_waiter many = QUEUE_WAITER;
    many.yield_after = 1;
    CHECK_INT(waited_after(&many, 100), 1);
    CHECK_INT(many.patience, 0);
}

TEST(the_other_strategies_do_what_they_say)
{
    struct queue_waiter spin = QUEUE_WAITER, pause = QUEUE_WAITER, yield = QUEUE_WAITER;
    CHECK_INT(queue_wait_parse(&spin, "spin"), 0);
    CHECK_INT(queue_wait_parse(&pause, "pause:40"), 0);
    CHECK_INT(queue_wait_parse(&yield, "yield"), 0);
    for (int i = 0; i < 10; i++) {
        CHECK_INT(waited_after(&spin, 5), 0);
        CHECK_INT(waited_after(&pause, 5), 40);
        CHECK_INT(waited_after(&yield, 5), 1);
    }
}

TEST(names_are_read_and_nonsense_refused)
{
    struct queue_waiter w = QUEUE_WAITER;
    CHECK_INT(queue_wait_parse(&w, "adaptive:9"), 0);
    CHECK_INT(w.kind, QUEUE_WAIT_ADAPTIVE);
    CHECK_INT(w.pauses, 9);
    CHECK_INT(queue_wait_parse(&w, "sleep"), 0);
    CHECK_INT(w.kind, QUEUE_WAIT_SLEEP);
    const char *bad[] = {"",        "spi",      "spin:1",   "yield:2",          "pause:",
                         "pause:0", "pause:-1", "pause:1x", "adaptive:1000001", "sleeping"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_INT(queue_wait_parse(&w, bad[i]), -EINVAL);
}

TEST(waiting_for_counts_what_was_got)
{
    struct queue_waiter w = QUEUE_WAITER;
    int left = 5;
    uint64_t before = steps;
    QUEUE_WAIT_FOR(&w, --left == 0 ? 3 : 0);
    CHECK_INT(left, 0);
    CHECK_INT(steps - before, 4);
    CHECK_INT(w.got, 3);
    CHECK_INT(w.looks, 0);
}

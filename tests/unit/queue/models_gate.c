/* SPDX-License-Identifier: MIT */
/*
 * Gates under the explorer, beside the least of queues: a number of items, without any order.  Some
 * wait asleep, some by a descriptor, and nobody may wait for ever while there is an item.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define QUEUE_EXPLORE
#define QUEUE_BACKOFF 0
#include "../../../workloads/queue/gate.h"

#include "test.h"
#include "weaken.h"

struct hall {
    struct gate gate;
    QUEUE_ALIGNED uint64_t items;
    QUEUE_ALIGNED uint32_t event; /* of the descriptor */
};
static struct hall *hall;

/* What gates ask of the system. */
static long model_futex(const uint32_t *word, int operation, uint32_t value)
{
    if ((operation & FUTEX_CMD_MASK) == FUTEX_WAIT)
        explore_sleep(word, value);
    else
        explore_wake(word, value);
    return 0;
}

static long model_read(void)
{
    if (Q_SWAP(&hall->event, 0, relaxed))
        return 8;
    errno = EAGAIN;
    return -1;
}

static long model_write(void)
{
    Q_ADD(&hall->event, 1, relaxed);
    explore_wake(&hall->event, 1);
    return 8;
}

#define syscall(number, word, operation, value, ...) model_futex(word, operation, value)
#define read(fd, buffer, bytes) model_read()
#define write(fd, buffer, bytes) model_write()
#include "../../../workloads/queue/gate.c"

static void setup(void)
{
    hall = explore_alloc(sizeof(*hall));
    gate_init(&hall->gate, false);
}

static void give(void)
{
    Q_ADD(&hall->items, 1, relaxed);
    gate_notify(&hall->gate, 1);
}

static bool take(void)
{
    uint64_t count = Q_LOAD(&hall->items, relaxed);
    while (count > 0)
        if (Q_CAS(&hall->items, &count, count - 1, relaxed))
            return true;
    return false;
}

static void take_asleep(void)
{
    GATE_WAIT(&hall->gate, 0, take());
}

static void take_by_descriptor(void)
{
    while (!take()) {
        gate_arm(&hall->gate);
        bool taken = take();
        if (!taken)
            explore_sleep(&hall->event, 0);
        gate_disarm(&hall->gate);
        if (taken)
            return;
    }
}

static void run_asleep(unsigned t)
{
    for (unsigned k = 0; k < 2; k++)
        t == 0 ? give() : take_asleep();
}

static void run_by_descriptor(unsigned t)
{
    for (unsigned k = 0; k < 2; k++)
        t == 0 ? give() : take_by_descriptor();
}

static void run_two_asleep(unsigned t)
{
    if (t == 0)
        give(), give();
    else
        take_asleep();
}

/* All at one gate. */
static void run_both(unsigned t)
{
    if (t == 0)
        give(), give(), give();
    else
        t == 1 ? take_by_descriptor() : take_asleep();
}

static void run_producers(unsigned t)
{
    if (t < 2)
        give();
    else
        t == 2 ? take_by_descriptor() : take_asleep();
}

static const struct explore_scenario scenarios[] = {
    {"gate", 4, 0, setup, run_producers, NULL, NULL, 2, 1},
    {"gate", 4, 0, setup, run_both, NULL, NULL, 2, 1},
    {"gate", 3, 0, setup, run_two_asleep, NULL, NULL, 3, 1},
    {"gate", 2, 0, setup, run_by_descriptor, NULL, NULL, 4, 2},
    {"gate", 2, 0, setup, run_asleep, NULL, NULL, 4, 2},
};

TEST(gate_holds_and_is_weakened)
{
    weaken_check(scenarios, sizeof(scenarios) / sizeof(scenarios[0]), "gate");
}

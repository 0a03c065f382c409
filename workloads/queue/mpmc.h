/* SPDX-License-Identifier: MIT */
/*
 * mpmc: a bounded queue for any number of producers and consumers, in threads or in processes.
 *
 * Progress   not lock-free: a thread that stops between taking a slot and finishing with it lets
 *            the others go on for up to one lap of the ring, then they wait for it.  Otherwise a
 *            call ends after one successful compare-and-swap; it fails only because another call
 *            succeeded.
 * Order      first in, first out over all producers; linearizable.
 * Memory     mpmc_bytes(), allocated by the caller, never more; no pointers in it, so it may lie in
 *            memory that processes share.
 * Failure    try_push fails only when `capacity` items are in the queue or being pushed, try_pop
 *            only when none is: a slot whose item is on its way is waited for, not taken for empty.
 * Death      a thread that dies inside a call may leave a slot taken for ever; see Progress.
 *
 * Sketch (Vyukov's bounded queue).  Each slot has a sequence number beside its item.  Slot i is
 * free for the push of position p when its number is p, and holds that item when it is p + 1; the
 * pop sets it to p + capacity, which is free for the next lap.  Who pushes reads `tail`, finds the
 * slot free and claims the position by compare-and-swap; then it alone may write the slot.  Batches
 * claim several positions with one compare-and-swap.
 *
 * Why this is correct.
 * (1) Position p is claimed once for pushing and once for popping, since `tail` and `head` only
 *     grow by compare-and-swap.  The slot is touched only between claim and the store of its
 *     number, and the number says whose turn it is; so there is one thread at each slot.
 * (2) The numbers carry the order of memory: each is stored with release after the slot was
 *     written or read, and loaded with acquire before.  `tail` and `head` order nothing, so their
 *     accesses are relaxed, but for (3).
 * (3) try_pop finds `empty` when the slot of its position p is not full and `tail` is p, too.  head
 *     was p when it was read and never passes tail, so at the moment of that load of `tail` the
 *     queue was empty.  To be true of the present and not only of the past, whoever learnt of an
 *     item must see that `tail` has grown: claims are made with release and these loads acquire.
 *     `full` is the same with the roles swapped.
 */
#ifndef ASSAY_QUEUE_MPMC_H
#define ASSAY_QUEUE_MPMC_H

#include "atomics.h"

struct mpmc {
    uint64_t mask;       /* capacity - 1 */
    uint64_t slot_words; /* of the number and the item */
    uint64_t item_bytes;
    QUEUE_ALIGNED uint64_t tail; /* the next position to push */
    QUEUE_ALIGNED uint64_t head; /* the next position to pop */
    QUEUE_ALIGNED uint64_t slots[];
};

/* Capacities are powers of two, at least two. */
static inline uint64_t mpmc_capacity(uint64_t capacity)
{
    return queue_power_of_two(capacity < 2 ? 2 : capacity);
}

static inline size_t mpmc_bytes(uint64_t capacity, size_t item_bytes)
{
    return sizeof(struct mpmc) + mpmc_capacity(capacity) * (8 + item_bytes);
}

/* `memory` has mpmc_bytes() bytes, aligned to a cache line. */
static inline struct mpmc *mpmc_init(void *memory, uint64_t capacity, size_t item_bytes)
{
    struct mpmc *q = memory;
    memset(q, 0, sizeof(*q));
    q->mask = mpmc_capacity(capacity) - 1;
    q->slot_words = 1 + item_bytes / 8;
    q->item_bytes = item_bytes;
    for (uint64_t i = 0; i <= q->mask; i++)
        Q_STORE(&q->slots[i * q->slot_words], i, relaxed);
    return q;
}

QUEUE_INLINE uint64_t *mpmc_slot(struct mpmc *q, uint64_t position, size_t bytes)
{
    return &q->slots[(position & q->mask) * (1 + bytes / 8)];
}

/* How many of the slots from `position` on have the number that lets this side use them. */
QUEUE_INLINE size_t mpmc_ready(struct mpmc *q, uint64_t position, uint64_t offset, size_t wanted,
                               size_t bytes)
{
    size_t count = 0;
    /* Partner: the stores of the number in mpmc_push_some and mpmc_pop_some. */
    while (count < wanted &&
           Q_LOAD(mpmc_slot(q, position + count, bytes), acquire) == position + count + offset)
        count++;
    return count;
}

/*
 * What to do when the slot of `position` is not ready: 1 for try again (*position is updated), 0
 * for the queue is full or empty.  `limit` is what the other side's index is then.
 */
QUEUE_INLINE bool mpmc_again(uint64_t *mine, uint64_t *position, const uint64_t *other,
                             uint64_t limit)
{
    /* Partner: the compare-and-swap of whoever claimed last on this side; the other index is then
     * not older than what it saw. */
    uint64_t now = Q_LOAD(mine, acquire);
    if (now == *position) {
        if (Q_LOAD(other, relaxed) == limit)
            return false;
        Q_PAUSE();
    }
    *position = now;
    return true;
}

/* Pushes the first of `count` items that there is room for; returns how many.  They stand in the
 * queue one behind the other. */
QUEUE_INLINE size_t mpmc_push_some(struct mpmc *q, const void *items, size_t count, size_t bytes)
{
    uint64_t position = Q_LOAD(&q->tail, relaxed);
    size_t taken;
    Q_FOREVER (position) {
        taken = mpmc_ready(q, position, 0, count, bytes);
        if (Q_UNLIKELY(taken == 0)) {
            if (!mpmc_again(&q->tail, &position, &q->head, position - (q->mask + 1)))
                return 0;
            continue;
        }
        /* Partner: the load of this index in mpmc_again. */
        if (Q_LIKELY(Q_CAS(&q->tail, &position, position + taken, release)))
            break;
    }
    for (size_t i = 0; i < taken; i++) {
        uint64_t *slot = mpmc_slot(q, position + i, bytes);
        queue_copy_in(slot + 1, (const char *)items + i * bytes, bytes);
        /* Partner: the load in mpmc_ready by whoever pops this position. */
        Q_STORE(slot, position + i + 1, release);
    }
    return taken;
}

/* Pops up to `count` items; returns how many. */
QUEUE_INLINE size_t mpmc_pop_some(struct mpmc *q, void *items, size_t count, size_t bytes)
{
    uint64_t position = Q_LOAD(&q->head, relaxed);
    size_t taken;
    Q_FOREVER (position) {
        taken = mpmc_ready(q, position, 1, count, bytes);
        if (Q_UNLIKELY(taken == 0)) {
            if (!mpmc_again(&q->head, &position, &q->tail, position))
                return 0;
            continue;
        }
        /* Partner: the load of this index in mpmc_again. */
        if (Q_LIKELY(Q_CAS(&q->head, &position, position + taken, release)))
            break;
    }
    for (size_t i = 0; i < taken; i++) {
        uint64_t *slot = mpmc_slot(q, position + i, bytes);
        queue_copy_out((char *)items + i * bytes, slot + 1, bytes);
        /* Partner: the load in mpmc_ready by whoever pushes there in the next lap. */
        Q_STORE(slot, position + i + q->mask + 1, release);
    }
    return taken;
}

QUEUE_INLINE bool mpmc_try_push(struct mpmc *q, const void *item, size_t bytes)
{
    return mpmc_push_some(q, item, 1, bytes) == 1;
}

QUEUE_INLINE bool mpmc_try_pop(struct mpmc *q, void *item, size_t bytes)
{
    return mpmc_pop_some(q, item, 1, bytes) == 1;
}

#endif

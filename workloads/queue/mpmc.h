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
 *            poll_push and poll_pop do not wait for it, and may fail because of it.
 * Death      a thread that dies inside a call may leave a slot taken for ever; see Progress.
 *
 * Sketch (Vyukov's bounded queue, in whole cache lines).  The ring is made of cells of one cache
 * line: a byte of state for each slot, and seven words of items behind them.  The byte says whose
 * turn it is: 2 × lap when the slot is free for the push of that lap, one more when it holds the
 * item, and the pop makes it 2 × (lap + 1).  Who pushes reads `tail`, finds the slot free and
 * claims it by compare-and-swap of tail; then it alone may write the slot.  Batches claim several
 * slots with one compare-and-swap, and publish a line when it is filled.
 * An index is lap × cells × 8 + cell × 8 + slot, where the slot is below the number of items in a
 * cell; so no division is needed, and index + cells × 8 is the same slot in the next lap.
 *
 * Whoever loses a slot to another thread of its own side waits for a moment (QUEUE_BACKOFF).  Who
 * waits for a thread that has claimed a slot and was then preempted gives its CPU up now and then.
 *
 * Why this is correct.
 * (1) A slot is claimed once in each lap for pushing and once for popping, since `tail` and `head`
 *     only grow, by compare-and-swap.  The slot is touched only between claim and the store of its
 *     state, and the state says whose turn it is; so there is one thread at each slot.
 * (2) A state has eight bits and comes round after 128 laps.  That misleads nobody: it is believed
 *     only if the compare-and-swap of tail (or head) then finds the index that was read before; so
 *     that index stood there all the while, and the slot was in that lap or the one before.
 * (3) The states carry the order of memory: each is stored with release after the slot was written
 *     or read, and loaded with acquire before.  `tail` and `head` order nothing, so their accesses
 *     are relaxed, but for (4).
 * (4) try_pop finds `empty` when the slot of its index i is not full and `tail` is i, too.  head
 *     was i when it was read and never passes tail, so at the moment of that load of `tail` the
 *     queue was empty.  To be true of the present and not only of the past, whoever learnt of an
 *     item must see that `tail` has grown: claims are made with release and these loads acquire.
 *     `full` is the same with the roles swapped.
 */
#ifndef ASSAY_QUEUE_MPMC_H
#define ASSAY_QUEUE_MPMC_H

#include "atomics.h"

#ifndef MPMC_CELL_WORDS
#define MPMC_CELL_WORDS 7
#endif
/* How many cells ahead a line is asked for, to be written: by calls for single items and by
 * batches. */
#ifndef MPMC_AHEAD
#define MPMC_AHEAD 1
#endif
#define MPMC_AHEAD_BATCH 8
/* Who waits for a slot that another thread has claimed looks so often, then lets others run. */
#define MPMC_LOOKS 64
/*
 * The states of a whole cell are one word, and read and written as one where they are alike.  C11
 * knows no accesses of different sizes to one place; processors do, and gcc and clang leave such
 * accesses alone.  The explorer and TSan know a place by its address only, so for them it is done
 * byte by byte, which allows all that a word does and more.
 */
#if defined(QUEUE_EXPLORE) || defined(__SANITIZE_THREAD__)
#define MPMC_WHOLE 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MPMC_WHOLE 0
#endif
#endif
#ifndef MPMC_WHOLE
#define MPMC_WHOLE 1
#endif
#define MPMC_EACH 0x0101010101010101ull
QUEUE_ASSERT(MPMC_CELL_WORDS < 8, "a cell's states are in one word, with a byte to spare");

struct mpmc {
    uint64_t mask;      /* cells - 1 */
    uint64_t lap_shift; /* an index shifted by this is its lap */
    uint64_t item_bytes;
    QUEUE_ALIGNED uint64_t tail; /* the next index to push */
    QUEUE_ALIGNED uint64_t head; /* the next index to pop */
    QUEUE_ALIGNED uint64_t cells[];
};

QUEUE_INLINE uint64_t mpmc_cell_items(size_t item_bytes)
{
    return item_bytes <= MPMC_CELL_WORDS * 8 ? MPMC_CELL_WORDS * 8 / item_bytes : 1;
}

QUEUE_INLINE uint64_t mpmc_cell_words(size_t item_bytes)
{
    return item_bytes <= MPMC_CELL_WORDS * 8 ? 8 : 1 + item_bytes / 8;
}

static inline uint64_t mpmc_cell_count(uint64_t capacity, size_t item_bytes)
{
    uint64_t items = mpmc_cell_items(item_bytes);
    return queue_power_of_two((capacity + items - 1) / items);
}

/* How many items fit where at least `capacity` shall: a power of two of cells. */
static inline uint64_t mpmc_capacity(uint64_t capacity, size_t item_bytes)
{
    return mpmc_cell_count(capacity, item_bytes) * mpmc_cell_items(item_bytes);
}

static inline size_t mpmc_bytes(uint64_t capacity, size_t item_bytes)
{
    return sizeof(struct mpmc) +
           mpmc_cell_count(capacity, item_bytes) * mpmc_cell_words(item_bytes) * 8;
}

/* `memory` has mpmc_bytes() bytes, aligned to a cache line. */
static inline struct mpmc *mpmc_init(void *memory, uint64_t capacity, size_t item_bytes)
{
    struct mpmc *q = (struct mpmc *)memory;
    memset(q, 0, mpmc_bytes(capacity, item_bytes));
    q->mask = mpmc_cell_count(capacity, item_bytes) - 1;
    q->lap_shift = 3 + (uint64_t)__builtin_popcountll(q->mask);
    q->item_bytes = item_bytes;
    return q;
}

QUEUE_INLINE uint64_t *mpmc_cell(struct mpmc *q, uint64_t index, size_t bytes)
{
    if (mpmc_cell_words(bytes) == 8)
        return &q->cells[index & q->mask * 8]; /* the same in fewer steps */
    return &q->cells[(index / 8 & q->mask) * mpmc_cell_words(bytes)];
}

QUEUE_INLINE uint64_t mpmc_after(uint64_t index, uint64_t count, size_t bytes)
{
    uint64_t items = mpmc_cell_items(bytes), slot = index % 8 + count;
    if (count == 1) {
        /* A branch, which is predicted: the compare-and-swap waits for what is computed here. */
        uint64_t next = index + 1;
        if (Q_UNLIKELY(slot == items)) {
            next = index / 8 * 8 + 8;
            Q_KEEP(next);
        }
        return next;
    }
    return index / 8 * 8 + slot / items * 8 + slot % items;
}

/* The state that the slot has when its push, or with `full` its pop, may come. */
QUEUE_INLINE uint8_t mpmc_state(const struct mpmc *q, uint64_t index, unsigned full)
{
    return (uint8_t)((index >> q->lap_shift) * 2 + full);
}

/* Where in its cell a run of `wanted` slots ends. */
QUEUE_INLINE uint64_t mpmc_slot_end(uint64_t slot, size_t wanted, size_t bytes)
{
    uint64_t items = mpmc_cell_items(bytes);
    return wanted < items - slot ? slot + wanted : items;
}

/* How many of the slots from `index` on have the state that lets this side use them. */
QUEUE_INLINE size_t mpmc_ready(struct mpmc *q, uint64_t index, unsigned full, size_t wanted,
                               size_t bytes)
{
    size_t count = 0;
    while (count < wanted) {
        const uint8_t *states = (const uint8_t *)mpmc_cell(q, index, bytes);
        uint8_t state = mpmc_state(q, index, full);
        uint64_t slot = index % 8, end = mpmc_slot_end(slot, wanted - count, bytes);
        if (MPMC_WHOLE) {
            /* Partner: the stores of states in mpmc_publish. */
            uint64_t word = Q_LOAD((const uint64_t *)states, acquire);
            uint64_t differs = (word ^ MPMC_EACH * state) >> slot * 8;
            differs &= (1ull << (end - slot) * 8) - 1;
            if (Q_UNLIKELY(differs != 0))
                return count + (size_t)__builtin_ctzll(differs) / 8;
            count += end - slot;
            index = index / 8 * 8 + 8;
            continue;
        }
        for (; slot < end; slot++, count++)
            /* Partner: the stores of states in mpmc_publish. */
            if (Q_LOAD(&states[slot], acquire) != state)
                return count;
        index = index / 8 * 8 + 8;
    }
    return count;
}

/*
 * What to do when the slot of *index is not ready: true for try again (*index is updated), false
 * for the queue is full or empty.  `limit` is what the other side's index is then.
 */
QUEUE_INLINE bool mpmc_again(uint64_t *mine, uint64_t *index, const uint64_t *other, uint64_t limit,
                             unsigned *looks)
{
    /* Partner: the compare-and-swap of whoever claimed last on this side; the other index is then
     * not older than what it saw. */
    uint64_t now = Q_LOAD(mine, acquire);
    if (now == *index) {
        if (Q_LOAD(other, relaxed) == limit)
            return false;
        Q_PAUSE();
        if (++*looks % MPMC_LOOKS == 0)
            Q_YIELD();
    }
    *index = now;
    return true;
}

/* Whether another thread of this side has gone on; *index is then where to. */
QUEUE_INLINE bool mpmc_moved(const uint64_t *mine, uint64_t *index)
{
    uint64_t before = *index;
    *index = Q_LOAD(mine, relaxed);
    return *index != before;
}

/*
 * Another thread of this side was faster.  Without the wait, two and two on two cores had phases of
 * some ms with 12 million items a second, and 108 on the whole; with it it is 170, and there are no
 * such phases (AMD EPYC, Zen 4).
 */
QUEUE_INLINE void mpmc_lost(void)
{
    queue_wait(QUEUE_BACKOFF);
}

/* The caller's slots [first, end) of a cell are done with. */
QUEUE_INLINE void mpmc_publish(uint64_t *cell, uint64_t first, uint64_t end, uint8_t state,
                               size_t bytes)
{
    if (MPMC_WHOLE && end - first > 1 && end - first == mpmc_cell_items(bytes)) {
        /* Partner: the same. */
        Q_STORE(cell, MPMC_EACH * state, release);
        return;
    }
    for (uint64_t slot = first; slot < end; slot++)
        /* Partner: the load in mpmc_ready, by whoever pops what was pushed here, or pushes in the
         * next lap where something was popped. */
        Q_STORE((uint8_t *)cell + slot, state, release);
}

/*
 * One item.  The line of the next cell is asked for, to be written: asked for to be read first, it
 * would come twice; asked for now, it is there when the next cell begins.  What is stored, and
 * where, is known before the compare-and-swap (`found` is what it saw, apart from `index`): the
 * next one waits until these stores are done, and they need not wait for its result.
 */
QUEUE_INLINE bool mpmc_push_one(struct mpmc *q, const void *item, size_t bytes, bool strict)
{
    uint64_t index = Q_LOAD(&q->tail, relaxed), found = index;
    unsigned looks = 0;
    if (index % 8 == 0)
        Q_PREFETCH(mpmc_cell(q, index + MPMC_AHEAD * 8, bytes));
    Q_FOREVER (index) {
        uint64_t *cell = mpmc_cell(q, index, bytes), *slot = cell + 1 + index % 8 * (bytes / 8);
        uint8_t *state = (uint8_t *)cell + index % 8, free = mpmc_state(q, index, 0);
        /* Partner: the store of the state in mpmc_try_pop, or in mpmc_publish. */
        if (Q_UNLIKELY(Q_LOAD(state, acquire) != free)) {
            uint64_t full = index - (q->mask + 1) * 8;
            if (strict ? !mpmc_again(&q->tail, &index, &q->head, full, &looks)
                       : !mpmc_moved(&q->tail, &index))
                return false;
            found = index;
            continue;
        }
        /* Partner: the load of this index in mpmc_again. */
        if (Q_LIKELY(Q_CAS(&q->tail, &found, mpmc_after(index, 1, bytes), release))) {
            queue_copy_in(slot, item, bytes);
            /* Partner: the load of the state in mpmc_try_pop, or in mpmc_ready. */
            Q_STORE(state, (uint8_t)(free + 1), release);
            return true;
        }
        mpmc_lost();
        index = found;
    }
}

QUEUE_INLINE bool mpmc_pop_one(struct mpmc *q, void *item, size_t bytes, bool strict)
{
    uint64_t index = Q_LOAD(&q->head, relaxed), found = index;
    unsigned looks = 0;
    if (index % 8 == 0)
        Q_PREFETCH(mpmc_cell(q, index + MPMC_AHEAD * 8, bytes));
    Q_FOREVER (index) {
        uint64_t *cell = mpmc_cell(q, index, bytes), *slot = cell + 1 + index % 8 * (bytes / 8);
        uint8_t *state = (uint8_t *)cell + index % 8, full = mpmc_state(q, index, 1);
        /* Partner: the store of the state in mpmc_try_push, or in mpmc_publish. */
        if (Q_UNLIKELY(Q_LOAD(state, acquire) != full)) {
            if (strict ? !mpmc_again(&q->head, &index, &q->tail, index, &looks)
                       : !mpmc_moved(&q->head, &index))
                return false;
            found = index;
            continue;
        }
        /* Partner: the load of this index in mpmc_again. */
        if (Q_LIKELY(Q_CAS(&q->head, &found, mpmc_after(index, 1, bytes), release))) {
            queue_copy_out(item, slot, bytes);
            /* Partner: the load of the state in mpmc_try_push, or in mpmc_ready. */
            Q_STORE(state, (uint8_t)(full + 1), release);
            return true;
        }
        mpmc_lost();
        index = found;
    }
}

QUEUE_INLINE bool mpmc_try_push(struct mpmc *q, const void *item, size_t bytes)
{
    return mpmc_push_one(q, item, bytes, true);
}

QUEUE_INLINE bool mpmc_try_pop(struct mpmc *q, void *item, size_t bytes)
{
    return mpmc_pop_one(q, item, bytes, true);
}

/*
 * For loops that look again and again.  As try_, but they fail as well while the item in front, or
 * the slot behind the last one, is still being worked on.  So they need not read the other side's
 * index, whose line the other side would then have to get back: a round trip takes half the time.
 */
QUEUE_INLINE bool mpmc_poll_push(struct mpmc *q, const void *item, size_t bytes)
{
    return mpmc_push_one(q, item, bytes, false);
}

QUEUE_INLINE bool mpmc_poll_pop(struct mpmc *q, void *item, size_t bytes)
{
    return mpmc_pop_one(q, item, bytes, false);
}

QUEUE_INLINE size_t mpmc_push_batch(struct mpmc *q, const void *items, size_t count, size_t bytes)
{
    uint64_t index = Q_LOAD(&q->tail, relaxed), lap = (q->mask + 1) * 8;
    unsigned looks = 0;
    size_t taken;
    Q_FOREVER (index) {
        taken = mpmc_ready(q, index, 0, count, bytes);
        if (Q_UNLIKELY(taken == 0)) {
            if (!mpmc_again(&q->tail, &index, &q->head, index - lap, &looks))
                return 0;
            continue;
        }
        /* Partner: the load of this index in mpmc_again. */
        if (Q_LIKELY(Q_CAS(&q->tail, &index, mpmc_after(index, taken, bytes), release)))
            break;
        mpmc_lost();
    }
    const char *from = (const char *)items;
    for (size_t left = taken; left > 0; index = index / 8 * 8 + 8) {
        uint64_t *cell = mpmc_cell(q, index, bytes), all = mpmc_cell_items(bytes);
        uint64_t first = index % 8, end = mpmc_slot_end(first, left, bytes), some = end - first;
        Q_PREFETCH(mpmc_cell(q, index + MPMC_AHEAD_BATCH * 8, bytes));
        if (some == all) {
            /* A whole cell: its length is a constant. */
            queue_copy_in(cell + 1, from, all * bytes);
            mpmc_publish(cell, 0, all, mpmc_state(q, index, 1), bytes);
        } else {
            queue_copy_in(cell + 1 + first * (bytes / 8), from, some * bytes);
            mpmc_publish(cell, first, end, mpmc_state(q, index, 1), bytes);
        }
        from += some * bytes;
        left -= some;
    }
    return taken;
}

QUEUE_INLINE size_t mpmc_pop_batch(struct mpmc *q, void *items, size_t count, size_t bytes)
{
    uint64_t index = Q_LOAD(&q->head, relaxed);
    unsigned looks = 0;
    size_t taken;
    Q_FOREVER (index) {
        taken = mpmc_ready(q, index, 1, count, bytes);
        if (Q_UNLIKELY(taken == 0)) {
            if (!mpmc_again(&q->head, &index, &q->tail, index, &looks))
                return 0;
            continue;
        }
        /* Partner: the load of this index in mpmc_again. */
        if (Q_LIKELY(Q_CAS(&q->head, &index, mpmc_after(index, taken, bytes), release)))
            break;
        mpmc_lost();
    }
    char *to = (char *)items;
    for (size_t left = taken; left > 0; index = index / 8 * 8 + 8) {
        uint64_t *cell = mpmc_cell(q, index, bytes), all = mpmc_cell_items(bytes);
        uint64_t first = index % 8, end = mpmc_slot_end(first, left, bytes), some = end - first;
        Q_PREFETCH(mpmc_cell(q, index + MPMC_AHEAD_BATCH * 8, bytes));
        if (some == all) {
            queue_copy_out(to, cell + 1, all * bytes);
            mpmc_publish(cell, 0, all, mpmc_state(q, index, 2), bytes);
        } else {
            queue_copy_out(to, cell + 1 + first * (bytes / 8), some * bytes);
            mpmc_publish(cell, first, end, mpmc_state(q, index, 2), bytes);
        }
        to += some * bytes;
        left -= some;
    }
    return taken;
}

/* Pushes the first of `count` items that there is room for; returns how many.  They stand in the
 * queue one behind the other. */
QUEUE_INLINE size_t mpmc_push_some(struct mpmc *q, const void *items, size_t count, size_t bytes)
{
    return count == 1 ? mpmc_try_push(q, items, bytes) : mpmc_push_batch(q, items, count, bytes);
}

/* Pops up to `count` items; returns how many. */
QUEUE_INLINE size_t mpmc_pop_some(struct mpmc *q, void *items, size_t count, size_t bytes)
{
    return count == 1 ? mpmc_try_pop(q, items, bytes) : mpmc_pop_batch(q, items, count, bytes);
}

#endif

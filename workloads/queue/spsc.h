/* SPDX-License-Identifier: MIT */
/*
 * spsc: a bounded queue for one producer and one consumer, in threads or in processes.
 *
 * Progress   wait-free: every call ends after a bounded number of its own steps.
 * Order      first in, first out; linearizable.
 * Memory     spsc_bytes(), allocated by the caller, never more.  It holds no pointers: it may lie
 *            in memory that processes share, at different addresses in each.
 * Failure    try_push fails only when `capacity` items are in the queue, try_pop only when none is.
 * Death      the other side goes on: an item whose push had not reached its last store was never
 *            there, an item whose pop had not is there.  The dead one's side cannot be taken over.
 *
 * Sketch.  The ring is made of cells of one cache line: seven words of items and one word `tail`,
 * the number of items that were ever pushed.  Who pushes writes the items first and then, in the
 * cell where they begin, `tail`; who pops reads `tail` in the cell where it stands.  So an item and
 * the news of it travel in one cache line, where a ring with its index elsewhere moves two; and
 * unlike a ring whose slots are their own flags, every value may be an item.  The consumer counts
 * what it took in `head`; the producer reads it only when the room it last knew of is used up.
 *
 * Why this is correct.
 * (1) A `tail` word, wherever it stands, means: all items below it are written.  The producer
 *     writes it after them, with release; it only grows; a value from an earlier lap says less, but
 *     nothing wrong.
 * (2) The consumer looks at a `tail` word only when it has taken all items below the last one that
 *     it read, so it stands where a push began, and every push leaves its `tail` in the cell where
 *     it began.  If the next item was pushed, the word in that cell says so; nothing is overlooked.
 * (3) The producer writes slot i of the ring again only when `head` has passed the item that was
 *     there, and `head` is stored with release after the item was copied out.
 * (4) A consumer that has taken all items of a cell may write its `tail`: every push that began
 *     there is over, since the consumer learnt of its items from that word; and the next to write
 *     it is the producer, after it saw `head` pass the cell: the ring has one cell more than the
 *     items need, so that who may push into a cell finds all of it taken.  What the consumer
 *     writes, `head`, is true by (1).
 * Positions have 64 bits and do not wrap within the life of a machine.
 */
#ifndef ASSAY_QUEUE_SPSC_H
#define ASSAY_QUEUE_SPSC_H

#include "atomics.h"

#ifndef SPSC_CELL_WORDS
#define SPSC_CELL_WORDS 7
#endif

#define SPSC_CELL ((SPSC_CELL_WORDS + 1 + 7) / 8 * 8) /* words of a cell, with its tail */
#ifndef SPSC_AHEAD
#define SPSC_AHEAD 16 /* lines */
#endif

/* Rings up to this size stay in the caches of the two cores. */
#ifndef SPSC_CLAIM_BYTES
#define SPSC_CLAIM_BYTES (512 * 1024)
#endif

/* Where a side stands in the ring. */
struct spsc_place {
    uint64_t cell;   /* offset of the cell in words */
    uint64_t offset; /* of the slot in its cell, in words */
};

struct spsc {
    uint64_t capacity;   /* in items */
    uint64_t cell_words; /* of a cell with its tail: 8 unless an item is longer than 7 words */
    uint64_t ring_words;
    uint64_t item_bytes;
    uint64_t patience; /* pauses before a second look; may be set after spsc_init */
    uint64_t claims;   /* whether the consumer writes to the cells it has read */
    /* The producer's own. */
    QUEUE_ALIGNED uint64_t tail;
    uint64_t head_seen;
    struct spsc_place push_at;
    /* The consumer's own; the producer reads `head`. */
    QUEUE_ALIGNED uint64_t head;
    uint64_t tail_seen;
    struct spsc_place pop_at;
    /* Cells: word 0 is `tail`, then the items. */
    QUEUE_ALIGNED uint64_t ring[];
};

static inline uint64_t spsc_cell_words(size_t item_bytes)
{
    size_t words = item_bytes / 8;
    return words <= SPSC_CELL_WORDS ? SPSC_CELL : (words + 1 + 7) / 8 * 8;
}

static inline uint64_t spsc_cell_items(size_t item_bytes)
{
    size_t words = item_bytes / 8;
    return words <= SPSC_CELL_WORDS ? SPSC_CELL_WORDS / words : 1;
}

/* How many items fit where at least `capacity` shall: whole cells, at least two. */
static inline uint64_t spsc_capacity(uint64_t capacity, size_t item_bytes)
{
    uint64_t items = spsc_cell_items(item_bytes), cells = (capacity + items - 1) / items;
    return (cells < 2 ? 2 : cells) * items;
}

static inline size_t spsc_bytes(uint64_t capacity, size_t item_bytes)
{
    uint64_t cells = spsc_capacity(capacity, item_bytes) / spsc_cell_items(item_bytes) + 1;
    return sizeof(struct spsc) + cells * spsc_cell_words(item_bytes) * 8;
}

/* `memory` has spsc_bytes() zero bytes, aligned to a cache line.  item_bytes is a multiple of 8 up
 * to QUEUE_ITEM_BYTES_MAX. */
static inline struct spsc *spsc_init(void *memory, uint64_t capacity, size_t item_bytes)
{
    struct spsc *q = memory;
    uint64_t items = spsc_cell_items(item_bytes);
    q->capacity = spsc_capacity(capacity, item_bytes);
    q->cell_words = spsc_cell_words(item_bytes);
    q->ring_words = (q->capacity / items + 1) * q->cell_words; /* one more: see (4) */
    q->item_bytes = item_bytes;
    q->patience = QUEUE_PATIENCE;
    q->claims = q->ring_words * 8 <= SPSC_CLAIM_BYTES;
    q->push_at.offset = q->pop_at.offset = 1;
    return q;
}

/* The offset behind a cell's last item; a constant for items of one size known to the compiler. */
QUEUE_INLINE uint64_t spsc_cell_end(size_t bytes)
{
    return 1 + spsc_cell_items(bytes) * (bytes / 8);
}

QUEUE_INLINE void spsc_advance(const struct spsc *q, struct spsc_place *at, size_t bytes)
{
    at->offset += bytes / 8;
    if (at->offset == spsc_cell_end(bytes)) {
        at->offset = 1;
        at->cell += bytes <= SPSC_CELL_WORDS * 8 ? SPSC_CELL : q->cell_words;
        if (Q_UNLIKELY(at->cell == q->ring_words))
            at->cell = 0;
    }
}

/* How many items the producer may push now, at most `wanted`. */
QUEUE_INLINE uint64_t spsc_room(struct spsc *q, uint64_t wanted)
{
    uint64_t room = q->capacity - (q->tail - q->head_seen);
    if (Q_UNLIKELY(room < wanted)) {
        /* Partner: the store of head in spsc_taken.  What was copied out there happened before
         * what is written here. */
        q->head_seen = Q_LOAD(&q->head, acquire);
        room = q->capacity - (q->tail - q->head_seen);
    }
    return room < wanted ? room : wanted;
}

/* How many items the consumer may pop now, at most `wanted`. */
QUEUE_INLINE uint64_t spsc_available(struct spsc *q, uint64_t wanted)
{
    if (q->head == q->tail_seen) {
        /* Partner: the store of tail in spsc_publish. */
        uint64_t tail = Q_LOAD(&q->ring[q->pop_at.cell], acquire);
        if (tail <= q->head)
            return 0;
        q->tail_seen = tail;
    }
    uint64_t count = q->tail_seen - q->head;
    return count < wanted ? count : wanted;
}

/* There was nothing: again after a moment. */
QUEUE_INLINE uint64_t spsc_room_later(struct spsc *q, uint64_t wanted)
{
    if (q->patience == 0)
        return 0;
    queue_wait(q->patience);
    return spsc_room(q, wanted);
}

QUEUE_INLINE uint64_t spsc_available_later(struct spsc *q, uint64_t wanted)
{
    if (q->patience == 0)
        return 0;
    queue_wait(q->patience);
    return spsc_available(q, wanted);
}

QUEUE_INLINE void spsc_publish(struct spsc *q, uint64_t cell, uint64_t count)
{
    q->tail += count;
    /* Partner: the load of tail in spsc_available, which then sees the items. */
    Q_STORE(&q->ring[cell], q->tail, release);
}

/*
 * The consumer has read a whole cell.  In a small ring it writes to the cell's `tail` then, see
 * (4): the line is its own after that, and the producer, who writes it next, gets it in 3 ns where
 * one that both have read takes 7 (AMD EPYC, Zen 4).  Rings that do not fit into a core's cache
 * gain nothing, since lines come from the shared one.
 */
QUEUE_INLINE void spsc_cell_done(struct spsc *q, uint64_t cell)
{
    if (q->claims)
        Q_STORE(&q->ring[cell], q->head, relaxed);
}

QUEUE_INLINE void spsc_taken(struct spsc *q, uint64_t count)
{
    /* Partner: the load of head in spsc_room: the slots are read before they are written again. */
    Q_STORE(&q->head, q->head + count, release);
}

/* `bytes` is the queue's item_bytes, best as a constant. */
QUEUE_INLINE bool spsc_try_push(struct spsc *q, const void *item, size_t bytes)
{
    if (!spsc_room(q, 1) && !spsc_room_later(q, 1))
        return false;
    uint64_t cell = q->push_at.cell;
    /* The stores of a few items fill the processor's buffer, so lines must be asked for earlier. */
    uint64_t *slot = &q->ring[cell + q->push_at.offset];
    if (SPSC_AHEAD && q->push_at.offset % 8 <= 1)
        Q_PREFETCH(slot + SPSC_AHEAD * 8);
    queue_copy_in(slot, item, bytes);
    spsc_advance(q, &q->push_at, bytes);
    spsc_publish(q, cell, 1);
    return true;
}

QUEUE_INLINE bool spsc_try_pop(struct spsc *q, void *item, size_t bytes)
{
    if (!spsc_available(q, 1) && !spsc_available_later(q, 1))
        return false;
    uint64_t cell = q->pop_at.cell;
    queue_copy_out(item, &q->ring[cell + q->pop_at.offset], bytes);
    spsc_advance(q, &q->pop_at, bytes);
    if (q->pop_at.offset == 1)
        spsc_cell_done(q, cell);
    spsc_taken(q, 1);
    return true;
}

/* How many of `left` items the cell still takes, or gives. */
QUEUE_INLINE size_t spsc_cell_rest(const struct spsc_place *at, size_t left, size_t bytes)
{
    uint64_t rest = (spsc_cell_end(bytes) - at->offset) / (bytes / 8);
    return rest < left ? rest : left;
}

/* Goes on by `count` items that end with the cell, or in it. */
QUEUE_INLINE void spsc_advance_by(const struct spsc *q, struct spsc_place *at, size_t count,
                                  size_t bytes)
{
    at->offset += (count - 1) * (bytes / 8);
    spsc_advance(q, at, bytes);
}

/*
 * Pushes the first of `count` items that there is room for; returns how many.  The consumer sees
 * all of them at once.  They fill up the cell where the last push ended, then whole cells, whose
 * length is a constant, and what is left begins one.
 */
QUEUE_INLINE size_t spsc_push_some(struct spsc *q, const void *items, size_t count, size_t bytes)
{
    size_t room = spsc_room(q, count), all = spsc_cell_items(bytes), left;
    if (room == 0 && (room = spsc_room_later(q, count)) == 0)
        return 0;
    struct spsc_place at = q->push_at;
    uint64_t first = at.cell;
    const char *from = items;
    left = room;
    if (at.offset != 1) {
        size_t some = spsc_cell_rest(&at, left, bytes);
        queue_copy_in(&q->ring[at.cell + at.offset], from, some * bytes);
        spsc_advance_by(q, &at, some, bytes);
        from += some * bytes;
        left -= some;
    }
    for (; left >= all; left -= all, from += all * bytes) {
        queue_copy_in(&q->ring[at.cell + 1], from, all * bytes);
        spsc_advance_by(q, &at, all, bytes);
    }
    if (left > 0) {
        queue_copy_in(&q->ring[at.cell + 1], from, left * bytes);
        at.offset += left * (bytes / 8);
    }
    q->push_at = at;
    spsc_publish(q, first, room);
    return room;
}

/* Pops up to `count` items; returns how many. */
QUEUE_INLINE size_t spsc_pop_some(struct spsc *q, void *items, size_t count, size_t bytes)
{
    size_t available = spsc_available(q, count), all = spsc_cell_items(bytes), left;
    if (available == 0 && (available = spsc_available_later(q, count)) == 0)
        return 0;
    struct spsc_place at = q->pop_at;
    char *to = items;
    left = available;
    if (at.offset != 1) {
        size_t some = spsc_cell_rest(&at, left, bytes);
        uint64_t cell = at.cell;
        queue_copy_out(to, &q->ring[cell + at.offset], some * bytes);
        spsc_advance_by(q, &at, some, bytes);
        if (at.offset == 1)
            spsc_cell_done(q, cell);
        to += some * bytes;
        left -= some;
    }
    for (; left >= all; left -= all, to += all * bytes) {
        uint64_t cell = at.cell;
        queue_copy_out(to, &q->ring[cell + 1], all * bytes);
        spsc_advance_by(q, &at, all, bytes);
        spsc_cell_done(q, cell);
    }
    if (left > 0) {
        queue_copy_out(to, &q->ring[at.cell + 1], left * bytes);
        at.offset += left * (bytes / 8);
    }
    q->pop_at = at;
    spsc_taken(q, available);
    return available;
}

#endif

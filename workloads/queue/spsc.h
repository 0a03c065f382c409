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
 * Sketch.  The ring is made of cells of one cache line: a word `tail` and seven words of items.  An
 * item's position is the number of the word in which it stands, if the ring went on for ever
 * instead of round; so a position names a place and says how far a side has come, and a side has
 * nothing else to keep up.  `tail` is the position behind the last item that was pushed.  Who
 * pushes writes the items first and then, in the cell where they begin, `tail`; who pops reads
 * `tail` in the cell where it stands.  So an item and the news of it travel in one cache line,
 * where a ring with its index elsewhere moves two; and unlike a ring whose slots are their own
 * flags, every value may be an item.  The consumer tells where it stands in `head`; the producer
 * reads it only when the room it last knew of is used up.
 *
 * What a push costs is its stores, one a cycle: the item, the cell's `tail` and the producer's own.
 *
 * Why this is correct.
 * (1) A `tail` word, wherever it stands, means: all items below it are written.  The producer
 *     writes it after them, with release; it only grows; a value from an earlier lap says less, but
 *     nothing wrong.
 * (2) The consumer looks at a `tail` word only when it has taken all items below the last one that
 *     it read, so it stands where a push began, and every push leaves its `tail` in the cell where
 *     it began.  If the next item was pushed, the word in that cell says so; nothing is overlooked.
 * (3) The producer writes a slot of the ring again only when `head` has passed the item that was
 *     there, and `head` is stored with release after the item was copied out.
 * (4) A consumer that has taken all items of a cell may write its `tail`: every push that began
 *     there is over, since the consumer learnt of its items from that word; and the next to write
 *     it is the producer, after it saw `head` pass the cell: the ring has one cell more than the
 *     items need, so that who may push into a cell finds all of it taken.  What the consumer
 *     writes, `head`, is true by (1).
 * (5) `capacity` fills whole cells, so the position of the item `capacity` items after another is
 *     that one's plus `capacity_words`, wherever in its cell it stands.
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

/* Where a side stands in the ring: `base` is the position at which this lap began. */
struct spsc_place {
    uint64_t base;
    uint64_t cell;   /* offset of the cell in words */
    uint64_t offset; /* of the slot in its cell, in words */
};

struct spsc {
    uint64_t capacity; /* in items */
    uint64_t capacity_words;
    uint64_t cell_words; /* of a cell with its tail: 8 unless an item is longer than 7 words */
    uint64_t ring_words;
    uint64_t item_bytes;
    uint64_t claims; /* whether the consumer writes to the cells it has read */
    /* The producer's own. */
    QUEUE_ALIGNED uint64_t tail;
    uint64_t push_end; /* the first position that may not be pushed to */
    uint64_t push_base;
    /* The consumer's own; the producer reads `head`. */
    QUEUE_ALIGNED uint64_t head;
    uint64_t pop_end; /* the last `tail` that was read */
    uint64_t pop_base;
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
    struct spsc *q = (struct spsc *)memory;
    uint64_t items = spsc_cell_items(item_bytes);
    q->capacity = spsc_capacity(capacity, item_bytes);
    q->cell_words = spsc_cell_words(item_bytes);
    q->ring_words = (q->capacity / items + 1) * q->cell_words; /* one more: see (4) */
    q->item_bytes = item_bytes;
    q->capacity_words = q->ring_words - q->cell_words;
    q->claims = q->ring_words * 8 <= SPSC_CLAIM_BYTES;
    q->tail = q->head = q->pop_end = 1;
    q->push_end = 1 + q->capacity_words;
    return q;
}

/* The offset behind a cell's last item; a constant for items of one size known to the compiler. */
QUEUE_INLINE uint64_t spsc_cell_end(size_t bytes)
{
    return 1 + spsc_cell_items(bytes) * (bytes / 8);
}

/* Whether the item at this place is the last of its cell. */
QUEUE_INLINE bool spsc_ends_cell(uint64_t index, size_t bytes)
{
    return Q_UNLIKELY(index % 8 + bytes / 8 >= spsc_cell_end(bytes));
}

/* The position at which the next cell begins; *base is moved to the next lap if need be. */
QUEUE_INLINE uint64_t spsc_next_cell(const struct spsc *q, uint64_t position, uint64_t *base,
                                     size_t bytes)
{
    uint64_t next =
        position / 8 * 8 + 1 + (bytes <= SPSC_CELL_WORDS * 8 ? SPSC_CELL : q->cell_words);
    if (Q_UNLIKELY(next > *base + q->ring_words))
        *base += q->ring_words;
    return next;
}

/* How many items there are from one position to another. */
QUEUE_INLINE uint64_t spsc_count(const struct spsc *q, uint64_t from, uint64_t to, size_t bytes)
{
    if (bytes > SPSC_CELL_WORDS * 8)
        return (to - from) / q->cell_words;
    uint64_t cells = to / SPSC_CELL - from / SPSC_CELL;
    return cells * spsc_cell_items(bytes) + to % 8 / (bytes / 8) - from % 8 / (bytes / 8);
}

/* Whether the producer may push. */
QUEUE_INLINE bool spsc_has_room(struct spsc *q)
{
    if (Q_LIKELY(q->tail != q->push_end))
        return true;
    /* Partner: the store of head in spsc_taken.  What was copied out there happened before what is
     * written here. */
    q->push_end = Q_LOAD(&q->head, acquire) + q->capacity_words;
    return q->tail != q->push_end;
}

/* How many items the producer may push now, at most `wanted`. */
QUEUE_INLINE uint64_t spsc_room(struct spsc *q, uint64_t wanted, size_t bytes)
{
    uint64_t room = spsc_count(q, q->tail, q->push_end, bytes);
    if (Q_UNLIKELY(room < wanted)) {
        /* Partner: as in spsc_has_room. */
        q->push_end = Q_LOAD(&q->head, acquire) + q->capacity_words;
        room = spsc_count(q, q->tail, q->push_end, bytes);
    }
    return room < wanted ? room : wanted;
}

/* Whether there is something to pop. */
QUEUE_INLINE bool spsc_has_items(struct spsc *q)
{
    if (Q_LIKELY(q->head != q->pop_end))
        return true;
    /* Partner: the store of tail in spsc_publish. */
    uint64_t tail = Q_LOAD(&q->ring[(q->head - q->pop_base) / 8 * 8], acquire);
    if (tail <= q->head)
        return false;
    q->pop_end = tail;
    return true;
}

/* What was pushed from the cell at `cell` on ends at `tail`. */
QUEUE_INLINE void spsc_publish(struct spsc *q, uint64_t cell, uint64_t tail)
{
    q->tail = tail;
    /* Partner: the load of tail in spsc_has_items, which then sees the items. */
    Q_STORE(&q->ring[cell], tail, release);
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

QUEUE_INLINE void spsc_taken(struct spsc *q, uint64_t head)
{
    /* Partner: the load of head in spsc_room: the slots are read before they are written again. */
    Q_STORE(&q->head, head, release);
}

/* `bytes` is the queue's item_bytes, best as a constant. */
QUEUE_INLINE bool spsc_try_push(struct spsc *q, const void *item, size_t bytes)
{
    if (!spsc_has_room(q))
        return false;
    uint64_t index = q->tail - q->push_base, tail = q->tail + bytes / 8;
    queue_copy_in(&q->ring[index], item, bytes);
    if (spsc_ends_cell(index, bytes)) {
        tail = spsc_next_cell(q, q->tail, &q->push_base, bytes);
        /* The stores of a few items fill the processor's buffer, so lines are asked for early. */
        if (SPSC_AHEAD)
            Q_PREFETCH((uintptr_t)&q->ring[tail - q->push_base] + SPSC_AHEAD * 64);
    }
    spsc_publish(q, index / 8 * 8, tail);
    return true;
}

QUEUE_INLINE bool spsc_try_pop(struct spsc *q, void *item, size_t bytes)
{
    if (!spsc_has_items(q))
        return false;
    uint64_t index = q->head - q->pop_base, head = q->head + bytes / 8;
    queue_copy_out(item, &q->ring[index], bytes);
    if (spsc_ends_cell(index, bytes)) {
        head = spsc_next_cell(q, q->head, &q->pop_base, bytes);
        spsc_cell_done(q, index / 8 * 8);
    }
    spsc_taken(q, head);
    return true;
}

QUEUE_INLINE struct spsc_place spsc_place_of(uint64_t position, uint64_t base)
{
    struct spsc_place at = {base, position / 8 * 8 - base, position % 8};
    return at;
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
    at->offset += count * (bytes / 8);
    if (at->offset == spsc_cell_end(bytes)) {
        at->offset = 1;
        at->cell += bytes <= SPSC_CELL_WORDS * 8 ? SPSC_CELL : q->cell_words;
        if (Q_UNLIKELY(at->cell == q->ring_words)) {
            at->cell = 0;
            at->base += q->ring_words;
        }
    }
}

/*
 * Pushes the first of `count` items that there is room for; returns how many.  The consumer sees
 * all of them at once.  They fill up the cell where the last push ended, then whole cells, whose
 * length is a constant, and what is left begins one.
 */
QUEUE_INLINE size_t spsc_push_some(struct spsc *q, const void *items, size_t count, size_t bytes)
{
    size_t room = spsc_room(q, count, bytes), all = spsc_cell_items(bytes), left;
    if (room == 0)
        return 0;
    struct spsc_place at = spsc_place_of(q->tail, q->push_base);
    uint64_t first = at.cell;
    const char *from = (const char *)items;
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
    q->push_base = at.base;
    spsc_publish(q, first, at.base + at.cell + at.offset);
    return room;
}

/* Pops up to `count` items; returns how many. */
QUEUE_INLINE size_t spsc_pop_some(struct spsc *q, void *items, size_t count, size_t bytes)
{
    if (!spsc_has_items(q))
        return 0;
    uint64_t known = spsc_count(q, q->head, q->pop_end, bytes);
    size_t available = known < count ? known : count, all = spsc_cell_items(bytes), left;
    struct spsc_place at = spsc_place_of(q->head, q->pop_base);
    char *to = (char *)items;
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
    q->pop_base = at.base;
    spsc_taken(q, at.base + at.cell + at.offset);
    return available;
}

#endif

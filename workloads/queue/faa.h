/* SPDX-License-Identifier: MIT */
/*
 * faa: an unbounded queue for any number of producers and consumers, made of linked segments whose
 * slots are given out by fetch-and-add (the idea of LCRQ, Morrison and Afek 2013, in the simpler
 * form of Ramalhete and Correia's FAAArrayQueue, 2016: segments are used once).
 *
 * Progress   lock-free.  A thread that stalls or dies inside a call does not hold up others.
 * Order      first in, first out over all producers; linearizable.
 * Memory     the items in the queue, 64 bytes for seven of 8 bytes, in whole segments; besides, at
 *            most FAA_SPARES free segments, and for each thread the two it last used and up to
 *            faa_retired_max that wait for others.  What a burst needed goes back to the system.
 * Failure    try_pop fails only when the queue is empty, push only when there is no memory.
 *
 * Sketch.  A segment has an array of slots and two counters.  A push takes the next slot by
 * fetch-and-add on `tail`, writes its item and turns the slot's state from FREE to FULL.  A pop
 * takes the next slot by fetch-and-add on `head` and exchanges its state for TAKEN; if it was FULL
 * the item is the result.  If it was FREE the push is late: it finds the slot TAKEN and tries
 * another one, and so does the pop.  Nobody waits.  When a segment's slots are used up, the push
 * links a new one, and the pop that finds its successor retires it.
 *
 * Unlike their original, states stand beside the items, so every value may be an item, of any size.
 * Batches take several slots with one fetch-and-add.  Segments are protected by hazard pointers
 * that stay in place from call to call: as long as the queue's head or tail is the segment this
 * thread protects already, protection costs one comparison.
 *
 * Why this is correct.
 * (1) A slot is taken by one push and one pop, as fetch-and-add gives out each number once.  The
 *     push writes the item before it makes the slot FULL, with release; the pop's exchange
 * acquires. Of the push's compare-and-swap and the pop's exchange, one is first: either the item is
 *     delivered, or both know that it is not.
 * (2) Order: a push that ends before another begins has a smaller slot number or an earlier
 * segment, and pops take slots in that order; a slot that was passed over (TAKEN without item)
 * holds nothing. (3) try_pop returns false when it read head and then tail with head ≥ tail, and
 * then found no next segment: at the load of tail, every slot that a push has taken was taken by a
 * pop, too. (4) A segment is retired by the pop that moves the queue's head off it, after making
 * sure that the queue's tail has left it; so neither leads to it any more, and hazard pointers do
 * the rest.
 */
#ifndef ASSAY_QUEUE_FAA_H
#define ASSAY_QUEUE_FAA_H

#include "atomics.h"
#include "reclaim.h"

#ifndef FAA_SLOTS
#define FAA_SLOTS 2048
#endif
#ifndef FAA_SPARES
#define FAA_SPARES 8
#endif
#define FAA_BATCH_MAX 64
/* A pop looks this often whether a late push arrives before it passes the slot over. */
#ifndef FAA_LATE
#define FAA_LATE 16
#endif

enum { FAA_FREE = 0, FAA_FULL = 1, FAA_TAKEN = 2 };

struct faa_segment {
    QUEUE_ALIGNED uint64_t tail;    /* slots given out to pushes; may exceed FAA_SLOTS */
    QUEUE_ALIGNED uint64_t head;    /* slots given out to pops */
    uint64_t limit;                 /* what tail is known to have reached; the consumers' own */
    QUEUE_ALIGNED uint64_t next;    /* the next segment's address */
    QUEUE_ALIGNED uint64_t cells[]; /* the slots: see faa_state and faa_item */
};

struct faa {
    size_t item_bytes;
    size_t spare_count; /* of spares that are kept */
    struct reclaim reclaim;
    QUEUE_ALIGNED uint64_t head; /* the segment to pop from */
    QUEUE_ALIGNED uint64_t tail; /* the segment to push to */
    QUEUE_ALIGNED uint64_t spares[FAA_SPARES];
};

/* One for each thread that uses the queue. */
struct faa_thread {
    QUEUE_ALIGNED struct reclaim_thread *reclaim;
    uint64_t pop_at, push_at; /* the segments that stand in its hazard slots 0 and 1 */
};

enum { FAA_RETIRED_MAX = 2 };

/* A cell is a cache line: a byte of state for each slot, then the items, seven of 8 bytes.  Larger
 * ones have a cell each. */
QUEUE_INLINE uint64_t faa_cell_items(size_t bytes)
{
    return bytes <= 56 ? 56 / bytes : 1;
}

QUEUE_INLINE uint64_t faa_cell_words(size_t bytes)
{
    return bytes <= 56 ? 8 : 1 + bytes / 8;
}

static inline size_t faa_segment_bytes(size_t item_bytes)
{
    uint64_t items = faa_cell_items(item_bytes), cells = (FAA_SLOTS + items - 1) / items;
    return sizeof(struct faa_segment) + cells * faa_cell_words(item_bytes) * 8;
}

/* A slot's state, and its item. */
QUEUE_INLINE uint8_t *faa_state(struct faa_segment *s, uint64_t index, size_t bytes)
{
    uint64_t items = faa_cell_items(bytes);
    return (uint8_t *)&s->cells[index / items * faa_cell_words(bytes)] + index % items;
}

QUEUE_INLINE uint64_t *faa_item(struct faa_segment *s, uint64_t index, size_t bytes)
{
    uint64_t items = faa_cell_items(bytes);
    return &s->cells[index / items * faa_cell_words(bytes) + 1 + index % items * (bytes / 8)];
}

/* Memory for a segment: straight from the system and back, so that a burst leaves nothing. */
QUEUE_C_BEGIN
void *faa_memory_get(size_t bytes);
void faa_memory_put(void *memory, size_t bytes);
QUEUE_C_END

/* A segment that nobody else knows; NULL when there is no memory. */
QUEUE_SLOW struct faa_segment *faa_segment_get(struct faa *q)
{
    for (size_t i = 0; i < q->spare_count; i++) {
        if (Q_LOAD(&q->spares[i], relaxed) == 0)
            continue;
        /* Partner: the compare-and-swap in faa_segment_put. */
        struct faa_segment *s = (struct faa_segment *)(uintptr_t)Q_SWAP(&q->spares[i], 0, acquire);
        if (!s)
            continue;
        Q_STORE(&s->tail, 0, relaxed);
        Q_STORE(&s->head, 0, relaxed);
        Q_STORE(&s->limit, 0, relaxed);
        Q_STORE(&s->next, 0, relaxed);
        for (size_t slot = 0; slot < FAA_SLOTS; slot++)
            Q_STORE(faa_state(s, slot, q->item_bytes), FAA_FREE, relaxed);
        return s;
    }
    return (struct faa_segment *)faa_memory_get(faa_segment_bytes(q->item_bytes));
}

/* Keeps a segment as a spare, or gives it back to the system when there are enough. */
static inline void faa_segment_put(struct faa *q, struct faa_segment *s)
{
    for (size_t i = 0; i < q->spare_count; i++) {
        uint64_t none = 0;
        /* Partner: the exchange in faa_segment_get. */
        if (Q_LOAD(&q->spares[i], relaxed) == 0 &&
            Q_CAS(&q->spares[i], &none, (uint64_t)(uintptr_t)s, release))
            return;
    }
    faa_memory_put(s, faa_segment_bytes(q->item_bytes));
}

static inline void faa_release(void *owner, void *thread, uint64_t word)
{
    (void)thread;
    faa_segment_put((struct faa *)owner, (struct faa_segment *)(uintptr_t)word);
}

/* False when there is no memory. */
static inline bool faa_init(struct faa *q, size_t item_bytes)
{
    memset(q, 0, sizeof(*q));
    q->item_bytes = item_bytes;
    q->spare_count = FAA_SPARES;
    /* Fences are rare here, one for each segment, so they need not be cheap. */
    reclaim_init(&q->reclaim, RECLAIM_HAZARD, false, FAA_RETIRED_MAX, faa_release, q);
    struct faa_segment *first = (struct faa_segment *)faa_memory_get(faa_segment_bytes(item_bytes));
    if (!first)
        return false;
    Q_STORE(&q->head, (uint64_t)(uintptr_t)first, relaxed);
    Q_STORE(&q->tail, (uint64_t)(uintptr_t)first, relaxed);
    return true;
}

static inline bool faa_join(struct faa *q, struct faa_thread *t)
{
    memset(t, 0, sizeof(*t));
    t->reclaim = reclaim_join(&q->reclaim);
    return t->reclaim != NULL;
}

static inline void faa_leave(struct faa *q, struct faa_thread *t)
{
    reclaim_leave(&q->reclaim, t->reclaim, t);
}

/* When no thread uses it any more; what is still in it is dropped. */
static inline void faa_done(struct faa *q)
{
    reclaim_done(&q->reclaim, NULL);
    size_t bytes = faa_segment_bytes(q->item_bytes);
    for (uint64_t s = q->head; s;) {
        uint64_t next = ((struct faa_segment *)(uintptr_t)s)->next;
        faa_memory_put((void *)(uintptr_t)s, bytes);
        s = next;
    }
    for (size_t i = 0; i < FAA_SPARES; i++)
        if (q->spares[i])
            faa_memory_put((void *)(uintptr_t)q->spares[i], bytes);
}

/* The segment that *place names, protected by the hazard slot that `held` mirrors. */
QUEUE_INLINE struct faa_segment *faa_protect(struct faa *q, struct faa_thread *t,
                                             const uint64_t *place, unsigned slot, uint64_t *held)
{
    Q_FOREVER (0) {
        /* Only a name: a segment that is not protected yet is used after reclaim_protect has read
         * the place again, with acquire. */
        uint64_t word = Q_LOAD(place, relaxed);
        if (Q_UNLIKELY(word != *held)) {
            *held = 0;
            if (!reclaim_protect(&q->reclaim, t->reclaim, slot, word, place, word))
                continue;
            *held = word;
        }
        return (struct faa_segment *)(uintptr_t)word;
    }
}

/* Fills the slots [from, to) with items in order, passing over those that pops have given up;
 * returns how many items there was a slot for. */
QUEUE_INLINE size_t faa_fill(struct faa_segment *s, uint64_t from, uint64_t to, const void *items,
                             size_t count, size_t bytes)
{
    size_t done = 0;
    for (uint64_t i = from; i < to && done < count; i++) {
        uint8_t state = FAA_FREE;
        queue_copy_in(faa_item(s, i, bytes), (const char *)items + done * bytes, bytes);
        /* Partner: the exchange in faa_empty, which then sees the item. */
        done += Q_CAS(faa_state(s, i, bytes), &state, FAA_FULL, release);
    }
    return done;
}

/* The segment is full: moves the queue's tail to its successor, which is made if need be, with the
 * items in it.  Returns how many items were placed, -1 when there is no memory. */
QUEUE_SLOW long faa_extend(struct faa *q, struct faa_segment *s, const void *items, size_t count,
                           size_t bytes)
{
    uint64_t self = (uint64_t)(uintptr_t)s, none = 0;
    long placed = 0;
    if (!Q_LOAD(&s->next, relaxed)) {
        struct faa_segment *made = faa_segment_get(q);
        if (!made)
            return -1;
        placed = (long)(count < FAA_SLOTS ? count : FAA_SLOTS);
        for (long i = 0; i < placed; i++) {
            queue_copy_in(faa_item(made, (uint64_t)i, bytes),
                          (const char *)items + (size_t)i * bytes, bytes);
            Q_STORE(faa_state(made, (uint64_t)i, bytes), FAA_FULL, relaxed);
        }
        Q_STORE(&made->tail, (uint64_t)placed, relaxed);
        /* Partner: the loads of next here and in faa_drop: the segment is seen as it was made. */
        if (!Q_CAS(&s->next, &none, (uint64_t)(uintptr_t)made, release)) {
            Q_STORE(&made->tail, 0, relaxed);
            for (long i = 0; i < placed; i++)
                Q_STORE(faa_state(made, (uint64_t)i, bytes), FAA_FREE, relaxed);
            faa_segment_put(q, made);
            placed = 0;
        }
    }
    /* Partner: the compare-and-swap of next above, of whoever made the segment. */
    uint64_t next = Q_LOAD(&s->next, acquire);
    /* Partner: the load in faa_protect. */
    Q_CAS(&q->tail, &self, next, release);
    return placed;
}

/* Pushes up to `count` items in order, without others in between only as long as no consumer passes
 * a slot over; fewer only when there is no memory left. */
QUEUE_INLINE size_t faa_push_some(struct faa *q, struct faa_thread *t, const void *items,
                                  size_t count, size_t bytes)
{
    size_t done = 0;
    while (done < count) {
        struct faa_segment *s = faa_protect(q, t, &q->tail, 1, &t->push_at);
        const char *rest = (const char *)items + done * bytes;
        uint64_t from = Q_ADD(&s->tail, count - done, relaxed);
        if (Q_LIKELY(from < FAA_SLOTS)) {
            uint64_t to = from + (count - done);
            done += faa_fill(s, from, to < FAA_SLOTS ? to : FAA_SLOTS, rest, count - done, bytes);
            continue;
        }
        long placed = faa_extend(q, s, rest, count - done, bytes);
        if (placed < 0)
            break;
        done += (size_t)placed;
    }
    return done;
}

/* False when there is no memory left. */
QUEUE_INLINE bool faa_push(struct faa *q, struct faa_thread *t, const void *item, size_t bytes)
{
    return faa_push_some(q, t, item, 1, bytes) == 1;
}

/* Takes the items out of the slots [from, to) that are the caller's; returns how many there were.
 */
QUEUE_INLINE size_t faa_empty(struct faa_segment *s, uint64_t from, uint64_t to, void *items,
                              size_t bytes)
{
    size_t found = 0;
    for (uint64_t i = from; i < to; i++) {
        uint8_t *slot = faa_state(s, i, bytes);
        /* Partner: the compare-and-swap in faa_fill, or the one of next in faa_extend.  FULL is
         * the end: nobody else touches the slot after. */
        uint8_t state = Q_LOAD(slot, acquire);
        for (int k = FAA_LATE; k > 0 && Q_UNLIKELY(state == FAA_FREE); k--) {
            Q_PAUSE();
            state = Q_LOAD(slot, acquire);
        }
        /* Partner: the same. */
        if (Q_UNLIKELY(state == FAA_FREE) && Q_SWAP(slot, FAA_TAKEN, acquire) != FAA_FULL)
            continue;
        queue_copy_out((char *)items + found * bytes, faa_item(s, i, bytes), bytes);
        found++;
    }
    return found;
}

/* All slots of the segment are given out to pops: moves the queue's head on and retires it.  False
 * when there is no next segment. */
QUEUE_SLOW bool faa_drop(struct faa *q, struct faa_thread *t, struct faa_segment *s)
{
    uint64_t self = (uint64_t)(uintptr_t)s, tail = self, head = self;
    /* Partner: the compare-and-swap of next in faa_extend. */
    uint64_t next = Q_LOAD(&s->next, acquire);
    if (!next)
        return false;
    /* Partner: the load in faa_protect, for both. */
    Q_CAS(&q->tail, &tail, next, release);
    if (Q_CAS(&q->head, &head, next, release)) {
        /* Its own slots would else keep it.  They need no order: it is this thread that releases.
         */
        Q_STORE(&t->reclaim->hazards[0], 0, relaxed);
        t->pop_at = 0;
        if (t->push_at == self) {
            Q_STORE(&t->reclaim->hazards[1], 0, relaxed);
            t->push_at = 0;
        }
        reclaim_retire(&q->reclaim, t->reclaim, t, self);
    }
    return true;
}

/* Pops up to `count` items; returns how many. */
QUEUE_INLINE size_t faa_pop_some(struct faa *q, struct faa_thread *t, void *items, size_t count,
                                 size_t bytes)
{
    Q_FOREVER (0) {
        struct faa_segment *s = faa_protect(q, t, &q->head, 0, &t->pop_at);
        /* head before tail, see (3).  Partner: the fetch-and-add of head below: who sees a slot
         * given out to a pop sees that it was given out to a push. */
        uint64_t head = Q_LOAD(&s->head, acquire);
        if (Q_UNLIKELY(head >= FAA_SLOTS)) {
            if (!faa_drop(q, t, s))
                return 0;
            continue;
        }
        uint64_t limit = Q_LOAD(&s->limit, relaxed);
        if (Q_UNLIKELY(head >= limit)) {
            limit = Q_LOAD(&s->tail, relaxed);
            if (head >= limit) /* tail < FAA_SLOTS: there is no next segment */
                return 0;
            Q_STORE(&s->limit, limit, relaxed);
        }
        uint64_t wanted = limit - head < count ? limit - head : count;
        /* Partner: the load of head above. */
        uint64_t from = Q_ADD(&s->head, wanted, release), to = from + wanted;
        if (from >= FAA_SLOTS)
            continue;
        size_t found = faa_empty(s, from, to < FAA_SLOTS ? to : FAA_SLOTS, items, bytes);
        if (Q_LIKELY(found > 0))
            return found;
    }
}

QUEUE_INLINE bool faa_try_pop(struct faa *q, struct faa_thread *t, void *item, size_t bytes)
{
    return faa_pop_some(q, t, item, 1, bytes) == 1;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * When may memory that was taken out of a queue be used again?  Another thread may have read a
 * pointer to it just before and still be about to follow it.
 *
 * RECLAIM_HAZARD   Hazard pointers (Michael 2004).  Before a thread follows a pointer it writes it
 *                  into one of its hazard slots and looks whether the place it came from still
 *                  holds it.  Memory that was taken out is kept in a list of the thread; when the
 *                  list is full, what stands in no hazard slot is released.
 *                  Bound: each thread keeps at most RECLAIM_BATCH plus all hazard slots; a thread
 *                  that stalls or dies keeps what its slots name and what its list holds.
 * RECLAIM_EPOCH    Epochs (Fraser 2004).  A thread notes the epoch when it enters an operation.
 *                  What was taken out in epoch e is released in e + 2 or later: until then every
 *                  thread has left the operation in which it may have seen it.
 *                  No bound: a thread that stalls inside an operation stops all reclamation.
 * RECLAIM_TAGGED   Nothing is awaited: memory stays of one type for ever, goes back at once, and a
 *                  tag beside each pointer makes a compare-and-swap fail that was prepared before.
 *                  Bound: none is kept.  The tag has 32 bits: a thread would have to sleep inside
 *                  an operation while exactly a multiple of 2^32 changes happen to the same word.
 *
 * Both waiting kinds need a store and a later load in order (the hazard or the epoch before what
 * is read).  That is a full fence in each operation; or, where membarrier(2) is there, none at all:
 * the one who releases pays for both sides, once for a whole list (Q_LIGHT and Q_HEAVY).
 */
#ifndef ASSAY_QUEUE_RECLAIM_H
#define ASSAY_QUEUE_RECLAIM_H

#include "atomics.h"

#include <stdlib.h>

#ifndef Q_ALLOC
#define Q_ALLOC(bytes) calloc(1, (bytes))
#define Q_FREE(memory) free(memory)
#endif

#ifndef QUEUE_THREADS_MAX
#define QUEUE_THREADS_MAX 64
#endif
#ifndef RECLAIM_BATCH
#define RECLAIM_BATCH 512
#endif
#define RECLAIM_HAZARDS 3

enum reclaim_kind { RECLAIM_HAZARD, RECLAIM_EPOCH, RECLAIM_TAGGED };

struct reclaim_list {
    uint64_t *words;
    uint64_t count, capacity, epoch;
};

struct reclaim_thread {
    /* Read by others. */
    QUEUE_ALIGNED uint64_t hazards[RECLAIM_HAZARDS];
    uint64_t inside; /* 0, or 2 × epoch + 1 */
    uint64_t used;   /* 1 while a thread has it */
    /* The thread's own. */
    QUEUE_ALIGNED struct reclaim_list lists[3]; /* hazard: the first; epoch: by epoch modulo 3 */
    uint64_t since_advance;
};

/* Gives the memory that a word names back; `thread` is what was given to reclaim_retire. */
typedef void reclaim_release_fn(void *owner, void *thread, uint64_t word);

struct reclaim {
    enum reclaim_kind kind;
    bool cheap; /* light fences cost nothing */
    void *owner;
    reclaim_release_fn *release;
    uint64_t batch; /* how many a thread's list holds before it is looked through */
    QUEUE_ALIGNED uint64_t epoch;
    QUEUE_ALIGNED struct reclaim_thread threads[QUEUE_THREADS_MAX];
};

static inline void reclaim_init(struct reclaim *r, enum reclaim_kind kind, bool cheap,
                                uint64_t batch, reclaim_release_fn *release, void *owner)
{
    memset(r, 0, sizeof(*r));
    r->kind = kind;
    r->cheap = cheap;
    r->owner = owner;
    r->release = release;
    r->batch = batch;
    Q_STORE(&r->epoch, 2, relaxed);
}

QUEUE_INLINE void reclaim_list_add(struct reclaim_list *list, uint64_t word)
{
    if (Q_UNLIKELY(list->count == list->capacity)) {
        uint64_t capacity = list->capacity ? list->capacity * 2 : RECLAIM_BATCH;
        uint64_t *words = (uint64_t *)Q_ALLOC(capacity * sizeof(*words));
        if (!words)
            abort(); /* nowhere to keep it, and releasing it would be wrong */
        if (list->count)
            memcpy(words, list->words, list->count * sizeof(*words));
        Q_FREE(list->words);
        list->words = words;
        list->capacity = capacity;
    }
    list->words[list->count++] = word;
}

/* Takes a place for the calling thread; NULL when QUEUE_THREADS_MAX are taken. */
static inline struct reclaim_thread *reclaim_join(struct reclaim *r)
{
    for (size_t i = 0; i < QUEUE_THREADS_MAX; i++) {
        uint64_t unused = 0;
        /* Partner: the store in reclaim_leave; the lists of whoever had the place come along. */
        if (Q_LOAD(&r->threads[i].used, relaxed) == 0 &&
            Q_CAS(&r->threads[i].used, &unused, 1, acquire))
            return &r->threads[i];
    }
    return NULL;
}

/*
 * Writes the word that *place holds into a hazard slot; true when *place still holds it then, and
 * until the slot is written again nobody releases it.
 */
QUEUE_INLINE bool reclaim_protect(struct reclaim *r, struct reclaim_thread *t, unsigned slot,
                                  uint64_t word, const uint64_t *place, uint64_t expected)
{
    if (r->kind != RECLAIM_HAZARD)
        return true;
    /* Partner: the load of the slot in reclaim_scan.  Release: what this thread read from the
     * memory named before is over when another is named. */
    Q_STORE(&t->hazards[slot], word, release);
    /* Partner: the heavy fence in reclaim_scan.  Either the scan sees the slot, or this thread sees
     * that the place has changed. */
    Q_LIGHT(r->cheap);
    /* Partner: the store that made the place hold the word.  The same word may stand there for the
     * second time, naming memory that came round since the caller read it: what is in it now must
     * be seen, not what was in it then. */
    return Q_LOAD(place, acquire) == expected;
}

QUEUE_INLINE void reclaim_enter(struct reclaim *r, struct reclaim_thread *t)
{
    if (r->kind != RECLAIM_EPOCH)
        return;
    /* A guess, which the load below confirms or corrects. */
    uint64_t epoch = Q_LOAD(&r->epoch, relaxed);
    Q_FOREVER (epoch) {
        /* Partner: the load in reclaim_advance.  Release, as in reclaim_exit: who sees this thread
         * inside again may not have seen it outside (in C11 the store there would do, as both are
         * of one thread; in C++20 no longer). */
        Q_STORE(&t->inside, epoch * 2 + 1, release);
        /* Partner: the heavy fence in reclaim_advance.  Either it sees this thread inside, or this
         * thread sees everything that was taken out before. */
        Q_LIGHT(r->cheap);
        /* The epoch may have gone on before it was noted, by any number.  If it has not, it is at
         * most one ahead from here on: whoever starts the one after sees this thread inside.
         * reclaim_epoch_list stands on that.  Partner: the compare-and-swap in reclaim_advance:
         * what happened before this epoch began is over. */
        uint64_t now = Q_LOAD(&r->epoch, acquire);
        if (Q_LIKELY(now == epoch))
            return;
        epoch = now;
    }
}

QUEUE_INLINE void reclaim_exit(struct reclaim *r, struct reclaim_thread *t)
{
    /* Partner: the load in reclaim_advance; what was read inside is over. */
    if (r->kind == RECLAIM_EPOCH)
        Q_STORE(&t->inside, 0, release);
}

/* Releases what is in the first list and in no hazard slot. */
QUEUE_SLOW void reclaim_scan(struct reclaim *r, struct reclaim_thread *t, void *thread)
{
    uint64_t hazards[QUEUE_THREADS_MAX * RECLAIM_HAZARDS];
    size_t hazard_count = 0;
    /* Partner: the light fence in reclaim_protect. */
    Q_HEAVY(r->cheap);
    for (size_t i = 0; i < QUEUE_THREADS_MAX; i++) {
        for (size_t slot = 0; slot < RECLAIM_HAZARDS; slot++) {
            /* Partner: the store of the slot in reclaim_protect. */
            uint64_t word = Q_LOAD(&r->threads[i].hazards[slot], acquire);
            if (word)
                hazards[hazard_count++] = word;
        }
    }
    struct reclaim_list *list = &t->lists[0];
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        size_t h = 0;
        while (h < hazard_count && hazards[h] != list->words[i])
            h++;
        if (h < hazard_count)
            list->words[kept++] = list->words[i];
        else
            r->release(r->owner, thread, list->words[i]);
    }
    list->count = kept;
}

/* Starts the next epoch if every thread inside has noted the present one. */
QUEUE_SLOW void reclaim_advance(struct reclaim *r)
{
    uint64_t epoch = Q_LOAD(&r->epoch, relaxed);
    /* Partner: the light fence in reclaim_enter. */
    Q_HEAVY(r->cheap);
    for (size_t i = 0; i < QUEUE_THREADS_MAX; i++) {
        /* Partner: the stores in reclaim_exit and reclaim_enter. */
        uint64_t inside = Q_LOAD(&r->threads[i].inside, acquire);
        if (inside != 0 && inside != epoch * 2 + 1)
            return;
    }
    /* Partner: the load of the epoch in reclaim_enter: who sees the new epoch comes after
     * everything that was seen here. */
    Q_CAS(&r->epoch, &epoch, epoch + 1, release);
}

/*
 * The list for what is taken out now, by a thread inside.  As long as it is inside, having noted
 * epoch e, the epoch is e or e + 1, and so is what any other thread inside has noted that may know
 * the memory; it is therefore labelled e + 1, and released by a thread that enters in e + 3 or
 * later: to get there, every thread that was inside with e + 1 has left.
 */
QUEUE_INLINE struct reclaim_list *reclaim_epoch_list(struct reclaim *r, struct reclaim_thread *t,
                                                     void *thread)
{
    uint64_t epoch = t->inside / 2;
    for (unsigned i = 0; i < 3; i++) {
        struct reclaim_list *list = &t->lists[i];
        if (Q_LIKELY(list->count == 0 || list->epoch + 2 > epoch))
            continue;
        for (size_t k = 0; k < list->count; k++)
            r->release(r->owner, thread, list->words[k]);
        list->count = 0;
    }
    struct reclaim_list *list = &t->lists[(epoch + 1) % 3];
    list->epoch = epoch + 1;
    return list;
}

/* The memory was taken out: nobody can find it any more who does not know it already.  To be called
 * between reclaim_enter and reclaim_exit. */
QUEUE_INLINE void reclaim_retire(struct reclaim *r, struct reclaim_thread *t, void *thread,
                                 uint64_t word)
{
    if (r->kind == RECLAIM_HAZARD) {
        reclaim_list_add(&t->lists[0], word);
        if (Q_UNLIKELY(t->lists[0].count >= r->batch))
            reclaim_scan(r, t, thread);
    } else if (r->kind == RECLAIM_EPOCH) {
        reclaim_list_add(reclaim_epoch_list(r, t, thread), word);
        if (Q_UNLIKELY(++t->since_advance >= r->batch)) {
            t->since_advance = 0;
            reclaim_advance(r);
        }
    } else {
        r->release(r->owner, thread, word);
    }
}

/* Gives the place up, outside of any operation.  What cannot be released yet stays for the next
 * thread that takes it. */
static inline void reclaim_leave(struct reclaim *r, struct reclaim_thread *t, void *thread)
{
    /* Partner: the load of the slot in reclaim_scan; what was read of the memory named is over. */
    for (unsigned i = 0; i < RECLAIM_HAZARDS; i++)
        Q_STORE(&t->hazards[i], 0, release);
    if (r->kind == RECLAIM_HAZARD && t->lists[0].count)
        reclaim_scan(r, t, thread);
    for (unsigned i = 0; r->kind == RECLAIM_EPOCH && i < 4; i++) {
        reclaim_enter(r, t);
        reclaim_epoch_list(r, t, thread);
        reclaim_exit(r, t);
        reclaim_advance(r);
    }
    /* Partner: the compare-and-swap in reclaim_join. */
    Q_STORE(&t->used, 0, release);
}

/* When no thread is inside any more: releases everything. */
static inline void reclaim_done(struct reclaim *r, void *thread)
{
    for (size_t i = 0; i < QUEUE_THREADS_MAX; i++) {
        for (unsigned k = 0; k < 3; k++) {
            struct reclaim_list *list = &r->threads[i].lists[k];
            for (size_t n = 0; n < list->count; n++)
                r->release(r->owner, thread, list->words[n]);
            Q_FREE(list->words);
            memset(list, 0, sizeof(*list));
        }
    }
}

#endif

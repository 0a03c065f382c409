/* SPDX-License-Identifier: MIT */
/*
 * mutex: a bounded ring under one lock, with condition variables to wait at; the measure of what
 * the other queues gain.
 *
 * Progress   blocking: whoever holds the lock and stops, stops all.
 * Order      first in, first out; linearizable: everything happens under the lock.
 * Memory     mutex_bytes(), allocated by the caller; it may lie in memory that processes share.
 * Failure    try_ calls fail only when the ring is full or empty.
 * Death      in a process that shares it: the lock is robust, and the ring is whole between any two
 *            stores, because `tail` and `head` are written last; the next one goes on.
 */
#ifndef ASSAY_QUEUE_MUTEX_H
#define ASSAY_QUEUE_MUTEX_H

#include "atomics.h"

#include <errno.h>
#include <pthread.h>

struct mutex_ring {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    uint64_t capacity, head, tail, item_bytes;
    QUEUE_ALIGNED uint64_t slots[];
};

static inline size_t mutex_bytes(uint64_t capacity, size_t item_bytes)
{
    return sizeof(struct mutex_ring) + (capacity ? capacity : 1) * item_bytes;
}

static inline struct mutex_ring *mutex_init(void *memory, uint64_t capacity, size_t item_bytes)
{
    struct mutex_ring *q = memory;
    pthread_mutexattr_t lock;
    pthread_condattr_t condition;
    memset(q, 0, sizeof(*q));
    q->capacity = capacity ? capacity : 1;
    q->item_bytes = item_bytes;
    pthread_mutexattr_init(&lock);
    pthread_mutexattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&lock, PTHREAD_MUTEX_ROBUST);
    pthread_condattr_init(&condition);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&q->lock, &lock);
    pthread_cond_init(&q->not_empty, &condition);
    pthread_cond_init(&q->not_full, &condition);
    pthread_mutexattr_destroy(&lock);
    pthread_condattr_destroy(&condition);
    return q;
}

static inline void mutex_done(struct mutex_ring *q)
{
    pthread_cond_destroy(&q->not_empty);
    pthread_cond_destroy(&q->not_full);
    pthread_mutex_destroy(&q->lock);
}

static inline void mutex_lock(struct mutex_ring *q)
{
    if (pthread_mutex_lock(&q->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&q->lock);
}

/* Pushes the first of `count` items that there is room for, waiting for room for one when
 * `wait`. */
static inline size_t mutex_push_some(struct mutex_ring *q, const void *items, size_t count,
                                     size_t bytes, bool wait)
{
    mutex_lock(q);
    while (wait && q->tail - q->head == q->capacity)
        if (pthread_cond_wait(&q->not_full, &q->lock) == EOWNERDEAD)
            pthread_mutex_consistent(&q->lock);
    uint64_t room = q->capacity - (q->tail - q->head);
    size_t taken = count < room ? count : room;
    bool was_empty = q->tail == q->head;
    for (size_t i = 0; i < taken; i++)
        queue_copy_in(&q->slots[(q->tail + i) % q->capacity * (bytes / 8)],
                      (const char *)items + i * bytes, bytes);
    q->tail += taken;
    if (taken && (was_empty || taken > 1))
        pthread_cond_broadcast(&q->not_empty);
    else if (taken)
        pthread_cond_signal(&q->not_empty);
    pthread_mutex_unlock(&q->lock);
    return taken;
}

static inline size_t mutex_pop_some(struct mutex_ring *q, void *items, size_t count, size_t bytes,
                                    bool wait)
{
    mutex_lock(q);
    while (wait && q->tail == q->head)
        if (pthread_cond_wait(&q->not_empty, &q->lock) == EOWNERDEAD)
            pthread_mutex_consistent(&q->lock);
    uint64_t there = q->tail - q->head;
    size_t taken = count < there ? count : there;
    for (size_t i = 0; i < taken; i++)
        queue_copy_out((char *)items + i * bytes,
                       &q->slots[(q->head + i) % q->capacity * (bytes / 8)], bytes);
    q->head += taken;
    if (taken > 1)
        pthread_cond_broadcast(&q->not_full);
    else if (taken)
        pthread_cond_signal(&q->not_full);
    pthread_mutex_unlock(&q->lock);
    return taken;
}

static inline bool mutex_try_push(struct mutex_ring *q, const void *item, size_t bytes)
{
    return mutex_push_some(q, item, 1, bytes, false) == 1;
}

static inline bool mutex_try_pop(struct mutex_ring *q, void *item, size_t bytes)
{
    return mutex_pop_some(q, item, 1, bytes, false) == 1;
}

#endif

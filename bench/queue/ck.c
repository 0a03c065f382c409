/* SPDX-License-Identifier: MIT */
/* Concurrency Kit: ck_ring and ck_fifo, as their documentation shows their use. */
#include "nodes.h"
#include "rivals.h"

#include "base/memory.h"

#include <errno.h>

#include <ck_fifo.h>
#include <ck_ring.h>

struct ring {
    ck_ring_t ring;
    ck_ring_buffer_t *buffer;
};

static int ring_create(struct load *load, void **ret_queue, struct error *err)
{
    (void)err;
    unsigned size = (unsigned)queue_power_of_two(load->settings.capacity);
    struct ring *q = aligned_alloc(64, (sizeof(*q) + 63) / 64 * 64);
    q->buffer = aligned_alloc(64, size * sizeof(*q->buffer) + 64);
    memset(q->buffer, 0, size * sizeof(*q->buffer));
    ck_ring_init(&q->ring, size);
    *ret_queue = q;
    return 0;
}

static void ring_destroy(struct load *load, void *queue)
{
    (void)load;
    struct ring *q = queue;
    free(q->buffer);
    free(q);
}

#define RING_OPERATIONS(kind)                                                         \
    static inline size_t ring_push_##kind(void *queue, const uint64_t *item)          \
    {                                                                                 \
        struct ring *q = queue;                                                       \
        return ck_ring_enqueue_##kind(&q->ring, q->buffer, (void *)(uintptr_t)*item); \
    }                                                                                 \
    static inline size_t ring_pop_##kind(void *queue, uint64_t *item)                 \
    {                                                                                 \
        struct ring *q = queue;                                                       \
        return ck_ring_dequeue_##kind(&q->ring, q->buffer, (void *)item);             \
    }
RING_OPERATIONS(spsc)
RING_OPERATIONS(mpmc)

#define DRIVER ring_spsc
#define DRIVER_PUSH(q, t, items, count, bytes) ((void)(t), ring_push_spsc(q, items))
#define DRIVER_POP(q, t, items, count, bytes) ((void)(t), ring_pop_spsc(q, items))
#include "driver.h"

const struct load_driver rival_ck_ring_spsc = {.name = "ck_ring_spsc",
                                               .is_bounded = true,
                                               .producers_max = 1,
                                               .consumers_max = 1,
                                               .create = ring_create,
                                               .destroy = ring_destroy,
                                               .produce = ring_spsc_produce,
                                               .consume = ring_spsc_consume,
                                               .ping = ring_spsc_ping};

#define DRIVER ring_mpmc
#define DRIVER_PUSH(q, t, items, count, bytes) ((void)(t), ring_push_mpmc(q, items))
#define DRIVER_POP(q, t, items, count, bytes) ((void)(t), ring_pop_mpmc(q, items))
#include "driver.h"

const struct load_driver rival_ck_ring_mpmc = {.name = "ck_ring_mpmc",
                                               .is_bounded = true,
                                               .create = ring_create,
                                               .destroy = ring_destroy,
                                               .produce = ring_mpmc_produce,
                                               .consume = ring_mpmc_consume,
                                               .ping = ring_mpmc_ping};

/* The single producer takes entries that the consumer is done with back, as the manual shows. */
static int fifo_spsc_create(struct load *load, void **ret_queue, struct error *err)
{
    (void)load;
    (void)err;
    struct ck_fifo_spsc *q = aligned_alloc(64, (sizeof(*q) + 63) / 64 * 64);
    ck_fifo_spsc_init(q, memory_zalloc(1, sizeof(struct ck_fifo_spsc_entry)));
    *ret_queue = q;
    return 0;
}

static void fifo_spsc_destroy(struct load *load, void *queue)
{
    (void)load;
    struct ck_fifo_spsc_entry *entry;
    ck_fifo_spsc_deinit(queue, &entry);
    while (entry) {
        struct ck_fifo_spsc_entry *next = entry->next;
        free(entry);
        entry = next;
    }
    free(queue);
}

static inline size_t fifo_spsc_push(struct ck_fifo_spsc *q, const uint64_t *item)
{
    struct ck_fifo_spsc_entry *entry = ck_fifo_spsc_recycle(q);
    if (!entry)
        entry = malloc(sizeof(*entry));
    ck_fifo_spsc_enqueue(q, entry, (void *)(uintptr_t)*item);
    return 1;
}

#define DRIVER fifo_spsc
#define DRIVER_PUSH(q, t, items, count, bytes) ((void)(t), fifo_spsc_push(q, items))
#define DRIVER_POP(q, t, items, count, bytes) ((void)(t), (size_t)ck_fifo_spsc_dequeue(q, items))
#include "driver.h"

const struct load_driver rival_ck_fifo_spsc = {.name = "ck_fifo_spsc",
                                               .producers_max = 1,
                                               .consumers_max = 1,
                                               .create = fifo_spsc_create,
                                               .destroy = fifo_spsc_destroy,
                                               .produce = fifo_spsc_produce,
                                               .consume = fifo_spsc_consume,
                                               .ping = fifo_spsc_ping};

/* Its entries must stay of one type for ever: they come from the same cached pool that our ms uses
 * (a free entry's link lies in the gap behind its value). */
struct fifo {
    struct ck_fifo_mpmc fifo;
    struct nodes nodes;
};
_Static_assert(offsetof(struct ck_fifo_mpmc_entry, next) == 16, "a gap for the link of free nodes");

static int fifo_create(struct load *load, void **ret_queue, struct error *err)
{
    (void)load;
    struct fifo *q = aligned_alloc(64, (sizeof(*q) + 63) / 64 * 64);
    struct nodes_thread t = {0};
    int code = nodes_init(&q->nodes, NODES_CACHE, sizeof(struct ck_fifo_mpmc_entry) - 8, 1 << 26);
    if (code < 0)
        return error_errno(err, code, "nodes");
    ck_fifo_mpmc_init(&q->fifo, (void *)nodes_get(&q->nodes, &t));
    nodes_leave(&q->nodes, &t);
    *ret_queue = q;
    return 0;
}

static void fifo_destroy(struct load *load, void *queue)
{
    (void)load;
    struct fifo *q = queue;
    nodes_done(&q->nodes);
    free(q);
}

static void *fifo_join(void *queue)
{
    (void)queue;
    return memory_zalloc(1, 64 + sizeof(struct nodes_thread));
}

static void fifo_leave(void *queue, void *thread)
{
    struct fifo *q = queue;
    nodes_leave(&q->nodes, thread);
    free(thread);
}

static inline size_t fifo_push(struct fifo *q, void *t, const uint64_t *item)
{
    struct node *node = nodes_get(&q->nodes, t);
    if (node)
        ck_fifo_mpmc_enqueue(&q->fifo, (void *)node, (void *)(uintptr_t)*item);
    return node != NULL;
}

static inline size_t fifo_pop(struct fifo *q, void *t, uint64_t *item)
{
    struct ck_fifo_mpmc_entry *garbage;
    if (!ck_fifo_mpmc_dequeue(&q->fifo, item, &garbage))
        return 0;
    nodes_put(&q->nodes, t, (struct node *)(void *)garbage);
    return 1;
}

#define DRIVER fifo
#define DRIVER_PUSH(q, t, items, count, bytes) fifo_push(q, t, items)
#define DRIVER_POP(q, t, items, count, bytes) fifo_pop(q, t, items)
#include "driver.h"

const struct load_driver rival_ck_fifo_mpmc = {.name = "ck_fifo_mpmc",
                                               .create = fifo_create,
                                               .destroy = fifo_destroy,
                                               .join = fifo_join,
                                               .leave = fifo_leave,
                                               .produce = fifo_produce,
                                               .consume = fifo_consume,
                                               .ping = fifo_ping};

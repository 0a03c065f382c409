/* SPDX-License-Identifier: MIT */
/*
 * A floor for single items between one producer and one consumer: a bare ring whose slots are their
 * own flags.  A word that is not 0 is an item; so 0 cannot be one, there are no batches and no
 * capacity that can be asked for.  Nothing that does more can be faster.
 */
#include "rivals.h"

#include "base/memory.h"

struct slots {
    uint64_t mask;
    QUEUE_ALIGNED uint64_t tail;
    QUEUE_ALIGNED uint64_t head;
    QUEUE_ALIGNED uint64_t ring[];
};

static int slots_create(struct load *load, void **ret_queue, struct error *err)
{
    (void)err;
    uint64_t count = queue_power_of_two(load->settings.capacity);
    struct slots *q = aligned_alloc(QUEUE_LINE, sizeof(*q) + count * 8 + QUEUE_LINE);
    memset(q, 0, sizeof(*q) + count * 8);
    q->mask = count - 1;
    *ret_queue = q;
    return 0;
}

static void slots_destroy(struct load *load, void *queue)
{
    (void)load;
    free(queue);
}

/* The load's items begin with 0: each is stored as one more. */
QUEUE_INLINE size_t slots_push(struct slots *q, const uint64_t *item)
{
    uint64_t *slot = &q->ring[q->tail & q->mask];
    if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) != 0)
        return 0;
    __atomic_store_n(slot, *item + 1, __ATOMIC_RELEASE);
    q->tail++;
    return 1;
}

QUEUE_INLINE size_t slots_pop(struct slots *q, uint64_t *item)
{
    uint64_t *slot = &q->ring[q->head & q->mask], word = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (word == 0)
        return 0;
    *item = word - 1;
    __atomic_store_n(slot, 0, __ATOMIC_RELEASE);
    q->head++;
    return 1;
}

#define DRIVER slots
#define DRIVER_PUSH(q, t, items, count, bytes) ((void)(t), slots_push((struct slots *)(q), items))
#define DRIVER_POP(q, t, items, count, bytes) ((void)(t), slots_pop((struct slots *)(q), items))
#include "driver.h"

const struct load_driver rival_slots = {.name = "slots",
                                        .is_bounded = true,
                                        .producers_max = 1,
                                        .consumers_max = 1,
                                        .create = slots_create,
                                        .destroy = slots_destroy,
                                        .produce = slots_produce,
                                        .consume = slots_consume,
                                        .ping = slots_ping};

/* SPDX-License-Identifier: MIT */
/* liburcu's wait-free concurrent queue: pushes are wait-free, pops take its lock where there are
 * several consumers.  Nodes are allocated and freed with malloc, as its examples do. */
#include "base/memory.h"
#include "rivals.h"

#include <urcu/wfcqueue.h>

struct wfcqueue {
    struct cds_wfcq_head head;
    char gap[64];
    struct cds_wfcq_tail tail;
};

struct wfcqueue_node {
    struct cds_wfcq_node node;
    uint64_t value;
};

static bool alone; /* one consumer, set before the threads start */

static int wfcqueue_create(struct load *load, void **ret_queue, struct error *err)
{
    (void)err;
    struct wfcqueue *q = aligned_alloc(64, (sizeof(*q) + 63) / 64 * 64);
    cds_wfcq_init(&q->head, &q->tail);
    alone = load->settings.consumers == 1;
    *ret_queue = q;
    return 0;
}

static void wfcqueue_destroy(struct load *load, void *queue)
{
    (void)load;
    struct wfcqueue *q = queue;
    cds_wfcq_destroy(&q->head, &q->tail);
    free(q);
}

static inline size_t wfcqueue_push(struct wfcqueue *q, const uint64_t *item)
{
    struct wfcqueue_node *node = malloc(sizeof(*node));
    cds_wfcq_node_init(&node->node);
    node->value = *item;
    cds_wfcq_enqueue(&q->head, &q->tail, &node->node);
    return 1;
}

static inline size_t wfcqueue_pop(struct wfcqueue *q, uint64_t *item)
{
    struct cds_wfcq_node *found = alone ? __cds_wfcq_dequeue_blocking(&q->head, &q->tail)
                                        : cds_wfcq_dequeue_blocking(&q->head, &q->tail);
    if (!found)
        return 0;
    struct wfcqueue_node *node = caa_container_of(found, struct wfcqueue_node, node);
    *item = node->value;
    free(node);
    return 1;
}

#define DRIVER wfcqueue
#define DRIVER_PUSH(q, t, items, count, bytes) ((void)(t), wfcqueue_push(q, items))
#define DRIVER_POP(q, t, items, count, bytes) ((void)(t), wfcqueue_pop(q, items))
#include "driver.h"

const struct load_driver rival_urcu_wfcqueue = {.name = "urcu_wfcqueue",
                                                .create = wfcqueue_create,
                                                .destroy = wfcqueue_destroy,
                                                .produce = wfcqueue_produce,
                                                .consume = wfcqueue_consume,
                                                .ping = wfcqueue_ping};

/* SPDX-License-Identifier: MIT */
/* DPDK's rte_ring, for single and for many producers and consumers, in memory of our own. */
#include "base/memory.h"
#include "rivals.h"

#include <rte_ring.h>

static int create(struct load *load, void **ret_queue, unsigned flags, struct error *err)
{
    unsigned count = (unsigned)queue_power_of_two(load->settings.capacity);
    size_t bytes = (size_t)rte_ring_get_memsize(count);
    struct rte_ring *r = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(r, 0, bytes); /* the pages are there before the clock starts */
    int code = rte_ring_init(r, "bench", count, flags);
    if (code < 0)
        return error_errno(err, code, "rte_ring_init");
    *ret_queue = r;
    return 0;
}

static int create_sp(struct load *load, void **ret_queue, struct error *err)
{
    return create(load, ret_queue, RING_F_SP_ENQ | RING_F_SC_DEQ, err);
}

static int create_mp(struct load *load, void **ret_queue, struct error *err)
{
    return create(load, ret_queue, 0, err);
}

static void destroy(struct load *load, void *queue)
{
    (void)load;
    free(queue);
}

#define DRIVER rte_sp
#define DRIVER_PUSH(q, t, items, count, bytes) \
    ((void)(t), (size_t)rte_ring_sp_enqueue_burst(q, (void *)(items), (unsigned)(count), NULL))
#define DRIVER_POP(q, t, items, count, bytes) \
    ((void)(t), (size_t)rte_ring_sc_dequeue_burst(q, (void *)(items), (unsigned)(count), NULL))
#include "driver.h"

const struct load_driver rival_rte_ring_sp = {.name = "rte_ring_sp",
                                              .is_bounded = true,
                                              .producers_max = 1,
                                              .consumers_max = 1,
                                              .create = create_sp,
                                              .destroy = destroy,
                                              .produce = rte_sp_produce,
                                              .consume = rte_sp_consume,
                                              .ping = rte_sp_ping};

#define DRIVER rte_mp
#define DRIVER_PUSH(q, t, items, count, bytes) \
    ((void)(t), (size_t)rte_ring_mp_enqueue_burst(q, (void *)(items), (unsigned)(count), NULL))
#define DRIVER_POP(q, t, items, count, bytes) \
    ((void)(t), (size_t)rte_ring_mc_dequeue_burst(q, (void *)(items), (unsigned)(count), NULL))
#include "driver.h"

const struct load_driver rival_rte_ring_mp = {.name = "rte_ring_mp",
                                              .is_bounded = true,
                                              .create = create_mp,
                                              .destroy = destroy,
                                              .produce = rte_mp_produce,
                                              .consume = rte_mp_consume,
                                              .ping = rte_mp_ping};

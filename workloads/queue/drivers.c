/* SPDX-License-Identifier: MIT */
/* This folder's queues under load. */
#include "base/memory.h"
#include "base/strings.h"
#include "eventfd.h"
#include "faa.h"
#include "load.h"
#include "ms.h"
#include "mutex.h"
#include "pipe.h"
#include "spsc.h"

#include <errno.h>
#include <sys/mman.h>

#define NODES_MAX (1ULL << 28)

/* The pages are there before the clock starts. */
static void *get_memory(size_t bytes, struct error *err)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        error_errno(err, -errno, "%zu bytes for the queue", bytes);
        return NULL;
    }
    return memory;
}

static int refuse_nodes(const struct load_settings *s, struct error *err)
{
    if (s->nodes || s->reclaim)
        return error_set(err, -EINVAL, "--queue %s has no nodes: --%s is for --queue ms", s->queue,
                         s->nodes ? "nodes" : "reclaim");
    return 0;
}

#define DRIVER spsc
#define DRIVER_PUSH(q, t, items, count, bytes)                        \
    ((void)(t), (count) == 1 ? (size_t)spsc_try_push(q, items, bytes) \
                             : spsc_push_some(q, items, count, bytes))
#define DRIVER_POP(q, t, items, count, bytes) \
    ((void)(t),                               \
     (count) == 1 ? (size_t)spsc_try_pop(q, items, bytes) : spsc_pop_some(q, items, count, bytes))
#include "driver.h"

static int spsc_create(struct load *load, void **ret_queue, struct error *err)
{
    const struct load_settings *s = &load->settings;
    void *memory = get_memory(spsc_bytes(s->capacity, s->payload_bytes), err);
    if (!memory)
        return err->code;
    *ret_queue = spsc_init(memory, s->capacity, s->payload_bytes);
    return 0;
}

static void spsc_destroy(struct load *load, void *queue)
{
    munmap(queue, spsc_bytes(load->settings.capacity, load->settings.payload_bytes));
}

static const struct load_driver driver_spsc = {.name = "spsc",
                                               .is_bounded = true,
                                               .producers_max = 1,
                                               .consumers_max = 1,
                                               .check = refuse_nodes,
                                               .create = spsc_create,
                                               .destroy = spsc_destroy,
                                               .produce = spsc_produce,
                                               .consume = spsc_consume,
                                               .ping = spsc_ping};

#define DRIVER mpmc
#define DRIVER_PUSH(q, t, items, count, bytes)                         \
    ((void)(t), (count) == 1 ? (size_t)mpmc_poll_push(q, items, bytes) \
                             : mpmc_push_batch(q, items, count, bytes))
#define DRIVER_POP(q, t, items, count, bytes)                         \
    ((void)(t), (count) == 1 ? (size_t)mpmc_poll_pop(q, items, bytes) \
                             : mpmc_pop_batch(q, items, count, bytes))
#include "driver.h"

static int mpmc_create(struct load *load, void **ret_queue, struct error *err)
{
    const struct load_settings *s = &load->settings;
    void *memory = get_memory(mpmc_bytes(s->capacity, s->payload_bytes), err);
    if (!memory)
        return err->code;
    *ret_queue = mpmc_init(memory, s->capacity, s->payload_bytes);
    return 0;
}

static void mpmc_destroy(struct load *load, void *queue)
{
    munmap(queue, mpmc_bytes(load->settings.capacity, load->settings.payload_bytes));
}

static const struct load_driver driver_mpmc = {.name = "mpmc",
                                               .is_bounded = true,
                                               .check = refuse_nodes,
                                               .create = mpmc_create,
                                               .destroy = mpmc_destroy,
                                               .produce = mpmc_produce,
                                               .consume = mpmc_consume,
                                               .ping = mpmc_ping};

#define DRIVER faa
#define DRIVER_PUSH(q, t, items, count, bytes) faa_push_some(q, t, items, count, bytes)
#define DRIVER_POP(q, t, items, count, bytes) faa_pop_some(q, t, items, count, bytes)
#include "driver.h"

static int faa_create(struct load *load, void **ret_queue, struct error *err)
{
    struct faa *q = aligned_alloc(QUEUE_LINE, sizeof(*q));
    if (!q || !faa_init(q, load->settings.payload_bytes)) {
        free(q);
        return error_set(err, -ENOMEM, "no memory for the queue");
    }
    *ret_queue = q;
    return 0;
}

static void faa_destroy(struct load *load, void *queue)
{
    (void)load;
    faa_done(queue);
    free(queue);
}

static void *faa_join_thread(void *queue)
{
    struct faa_thread *t = aligned_alloc(QUEUE_LINE, sizeof(*t));
    if (t && !faa_join(queue, t)) {
        free(t);
        return NULL;
    }
    return t;
}

static void faa_leave_thread(void *queue, void *thread)
{
    faa_leave(queue, thread);
    free(thread);
}

static const struct load_driver driver_faa = {.name = "faa",
                                              .check = refuse_nodes,
                                              .create = faa_create,
                                              .destroy = faa_destroy,
                                              .join = faa_join_thread,
                                              .leave = faa_leave_thread,
                                              .produce = faa_produce,
                                              .consume = faa_consume,
                                              .ping = faa_ping};

#define DRIVER ms
#define DRIVER_PUSH(q, t, items, count, bytes)                         \
    ((count) == 1 ? (size_t)ms_push((struct ms *)(q), t, items, bytes) \
                  : ms_push_some((struct ms *)(q), t, items, count, bytes))
#define DRIVER_POP(q, t, items, count, bytes) ms_pop_some((struct ms *)(q), t, items, count, bytes)
#include "driver.h"

static const char *const node_names[] = {"malloc", "pool", "cache"};
static const char *const reclaim_names[] = {"hazard", "epoch", "tagged"};

static int find_name(const char *option, const char *name, const char *const names[3],
                     const char *fallback, struct error *err)
{
    for (int i = 0; i < 3; i++)
        if (str_eq(names[i], name ? name : fallback))
            return i;
    return error_set(err, -EINVAL, "--%s must be %s, %s or %s, not '%s'", option, names[0],
                     names[1], names[2], name);
}

static int ms_check(const struct load_settings *s, struct error *err)
{
    int nodes = find_name("nodes", s->nodes, node_names, "cache", err);
    int reclaim =
        nodes < 0 ? nodes : find_name("reclaim", s->reclaim, reclaim_names, "hazard", err);
    if (reclaim < 0)
        return reclaim;
    if (nodes == NODES_MALLOC && reclaim == RECLAIM_TAGGED)
        return error_set(err, -EINVAL,
                         "--reclaim tagged needs memory that keeps its type: --nodes malloc may "
                         "reuse a node's memory for something else; use --nodes pool or cache");
    return 0;
}

static int ms_create(struct load *load, void **ret_queue, struct error *err)
{
    const struct load_settings *s = &load->settings;
    int nodes = find_name("nodes", s->nodes, node_names, "cache", err);
    int reclaim = find_name("reclaim", s->reclaim, reclaim_names, "hazard", err);
    struct ms *q = aligned_alloc(QUEUE_LINE, sizeof(*q));
    int code =
        q ? nodes_init(&q->nodes, (enum nodes_kind)nodes, s->payload_bytes, NODES_MAX) : -ENOMEM;
    if (code == 0 && !ms_init(q, (enum reclaim_kind)reclaim, load->cheap, RECLAIM_BATCH))
        code = -ENOMEM;
    if (code < 0) {
        free(q);
        return error_errno(err, code, "nodes for the queue");
    }
    *ret_queue = q;
    return 0;
}

static void ms_destroy(struct load *load, void *queue)
{
    (void)load;
    ms_done(queue);
    free(queue);
}

static void *ms_join_thread(void *queue)
{
    struct ms_thread *t = aligned_alloc(QUEUE_LINE, sizeof(*t));
    if (t && !ms_join(queue, t)) {
        free(t);
        return NULL;
    }
    return t;
}

static void ms_leave_thread(void *queue, void *thread)
{
    ms_leave(queue, thread);
    free(thread);
}

static const struct load_driver driver_ms = {.name = "ms",
                                             .check = ms_check,
                                             .create = ms_create,
                                             .destroy = ms_destroy,
                                             .join = ms_join_thread,
                                             .leave = ms_leave_thread,
                                             .produce = ms_produce,
                                             .consume = ms_consume,
                                             .ping = ms_ping};

#define DRIVER mutex
#define DRIVER_PUSH(q, t, items, count, bytes) \
    ((void)(t), mutex_push_some(q, items, count, bytes, false))
#define DRIVER_POP(q, t, items, count, bytes) \
    ((void)(t), mutex_pop_some(q, items, count, bytes, false))
#include "driver.h"

static int mutex_create(struct load *load, void **ret_queue, struct error *err)
{
    const struct load_settings *s = &load->settings;
    void *memory = get_memory(mutex_bytes(s->capacity, s->payload_bytes), err);
    if (!memory)
        return err->code;
    *ret_queue = mutex_init(memory, s->capacity, s->payload_bytes);
    return 0;
}

static void mutex_destroy(struct load *load, void *queue)
{
    mutex_done(queue);
    munmap(queue, mutex_bytes(load->settings.capacity, load->settings.payload_bytes));
}

static const struct load_driver driver_mutex = {.name = "mutex",
                                                .is_bounded = true,
                                                .check = refuse_nodes,
                                                .create = mutex_create,
                                                .destroy = mutex_destroy,
                                                .produce = mutex_produce,
                                                .consume = mutex_consume,
                                                .ping = mutex_ping};

#define DRIVER pipe
#define DRIVER_PUSH(q, t, items, count, bytes) \
    ((void)(t), pipe_push_some(q, items, count, bytes, false))
#define DRIVER_POP(q, t, items, count, bytes) \
    ((void)(t), pipe_pop_some(q, items, count, bytes, false))
#include "driver.h"

static int pipe_check(const struct load_settings *s, struct error *err)
{
    if (!pipe_item_bytes_valid(s->payload_bytes))
        return error_set(err, -EINVAL,
                         "--queue pipe keeps items whole only when --payload is a power of two up "
                         "to %d",
                         PIPE_BUF);
    return refuse_nodes(s, err);
}

static int pipe_create(struct load *load, void **ret_queue, struct error *err)
{
    const struct load_settings *s = &load->settings;
    struct pipe_queue *q = memory_alloc(sizeof(*q));
    int code = pipe_init(q, s->capacity * s->payload_bytes);
    if (code < 0) {
        free(q);
        return error_errno(err, code, "pipe");
    }
    *ret_queue = q;
    return 0;
}

static void pipe_destroy(struct load *load, void *queue)
{
    (void)load;
    pipe_done(queue);
    free(queue);
}

static const struct load_driver driver_pipe = {.name = "pipe",
                                               .is_bounded = true,
                                               .check = pipe_check,
                                               .create = pipe_create,
                                               .destroy = pipe_destroy,
                                               .produce = pipe_produce,
                                               .consume = pipe_consume,
                                               .ping = pipe_ping};

#define DRIVER eventfd
#define DRIVER_PUSH(q, t, items, count, bytes) \
    ((void)(t), eventfd_push_some(q, items, count, bytes, false))
#define DRIVER_POP(q, t, items, count, bytes) \
    ((void)(t), eventfd_pop_some(q, items, count, bytes, false))
#include "driver.h"

static int eventfd_create(struct load *load, void **ret_queue, struct error *err)
{
    const struct load_settings *s = &load->settings;
    struct eventfd_queue *q = memory_alloc(sizeof(*q));
    void *memory = get_memory(mpmc_bytes(s->capacity, s->payload_bytes), err);
    int code = memory ? eventfd_queue_init(q, memory, s->capacity, s->payload_bytes) : err->code;
    if (code < 0) {
        free(q);
        return error_errno(err, code, "eventfd");
    }
    *ret_queue = q;
    return 0;
}

static void eventfd_destroy(struct load *load, void *queue)
{
    struct eventfd_queue *q = queue;
    eventfd_queue_done(q);
    munmap(q->ring, mpmc_bytes(load->settings.capacity, load->settings.payload_bytes));
    free(q);
}

static const struct load_driver driver_eventfd = {.name = "eventfd",
                                                  .is_bounded = true,
                                                  .check = refuse_nodes,
                                                  .create = eventfd_create,
                                                  .destroy = eventfd_destroy,
                                                  .produce = eventfd_produce,
                                                  .consume = eventfd_consume,
                                                  .ping = eventfd_ping};

const struct load_driver *const load_drivers[] = {&driver_spsc,    &driver_mpmc,  &driver_faa,
                                                  &driver_ms,      &driver_mutex, &driver_pipe,
                                                  &driver_eventfd, NULL};

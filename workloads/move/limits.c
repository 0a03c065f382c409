/* SPDX-License-Identifier: MIT */
/*
 * What no socket can beat: messages through shared memory (shm-ring), and copying alone (memcpy
 * between two buffers that stay in the cache, memcpy-cold through more memory than a cache holds).
 */
#include "base/memory.h"
#include "settings.h"
#include "shm_ring.h"
#include "variants.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Larger than the caches of one core and smaller than the one that cores share: the reader then
 * takes most lines from there and not out of the writer's cache, which is several times slower. */
#define RING_BYTES (8UL << 20)
#define COLD_BYTES (256UL << 20)
#define COPIES_COUNTED 64
#define LOOK_MS 50 /* how long a waiting end does not look at stop */

static size_t ring_bytes(const struct settings *s)
{
    return s->buffer_bytes ? s->buffer_bytes : RING_BYTES;
}

static size_t ring_needs(const struct settings *s)
{
    return shm_ring_shared_bytes(ring_bytes(s), s->size);
}

static int open_ring(struct link *l, bool is_writer)
{
    struct shm_ring_end *e = memory_zalloc(1, sizeof(*e));
    shm_ring_open(e, l->shared, ring_bytes(l->settings), l->message_bytes, is_writer);
    l->state = e;
    return 0;
}

static int open_ring_send(struct link *l, struct error *err)
{
    int r = source_open(l, SOURCE_PACKED, 1, false, err);
    return r < 0 ? r : open_ring(l, true);
}

static bool is_stopped(const struct link *l)
{
    return atomic_load_explicit(l->stop, memory_order_relaxed);
}

static int run_ring_send(struct link *l, struct error *err)
{
    struct shm_ring_end *e = l->state;
    const char *message = l->source.base;
    const uint64_t batch = l->settings->batch;
    uint64_t unpublished = 0;
    while (link_going(l)) {
        source_fill(l, 0);
        void *to = shm_ring_claim(e, LOOK_MS);
        if (!to) {
            if (shm_ring_is_closed(e))
                return link_failed(l, "the ring", -EPIPE, err);
            continue;
        }
        memcpy(to, message, l->message_bytes);
        shm_ring_wrote(e);
        if (++unpublished == batch) {
            shm_ring_publish(e);
            unpublished = 0;
        }
        link_count(l, 1, l->message_bytes, 0);
    }
    shm_ring_flush(e);
    return 0;
}

static int close_ring(struct link *l, struct error *err)
{
    (void)err;
    if (l->state)
        shm_ring_close(l->state);
    free(l->state);
    l->state = NULL;
    source_close(l);
    return 0;
}

struct ring_reader {
    struct shm_ring_end end;
    char *buffer;
};

static int open_ring_receive(struct link *l, struct error *err)
{
    struct ring_reader *r = memory_zalloc(1, sizeof(*r));
    l->state = r;
    r->buffer = aligned_alloc(4096, (l->message_bytes + 4095) / 4096 * 4096);
    if (!r->buffer)
        return error_set(err, -ENOMEM, "no memory for a message of %zu bytes", l->message_bytes);
    memset(r->buffer, 0, l->message_bytes);
    shm_ring_open(&r->end, l->shared, ring_bytes(l->settings), l->message_bytes, false);
    return 0;
}

static int run_ring_receive(struct link *l, struct error *err)
{
    struct ring_reader *r = l->state;
    while (link_wants(l)) {
        const void *from = shm_ring_peek(&r->end, LOOK_MS);
        if (!from) {
            if (shm_ring_is_closed(&r->end) || is_stopped(l))
                return 0;
            continue;
        }
        memcpy(r->buffer, from, l->message_bytes);
        shm_ring_took(&r->end);
        __asm__ volatile("" : : "r"(r->buffer) : "memory"); /* somebody may look at it */
        int code = link_seen(l, r->buffer, l->message_bytes, err);
        if (code)
            return code;
        link_count(l, 0, l->message_bytes, 0);
    }
    return 0;
}

static int close_ring_receive(struct link *l, struct error *err)
{
    (void)err;
    struct ring_reader *r = l->state;
    if (r && r->end.shared)
        shm_ring_close(&r->end);
    if (r)
        free(r->buffer);
    free(r);
    l->state = NULL;
    return 0;
}

/* memcpy: from the slots of the source to as many messages elsewhere, round and round. */
struct copier {
    char *to;
    size_t bytes;
};

static int open_copier(struct link *l, size_t slots, struct error *err)
{
    int r = source_open(l, SOURCE_PACKED, slots, false, err);
    if (r < 0)
        return r;
    struct copier *c = memory_zalloc(1, sizeof(*c));
    l->state = c;
    c->bytes = l->source.bytes;
    c->to = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c->to == MAP_FAILED) {
        c->to = NULL;
        return error_errno(err, -errno, "%zu bytes to copy to", c->bytes);
    }
    memset(c->to, 0, c->bytes);
    return 0;
}

static int open_memcpy(struct link *l, struct error *err)
{
    return open_copier(l, 1, err);
}

static int open_memcpy_cold(struct link *l, struct error *err)
{
    size_t slots = COLD_BYTES / 2 / l->message_bytes;
    return open_copier(l, slots ? slots : 1, err);
}

/* Counting costs as much as copying 64 bytes, so it is done for many copies at a time; the proofs'
 * limit of one message is kept. */
static int run_memcpy(struct link *l, struct error *err)
{
    (void)err;
    const struct copier *c = l->state;
    const size_t bytes = l->message_bytes, slots = l->source.slots;
    const uint64_t group = l->limit < COPIES_COUNTED ? 1 : COPIES_COUNTED;
    size_t slot = 0;
    while (link_going(l)) {
        for (uint64_t i = 0; i < group; i++) {
            source_fill(l, slot);
            char *to = c->to + slot * bytes;
            memcpy(to, l->source.base + slot * bytes, bytes);
            __asm__ volatile("" : : "r"(to) : "memory"); /* somebody may look at it */
            if (++slot == slots)
                slot = 0;
        }
        link_count(l, group, group * bytes, 0);
    }
    return 0;
}

static const void *memcpy_arrived(struct link *l)
{
    return ((const struct copier *)l->state)->to;
}

static int close_memcpy(struct link *l, struct error *err)
{
    (void)err;
    struct copier *c = l->state;
    if (c && c->to)
        munmap(c->to, c->bytes);
    free(c);
    l->state = NULL;
    source_close(l);
    return 0;
}

const struct variant variant_shm_ring = {
    .name = "shm-ring",
    .summary = "a ring in shared memory: no system call while both ends keep up",
    .role = ROLE_SEND,
    .transports = TRANSPORT_SHM,
    .claim = {COPIES_ONE, COPIES_ONE, "memcpy into the ring, memcpy out of it"},
    .batches = true,
    .partner = "shm-ring-receive",
    .shared_bytes = ring_needs,
    .open = open_ring_send,
    .run = run_ring_send,
    .close = close_ring,
};

const struct variant variant_shm_ring_receive = {
    .name = "shm-ring-receive",
    .summary = "the receive side of shm-ring",
    .role = ROLE_RECEIVE,
    .transports = TRANSPORT_SHM,
    .claim = {COPIES_NOT_MY_SIDE, COPIES_ONE, "memcpy out of the ring"},
    .open = open_ring_receive,
    .run = run_ring_receive,
    .close = close_ring_receive,
};

const struct variant variant_memcpy = {
    .name = "memcpy",
    .summary = "copies one buffer to another, both in the cache: the limit of all copying",
    .role = ROLE_ALONE,
    .transports = TRANSPORT_NONE,
    .claim = {COPIES_ONE, COPIES_NONE, "memcpy, nothing else"},
    .open = open_memcpy,
    .run = run_memcpy,
    .arrived = memcpy_arrived,
    .close = close_memcpy,
};

const struct variant variant_memcpy_cold = {
    .name = "memcpy-cold",
    .summary = "copies through 256 MiB: the limit when nothing is in the cache",
    .role = ROLE_ALONE,
    .transports = TRANSPORT_NONE,
    .claim = {COPIES_ONE, COPIES_NONE, "memcpy, nothing else"},
    .open = open_memcpy_cold,
    .run = run_memcpy,
    .arrived = memcpy_arrived,
    .close = close_memcpy,
};

/* SPDX-License-Identifier: MIT */
/*
 * uring-multishot: one receive request that completes again and again, each time with a buffer
 * from a ring of provided ones, which goes back when the data was seen.
 */
#include "base/memory.h"
#include "settings.h"
#include "uring.h"
#include "variants.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BUFFERS = 64, BUFFER_BYTES = 32 << 10 };

struct uring_receiver {
    struct io_uring ring;
    bool open, armed, ended;
    struct buffer_ring buffers;
    char *memory;
    size_t each;
};

static char *buffer(const struct uring_receiver *u, unsigned index)
{
    return u->memory + index * u->each;
}

static int open_multishot(struct link *l, struct error *err)
{
    struct uring_receiver *u = memory_zalloc(1, sizeof(*u));
    l->state = u;
    u->each = l->settings->receive_bytes ? l->settings->receive_bytes : BUFFER_BYTES;
    int r = ring_open(&u->ring, BUFFERS, err);
    u->open = r == 0;
    r = r ? r : buffer_ring_open(&u->ring, &u->buffers, BUFFERS, 0, err);
    if (r < 0)
        return r;
    void *at = mmap(NULL, BUFFERS * u->each, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED)
        return error_errno(err, -errno, "%zu bytes for receive buffers", BUFFERS * u->each);
    u->memory = at;
    for (unsigned i = 0; i < BUFFERS; i++)
        io_uring_buf_ring_add(u->buffers.ring, buffer(u, i), (unsigned)u->each, (unsigned short)i,
                              io_uring_buf_ring_mask(BUFFERS), (int)i);
    io_uring_buf_ring_advance(u->buffers.ring, BUFFERS);
    return 0;
}

static int close_multishot(struct link *l, struct error *err)
{
    (void)err;
    struct uring_receiver *u = l->state;
    if (u && u->open) {
        buffer_ring_close(&u->ring, &u->buffers);
        io_uring_queue_exit(&u->ring);
    }
    if (u && u->memory)
        munmap(u->memory, BUFFERS * u->each);
    free(u);
    l->state = NULL;
    return 0;
}

static void arm(struct link *l)
{
    struct uring_receiver *u = l->state;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    io_uring_prep_recv_multishot(sqe, l->fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = (unsigned short)u->buffers.group;
    u->armed = true;
}

static int take(struct link *l, const struct io_uring_cqe *cqe, int *returned, struct error *err)
{
    struct uring_receiver *u = l->state;
    if (!(cqe->flags & IORING_CQE_F_MORE))
        u->armed = false;
    if (cqe->res == -ENOBUFS) /* all buffers were in use: armed again in the next turn */
        return 0;
    if (cqe->res < 0)
        return ring_failed(l, "a multishot receive", cqe->res, err);
    if (cqe->flags & IORING_CQE_F_BUFFER) {
        unsigned index = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
        int r = link_seen(l, buffer(u, index), (size_t)cqe->res, err);
        if (r < 0)
            return r;
        io_uring_buf_ring_add(u->buffers.ring, buffer(u, index), (unsigned)u->each,
                              (unsigned short)index, io_uring_buf_ring_mask(BUFFERS),
                              (*returned)++);
    }
    u->ended = cqe->res == 0;
    link_count(l, 0, (uint64_t)cqe->res, 0);
    return 0;
}

static int run_multishot(struct link *l, struct error *err)
{
    struct uring_receiver *u = l->state;
    while (!u->ended && link_wants(l)) {
        struct io_uring_cqe *cqe;
        unsigned head, seen = 0;
        int returned = 0;
        if (!u->armed)
            arm(l);
        int r = ring_enter(&u->ring, l, 1, err);
        io_uring_for_each_cqe(&u->ring, head, cqe)
        {
            seen++;
            r = r ? r : take(l, cqe, &returned, err);
        }
        io_uring_buf_ring_cq_advance(&u->ring, u->buffers.ring, 0);
        io_uring_buf_ring_advance(u->buffers.ring, returned);
        io_uring_cq_advance(&u->ring, seen);
        if (r < 0)
            return r;
    }
    return 0;
}

const struct variant variant_uring_multishot = {
    .name = "uring-multishot",
    .summary = "io_uring: one receive request, 64 provided buffers of 32 KiB",
    .role = ROLE_RECEIVE,
    .transports = TRANSPORT_STREAM_SOCKETS,
    .claim = {COPIES_NOT_MY_SIDE, COPIES_ONE, "kernel to user when data arrives"},
    .open = open_multishot,
    .run = run_multishot,
    .close = close_multishot,
};

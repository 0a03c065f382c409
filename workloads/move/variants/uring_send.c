/* SPDX-License-Identifier: MIT */
/*
 * Sends by io_uring that copy: uring-send, uring-sendmsg and uring-bundle.
 *
 * A stream must keep its order, so a submission is a chain of --batch linked sends, and the next
 * is made when all have completed; a bundle is one request that takes --batch provided buffers.
 */
#include "base/memory.h"
#include "settings.h"
#include "uring.h"
#include "variants.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

struct uring_sender {
    struct io_uring ring;
    bool open;
    struct msghdr *headers; /* of uring-sendmsg */
    struct buffer_ring buffers;
    unsigned short next_buffer;
};

static int open_ring(struct link *l, struct error *err)
{
    struct uring_sender *u = memory_zalloc(1, sizeof(*u));
    l->state = u;
    int r = ring_open(&u->ring, (unsigned)l->settings->batch, err);
    u->open = r == 0;
    return r;
}

static int close_ring(struct link *l, struct error *err)
{
    (void)err;
    struct uring_sender *u = l->state;
    if (u && u->open) {
        buffer_ring_close(&u->ring, &u->buffers);
        io_uring_queue_exit(&u->ring);
    }
    if (u)
        free(u->headers);
    free(u);
    l->state = NULL;
    source_close(l);
    return 0;
}

static int open_send(struct link *l, struct error *err)
{
    int r = open_ring(l, err);
    return r ? r : source_open(l, SOURCE_PACKED, l->settings->batch, false, err);
}

static int open_sendmsg(struct link *l, struct error *err)
{
    int r = open_ring(l, err);
    r = r ? r : source_open(l, SOURCE_FIELDS, l->settings->batch, false, err);
    if (r < 0)
        return r;
    struct uring_sender *u = l->state;
    u->headers = memory_zalloc(l->source.slots, sizeof(*u->headers));
    for (size_t i = 0; i < l->source.slots; i++)
        u->headers[i] =
            (struct msghdr){.msg_iov = source_pieces(l, i), .msg_iovlen = l->source.fields};
    return 0;
}

/* Takes the completions of a chain that went through: each has all its bytes. */
static int reap_chain(struct link *l, unsigned batch, struct error *err)
{
    struct uring_sender *u = l->state;
    struct io_uring_cqe *cqe;
    unsigned head, seen = 0;
    int failed = 0;
    io_uring_for_each_cqe(&u->ring, head, cqe)
    {
        seen++;
        /* Of a broken chain the rest is cancelled; the cause counts. */
        if (cqe->res != (int)l->message_bytes && (!failed || failed == -ECANCELED))
            failed = cqe->res < 0 ? cqe->res : -EIO;
    }
    io_uring_cq_advance(&u->ring, seen);
    if (failed)
        return ring_failed(l, "io_uring send", failed, err);
    return seen == batch ? 0
                         : error_set(err, -EIO, "io_uring: %u completions, not %u", seen, batch);
}

static int run_chains(struct link *l, bool gather, struct error *err)
{
    struct uring_sender *u = l->state;
    const unsigned batch = (unsigned)l->settings->batch;
    while (link_going(l)) {
        for (unsigned i = 0; i < batch; i++) {
            struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
            source_fill(l, i);
            if (gather)
                io_uring_prep_sendmsg(sqe, l->fd, &u->headers[i], MSG_WAITALL);
            else
                io_uring_prep_send(sqe, l->fd, source_pieces(l, i)->iov_base, l->message_bytes,
                                   MSG_WAITALL);
            sqe->flags |= i + 1 < batch ? IOSQE_IO_LINK : 0;
        }
        int r = ring_enter(&u->ring, l, batch, err);
        r = r ? r : reap_chain(l, batch, err);
        if (r < 0)
            return r;
        link_count(l, batch, batch * l->message_bytes, 0);
    }
    return 0;
}

static int run_send(struct link *l, struct error *err)
{
    return run_chains(l, false, err);
}

static int run_sendmsg(struct link *l, struct error *err)
{
    return run_chains(l, true, err);
}

static int open_bundle(struct link *l, struct error *err)
{
    int r = open_ring(l, err);
    r = r ? r : source_open(l, SOURCE_PACKED, l->settings->batch, false, err);
    if (r < 0)
        return r;
    struct uring_sender *u = l->state;
    unsigned entries = 1;
    while (entries < l->settings->batch)
        entries *= 2;
    return buffer_ring_open(&u->ring, &u->buffers, entries, 0, err);
}

/* Sends what the buffer ring holds; *sent gets the bytes.  A bundle may come in several parts. */
static int send_bundle(struct link *l, size_t *sent, struct error *err)
{
    struct uring_sender *u = l->state;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    io_uring_prep_send(sqe, l->fd, NULL, 0, MSG_WAITALL);
    sqe->ioprio |= IORING_RECVSEND_BUNDLE;
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = (unsigned short)u->buffers.group;
    for (bool more = true; more;) {
        struct io_uring_cqe *cqe;
        unsigned head, seen = 0;
        int r = ring_enter(&u->ring, l, 1, err);
        if (r < 0)
            return r;
        io_uring_for_each_cqe(&u->ring, head, cqe)
        {
            seen++;
            if (cqe->res < 0 && cqe->res != -ENOBUFS)
                r = cqe->res;
            *sent += cqe->res > 0 ? (size_t)cqe->res : 0;
            more = cqe->flags & IORING_CQE_F_MORE;
        }
        io_uring_cq_advance(&u->ring, seen);
        if (r < 0)
            return ring_failed(l, "a bundle of sends", r, err);
    }
    return 0;
}

static int run_bundle(struct link *l, struct error *err)
{
    struct uring_sender *u = l->state;
    const unsigned batch = (unsigned)l->settings->batch;
    const int mask = io_uring_buf_ring_mask(u->buffers.entries);
    while (link_going(l)) {
        for (unsigned i = 0; i < batch; i++) {
            source_fill(l, i);
            io_uring_buf_ring_add(u->buffers.ring, source_pieces(l, i)->iov_base,
                                  (unsigned)l->message_bytes, (unsigned short)i, mask, (int)i);
        }
        io_uring_buf_ring_advance(u->buffers.ring, (int)batch);
        size_t sent = 0, all = batch * l->message_bytes;
        while (sent < all) {
            size_t before = sent;
            int r = send_bundle(l, &sent, err);
            if (r < 0)
                return r;
            if (sent == before)
                return error_set(err, -EIO, "a bundle of sends sent nothing");
        }
        link_count(l, batch, all, 0);
    }
    return 0;
}

const struct variant variant_uring_send = {
    .name = "uring-send",
    .summary = "io_uring: --batch linked sends per submission",
    .role = ROLE_SEND,
    .transports = TRANSPORT_SOCKETS,
    .claim = {COPIES_ONE, COPIES_NOT_MY_SIDE, "user to kernel when the request runs"},
    .batches = true,
    .open = open_send,
    .run = run_send,
    .close = close_ring,
};

const struct variant variant_uring_sendmsg = {
    .name = "uring-sendmsg",
    .summary = "io_uring: --batch linked sendmsg of --fields fields per submission",
    .role = ROLE_SEND,
    .transports = TRANSPORT_SOCKETS,
    .claim = {COPIES_ONE, COPIES_NOT_MY_SIDE, "user to kernel when the request runs"},
    .batches = true,
    .fields = true,
    .open = open_sendmsg,
    .run = run_sendmsg,
    .close = close_ring,
};

const struct variant variant_uring_bundle = {
    .name = "uring-bundle",
    .summary = "io_uring: --batch provided buffers, one request",
    .role = ROLE_SEND,
    .transports = TRANSPORT_STREAM_SOCKETS,
    .claim = {COPIES_ONE, COPIES_NOT_MY_SIDE, "user to kernel when the request runs"},
    .batches = true,
    .open = open_bundle,
    .run = run_bundle,
    .close = close_ring,
};

/* SPDX-License-Identifier: MIT */
/*
 * Receive sides that block in a call: recv (a message's size at a time, as most programs do),
 * recv-big (as much as there is), trunc (TCP takes the data off the queue without copying it).
 */
#include "calls.h"
#include "settings.h"
#include "variants.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BIG_BYTES = 128 << 10, LATE_BYTES = 2 << 20, DATAGRAM_BYTES = 64 << 10 };

struct receiver {
    char *buffer;
    size_t bytes;
};

static int open_with(struct link *l, size_t bytes, struct error *err)
{
    struct receiver *r = calloc(1, sizeof(*r));
    l->state = r;
    if (l->transport == TRANSPORT_UDP)
        bytes = DATAGRAM_BYTES;
    if (l->settings->receive_bytes)
        bytes = l->settings->receive_bytes;
    if (r)
        r->buffer = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!r || !r->buffer)
        return error_set(err, -ENOMEM, "no memory for a receive buffer of %zu bytes", bytes);
    r->bytes = bytes;
    return 0;
}

static int open_recv(struct link *l, struct error *err)
{
    return open_with(l, l->message_bytes, err);
}

static int open_recv_big(struct link *l, struct error *err)
{
    return open_with(l, BIG_BYTES, err);
}

/* TCP wakes this receiver only when as much is there as it asks for: a wake-up for every packet
 * costs a sender of small messages more than the packet does.  An end of file wakes it in any case.
 * Not the default, since senders whose small packets fill the window first are slowed down. */
static int open_recv_late(struct link *l, struct error *err)
{
    int r = open_with(l, LATE_BYTES, err);
    int bytes = r ? 0 : (int)((struct receiver *)l->state)->bytes;
    if (r == 0 && setsockopt(l->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes)) < 0)
        r = error_errno(err, -errno, "SO_RCVLOWAT of %d bytes", bytes);
    return r;
}

static int close_recv(struct link *l, struct error *err)
{
    (void)err;
    struct receiver *r = l->state;
    if (r)
        free(r->buffer);
    free(r);
    l->state = NULL;
    return 0;
}

/* Datagrams have no end of file: the socket's time limit lets the loop look at stop. */
static int run_datagrams(struct link *l, int flags, struct error *err)
{
    const struct receiver *s = l->state;
    while (link_wants(l)) {
        ssize_t r = call_recv(l->fd, s->buffer, s->bytes, flags);
        if (r < 0) {
            if (errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED)
                return link_failed(l, "recv", -errno, err);
            if (atomic_load_explicit(l->stop, memory_order_relaxed))
                return 0;
            continue;
        }
        int code = link_seen(l, s->buffer, (size_t)r, err);
        if (code)
            return code;
        link_count(l, 1, (uint64_t)r, 1);
    }
    return 0;
}

static int run_with(struct link *l, int flags, struct error *err)
{
    const struct receiver *s = l->state;
    if (l->transport == TRANSPORT_UDP)
        return run_datagrams(l, flags, err);
    const bool pipe = l->transport == TRANSPORT_PIPE;
    while (link_wants(l)) {
        /* Never more than is wanted: recv-late waits for all that it asks for. */
        size_t bytes = l->limit - count_read(&l->counts->bytes);
        bytes = bytes < s->bytes ? bytes : s->bytes;
        ssize_t r =
            pipe ? call_read(l->fd, s->buffer, bytes) : call_recv(l->fd, s->buffer, bytes, flags);
        if (__builtin_expect(r <= 0, 0)) {
            if (r == 0)
                return 0;
            if (errno == EINTR)
                continue;
            return link_failed(l, "recv", -errno, err);
        }
        if (!(flags & MSG_TRUNC)) {
            int code = link_seen(l, s->buffer, (size_t)r, err);
            if (code)
                return code;
        }
        link_count(l, 0, (uint64_t)r, 1);
    }
    return 0;
}

static int run_recv(struct link *l, struct error *err)
{
    return run_with(l, 0, err);
}

static int open_trunc(struct link *l, struct error *err)
{
    if (l->settings->verify)
        return error_set(err, -EINVAL, "trunc discards the data: there is nothing to --verify");
    return open_recv_big(l, err);
}

static int run_trunc(struct link *l, struct error *err)
{
    return run_with(l, MSG_TRUNC, err);
}

const struct variant variant_recv = {
    .name = "recv",
    .summary = "recv() of a message's size (or --receive-size)",
    .role = ROLE_RECEIVE,
    .plain = true,
    .transports = TRANSPORT_SOCKETS | TRANSPORT_PIPE,
    .claim = {COPIES_NOT_MY_SIDE, COPIES_ONE, "kernel to user in recv()"},
    .open = open_recv,
    .run = run_recv,
    .close = close_recv,
};

const struct variant variant_recv_big = {
    .name = "recv-big",
    .summary = "recv() of up to 128 KiB at a time (the default)",
    .role = ROLE_RECEIVE,
    .plain = true,
    .transports = TRANSPORT_SOCKETS | TRANSPORT_PIPE,
    .claim = {COPIES_NOT_MY_SIDE, COPIES_ONE, "kernel to user in recv()"},
    .open = open_recv_big,
    .run = run_recv,
    .close = close_recv,
};

const struct variant variant_recv_late = {
    .name = "recv-late",
    .summary = "recv() of 2 MiB, woken when that much has arrived (SO_RCVLOWAT)",
    .role = ROLE_RECEIVE,
    .plain = true,
    .transports = TRANSPORT_STREAMS_TCP,
    .claim = {COPIES_NOT_MY_SIDE, COPIES_ONE, "kernel to user in recv()"},
    .open = open_recv_late,
    .run = run_recv,
    .close = close_recv,
};

const struct variant variant_trunc = {
    .name = "trunc",
    .summary = "recv() with MSG_TRUNC: the data is dropped in the kernel",
    .role = ROLE_RECEIVE,
    .plain = true,
    .transports = TRANSPORT_STREAMS_TCP,
    .claim = {COPIES_NOT_MY_SIDE, COPIES_NONE, "the data never reaches the program"},
    .open = open_trunc,
    .run = run_trunc,
    .close = close_recv,
};

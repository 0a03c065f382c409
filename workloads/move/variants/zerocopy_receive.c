/* SPDX-License-Identifier: MIT */
/*
 * zerocopy-receive: TCP_ZEROCOPY_RECEIVE maps received pages into the receiver's memory.
 *
 * The kernel maps whole pages only, and only such that belong to nobody else: neither the sender's
 * own pages that came by reference, nor the larger blocks that send() copies into.  Whatever it
 * cannot map it leaves to recv(), and says how much.  Over loopback that leaves what a zero-copy
 * sender's data was copied into at the end.  How many bytes were mapped and how many were copied is
 * counted and reported.
 */
#include "base/memory.h"
#include "variants.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define WINDOW_BYTES (2UL << 20)
#define BUFFER_BYTES (128UL << 10)

struct mapper {
    char *window; /* where the kernel maps pages */
    char *buffer; /* for what it cannot map */
};

static int open_mapper(struct link *l, struct error *err)
{
    struct mapper *m = memory_zalloc(1, sizeof(*m));
    l->state = m;
    m->buffer = memory_zalloc(1, BUFFER_BYTES);
    m->window = mmap(NULL, WINDOW_BYTES, PROT_READ, MAP_SHARED, l->fd, 0);
    if (m->window == MAP_FAILED) {
        m->window = NULL;
        return error_errno(err, -errno, "zerocopy-receive: mapping the socket");
    }
    return 0;
}

static int close_mapper(struct link *l, struct error *err)
{
    (void)err;
    struct mapper *m = l->state;
    if (m && m->window)
        munmap(m->window, WINDOW_BYTES);
    if (m)
        free(m->buffer);
    free(m);
    l->state = NULL;
    return 0;
}

static int seen(struct link *l, const char *data, size_t bytes, _Atomic uint64_t *counter,
                struct error *err)
{
    if (!bytes)
        return 0;
    count_add(counter, bytes);
    int r = link_seen(l, data, bytes, err);
    count_add(&l->counts->bytes, bytes);
    return r;
}

/* Copies what could not be mapped: 1 when it did or there was nothing, 0 at the end of file. */
static int copy_some(struct link *l, struct mapper *m, size_t bytes, struct error *err)
{
    ssize_t r = recv(l->fd, m->buffer, bytes < BUFFER_BYTES ? bytes : BUFFER_BYTES, MSG_DONTWAIT);
    count_add(&l->counts->calls, 1);
    if (r == 0)
        return 0;
    if (r < 0)
        return errno == EAGAIN || errno == EINTR ? 1 : link_failed(l, "recv", -errno, err);
    int code = seen(l, m->buffer, (size_t)r, &l->counts->refused, err);
    return code < 0 ? code : 1;
}

static int await_data(struct link *l, struct error *err)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    count_add(&l->counts->calls, 1);
    int r = poll(&p, 1, -1);
    return r < 0 && errno != EINTR ? link_failed(l, "poll", -errno, err) : 0;
}

static int run_mapper(struct link *l, struct error *err)
{
    struct mapper *m = l->state;
    bool is_waiting = true;
    while (link_wants(l)) {
        int r = is_waiting ? await_data(l, err) : 0;
        if (r < 0)
            return r;
        struct tcp_zerocopy_receive z = {.address = (uint64_t)(uintptr_t)m->window,
                                         .length = WINDOW_BYTES};
        socklen_t length = sizeof(z);
        count_add(&l->counts->calls, 1);
        if (getsockopt(l->fd, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &z, &length) < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EIO) /* what the kernel says to an empty queue behind the end of file */
                return 0;
            return link_failed(l, "TCP_ZEROCOPY_RECEIVE", -errno, err);
        }
        r = seen(l, m->window, z.length, &l->counts->granted, err);
        if (r < 0)
            return r;
        /* Nothing at all is either the end of file or a wake-up for nothing: recv tells. */
        if (z.recv_skip_hint || !z.length) {
            r = copy_some(l, m, z.recv_skip_hint ? z.recv_skip_hint : BUFFER_BYTES, err);
            if (r <= 0)
                return r;
        }
        is_waiting = !z.length && !z.recv_skip_hint;
    }
    return 0;
}

const struct variant variant_zerocopy_receive = {
    .name = "zerocopy-receive",
    .summary = "TCP_ZEROCOPY_RECEIVE maps what it can; the rest by recv()",
    .role = ROLE_RECEIVE,
    .transports = TRANSPORT_STREAMS_TCP,
    .claim = {COPIES_NOT_MY_SIDE, COPIES_SOME,
              "whole pages that nothing else uses are mapped, the rest is copied"},
    .open = open_mapper,
    .run = run_mapper,
    .close = close_mapper,
};

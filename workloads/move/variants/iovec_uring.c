/* SPDX-License-Identifier: MIT */
/*
 * iovec-uring: the pieces of a message by IORING_OP_WRITEV.  One submission is under way at a time,
 * since two on one stream could change places; what a submission left over goes with the next.
 */
#include "config.h"

#if HAVE_LIBURING
#include "base/memory.h"
#include "variants.h"

#include <errno.h>
#include <liburing.h>
#include <limits.h>
#include <string.h>

struct uring_sender {
    struct io_uring ring;
    struct iovec *rest; /* what is left of a message */
};

static int open_uring(struct link *l, struct error *err)
{
    int r = source_open(l, SOURCE_PIECES, 1, false, err);
    if (r < 0)
        return r;
    struct uring_sender *s = memory_zalloc(1, sizeof(*s));
    r = io_uring_queue_init(8, &s->ring, 0);
    if (r < 0) {
        free(s);
        return error_errno(err, r,
                           "io_uring (kernel.io_uring_disabled or ulimit -l may forbid it)");
    }
    s->rest = memory_zalloc(l->source.fields, sizeof(*s->rest));
    l->state = s;
    return 0;
}

static int close_uring(struct link *l, struct error *err)
{
    (void)err;
    struct uring_sender *s = l->state;
    if (s) {
        io_uring_queue_exit(&s->ring);
        free(s->rest);
    }
    free(s);
    l->state = NULL;
    source_close(l);
    return 0;
}

static int submit(struct uring_sender *s, int fd, const struct iovec *pieces, size_t count)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&s->ring);
    struct io_uring_cqe *done;
    io_uring_prep_writev(entry, fd, pieces, (unsigned)(count < IOV_MAX ? count : IOV_MAX), 0);
    int r = io_uring_submit_and_wait(&s->ring, 1);
    if (r < 0)
        return r;
    r = io_uring_wait_cqe(&s->ring, &done);
    if (r < 0)
        return r;
    r = done->res;
    io_uring_cqe_seen(&s->ring, done);
    return r;
}

/* Drops what was taken from the front of the list. */
static size_t drop(struct iovec **pieces, size_t count, struct iovec *own, size_t taken)
{
    struct iovec *at = *pieces;
    for (; count && taken >= at->iov_len; count--)
        taken -= at++->iov_len;
    if (taken) {
        memmove(own, at, count * sizeof(*at));
        at = own;
        at->iov_base = (char *)at->iov_base + taken;
        at->iov_len -= taken;
    }
    *pieces = at;
    return count;
}

static int run_uring(struct link *l, struct error *err)
{
    struct uring_sender *s = l->state;
    while (link_going(l)) {
        source_fill(l, 0);
        struct iovec *pieces = source_pieces(l, 0);
        size_t left = l->source.fields;
        uint64_t calls = 0;
        while (left) {
            int r = submit(s, l->fd, pieces, left);
            calls++;
            if (r < 0 && r != -EINTR && r != -EAGAIN)
                return link_failed(l, "io_uring writev", r, err);
            left = drop(&pieces, left, s->rest, r > 0 ? (size_t)r : 0);
        }
        link_count(l, 1, l->message_bytes, calls);
    }
    return 0;
}

const struct variant variant_iovec_uring = {
    .name = "iovec-uring",
    .summary = "--pieces buffers of --size bytes by io_uring's WRITEV",
    .role = ROLE_SEND,
    .transports = TRANSPORT_UNIX | TRANSPORT_PIPE,
    .claim = {COPIES_ONE, COPIES_NOT_MY_SIDE, "user to kernel, as in writev()"},
    .pieces = true,
    .open = open_uring,
    .run = run_uring,
    .close = close_uring,
};
#endif

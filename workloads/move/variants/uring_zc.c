/* SPDX-License-Identifier: MIT */
/*
 * Zero-copy sends by io_uring: uring-zc pins the pages for each send, uring-zc-fixed has them
 * registered once.  Each request completes twice: when the data is queued, and, by a notification,
 * when the pages are free again; with REPORT_USAGE the latter tells whether they were copied.
 */
#include "base/memory.h"
#include "settings.h"
#include "uring.h"
#include "variants.h"
#include "zerocopy.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

struct uring_zc {
    struct io_uring ring;
    bool open, fixed;
    bool *busy;           /* by slot: the kernel may still read it */
    size_t notifications; /* to come */
    unsigned sends;       /* of the chain under way that have not completed */
    int failed;
};

static int open_zc(struct link *l, bool fixed, struct error *err)
{
    struct uring_zc *u = memory_zalloc(1, sizeof(*u));
    const size_t batch = l->settings->batch;
    size_t slots = zerocopy_slots(l);
    l->state = u;
    u->fixed = fixed;
    if (slots < 2 * batch)
        slots = 2 * batch;
    slots -= slots % batch; /* a chain never wraps */
    int r = ring_open(&u->ring, (unsigned)slots, err);
    u->open = r == 0;
    r = r ? r : source_open(l, SOURCE_ALIGNED, slots, false, err);
    if (r < 0)
        return r;
    u->busy = memory_zalloc(slots, sizeof(*u->busy));
    struct iovec all = {l->source.base, l->source.bytes};
    if (fixed)
        r = io_uring_register_buffers(&u->ring, &all, 1);
    if (r == -ENOMEM) {
        struct rlimit limit = {0};
        getrlimit(RLIMIT_MEMLOCK, &limit);
        return error_set(err, r,
                         "registering %zu KiB of buffers: the limit on locked memory is %llu KiB "
                         "(ulimit -l); use fewer threads, smaller messages or a smaller --batch",
                         l->source.bytes / 1024, (unsigned long long)limit.rlim_cur / 1024);
    }
    return r < 0 ? error_errno(err, r, "registering buffers") : 0;
}

static int open_plain(struct link *l, struct error *err)
{
    return open_zc(l, false, err);
}

static int open_fixed(struct link *l, struct error *err)
{
    return open_zc(l, true, err);
}

static void take(struct link *l, const struct io_uring_cqe *cqe)
{
    struct uring_zc *u = l->state;
    size_t slot = cqe->user_data;
    if (cqe->flags & IORING_CQE_F_NOTIF) {
        bool copied = (uint32_t)cqe->res & IORING_NOTIF_USAGE_ZC_COPIED;
        count_add(copied ? &l->counts->refused : &l->counts->granted, 1);
        u->busy[slot] = false;
        u->notifications--;
        return;
    }
    u->sends--;
    if (cqe->res != (int)l->message_bytes && (!u->failed || u->failed == -ECANCELED))
        u->failed = cqe->res < 0 ? cqe->res : -EIO;
    if (cqe->flags & IORING_CQE_F_MORE)
        u->notifications++;
    else
        u->busy[slot] = false;
}

/* Submits what is prepared, waits for `count` completions and takes all that there are. */
static int turn(struct link *l, unsigned count, struct error *err)
{
    struct uring_zc *u = l->state;
    struct io_uring_cqe *cqe;
    unsigned head, seen = 0;
    int r = ring_enter(&u->ring, l, count, err);
    if (r < 0)
        return r;
    io_uring_for_each_cqe(&u->ring, head, cqe)
    {
        seen++;
        take(l, cqe);
    }
    io_uring_cq_advance(&u->ring, seen);
    return u->failed ? ring_failed(l, "a zero-copy send by io_uring", u->failed, err) : 0;
}

static void prepare(struct link *l, size_t slot, bool last)
{
    struct uring_zc *u = l->state;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    const void *message = source_pieces(l, slot)->iov_base;
    if (u->fixed)
        io_uring_prep_send_zc_fixed(sqe, l->fd, message, l->message_bytes, MSG_WAITALL,
                                    IORING_SEND_ZC_REPORT_USAGE, 0);
    else
        io_uring_prep_send_zc(sqe, l->fd, message, l->message_bytes, MSG_WAITALL,
                              IORING_SEND_ZC_REPORT_USAGE);
    sqe->user_data = slot;
    sqe->flags |= last ? 0 : IOSQE_IO_LINK;
    u->busy[slot] = true;
    u->sends++;
}

static int run_zc(struct link *l, struct error *err)
{
    struct uring_zc *u = l->state;
    const size_t batch = l->settings->batch, slots = l->source.slots;
    size_t slot = 0;
    while (link_going(l)) {
        for (size_t i = 0; i < batch; i++) {
            while (u->busy[slot + i]) {
                count_add(&l->counts->waits, 1);
                int r = turn(l, 1, err);
                if (r < 0)
                    return r;
            }
            source_fill(l, slot + i);
        }
        for (size_t i = 0; i < batch; i++)
            prepare(l, slot + i, i + 1 == batch);
        while (u->sends) {
            int r = turn(l, u->sends, err);
            if (r < 0)
                return r;
        }
        link_count(l, batch, batch * l->message_bytes, 0);
        slot = slot + batch == slots ? 0 : slot + batch;
    }
    return 0;
}

static int close_zc(struct link *l, struct error *err)
{
    struct uring_zc *u = l->state;
    int r = 0;
    if (!u)
        return 0;
    while (u->open && r == 0 && !u->failed && u->notifications)
        r = turn(l, 1, err);
    if (u->open)
        io_uring_queue_exit(&u->ring);
    free(u->busy);
    free(u);
    l->state = NULL;
    source_close(l);
    return r;
}

const struct variant variant_uring_zc = {
    .name = "uring-zc",
    .summary = "io_uring: --batch linked zero-copy sends per submission",
    .role = ROLE_SEND,
    .transports = TRANSPORT_STREAMS_TCP | TRANSPORT_UDP,
    .claim = {COPIES_IF_REFUSED, COPIES_NOT_MY_SIDE,
              "none when the request runs; where the device needs it, later in the kernel"},
    .batches = true,
    .open = open_plain,
    .run = run_zc,
    .close = close_zc,
};

const struct variant variant_uring_zc_fixed = {
    .name = "uring-zc-fixed",
    .summary = "the same from registered buffers",
    .role = ROLE_SEND,
    .transports = TRANSPORT_STREAMS_TCP | TRANSPORT_UDP,
    .claim = {COPIES_IF_REFUSED, COPIES_NOT_MY_SIDE,
              "none when the request runs; where the device needs it, later in the kernel"},
    .batches = true,
    .open = open_fixed,
    .run = run_zc,
    .close = close_zc,
};

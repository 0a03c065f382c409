/* SPDX-License-Identifier: MIT */
/*
 * One ring for everything: a multishot recvmsg for each socket into provided buffers, sends that
 * complete without a word, writes and syncs, and a timer.  One call to the kernel in each turn.
 *
 * The timer stays as it is while deadlines only move further away: to set one and take it back
 * for every wait costs more than a datagram (two writes to the clock's registers, which leave the
 * guest on a virtual machine).  One that ends too early is an empty turn, which sets the next.
 *
 * uring-eventfd puts the ring behind an eventfd in an epoll set, as programs do that add io_uring
 * to a loop that they have.  uring-eventfd-unread is the same with the mistake of a known profile:
 * the eventfd is never read, so that level-triggered epoll_wait returns at once for ever.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "vr/core/planted.h"
#include "vr/net/io_ways.h"

#include <errno.h>
#include <liburing.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define ENTRIES 1024
#define BUFFERS 512
#define GROUP 0

enum kind { KIND_RECEIVE = 1, KIND_SEND, KIND_DISK, KIND_TIMER, KIND_TIMER_MOVED };

struct loop {
    struct io_uring ring;
    bool ring_open;
    struct io_uring_buf_ring *buffer_ring;
    size_t buffer_ring_bytes, buffer_bytes;
    unsigned char *buffers;
    struct msghdr receive_shape;
    struct msghdr *out;
    struct iovec *out_pieces;
    int epoll_fd, event_fd;
    uint64_t timer_ns; /* when the timer ends; 0: there is none */
    struct __kernel_timespec timer_at;
};

static unsigned char *buffer(const struct loop *l, unsigned index)
{
    return l->buffers + index * l->buffer_bytes;
}

static void close_loop(struct vr_io *io)
{
    struct loop *l = io->state;
    if (l->ring_open)
        io_uring_queue_exit(&l->ring);
    if (l->buffer_ring)
        munmap(l->buffer_ring, l->buffer_ring_bytes);
    if (l->epoll_fd >= 0)
        close(l->epoll_fd);
    if (l->event_fd >= 0)
        close(l->event_fd);
    free(l->buffers);
    free(l->out);
    free(l->out_pieces);
    free(l);
    io->state = NULL;
}

static struct io_uring_sqe *entry(struct loop *l)
{
    struct io_uring_sqe *e = io_uring_get_sqe(&l->ring);
    while (!e) {
        io_uring_submit(&l->ring);
        e = io_uring_get_sqe(&l->ring);
    }
    return e;
}

static void arm_receive(struct loop *l, uint32_t socket)
{
    struct io_uring_sqe *e = entry(l);
    io_uring_prep_recvmsg_multishot(e, (int)socket, &l->receive_shape, 0);
    e->flags |= IOSQE_BUFFER_SELECT | IOSQE_FIXED_FILE;
    e->buf_group = GROUP;
    e->user_data = (uint64_t)KIND_RECEIVE << 32 | socket;
}

static int open_ring(struct loop *l, bool deferred, struct error *err)
{
    struct io_uring_params p = {.flags = IORING_SETUP_CQSIZE, .cq_entries = 8 * ENTRIES};
    if (deferred)
        p.flags |= IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    int r = io_uring_queue_init_params(ENTRIES, &l->ring, &p);
    if (r == -EINVAL && deferred) {
        p = (struct io_uring_params){.flags = IORING_SETUP_CQSIZE, .cq_entries = 8 * ENTRIES};
        r = io_uring_queue_init_params(ENTRIES, &l->ring, &p);
    }
    if (r == -EPERM || r == -ENOSYS || r == -EACCES)
        return error_set(err, r,
                         "io_uring is not allowed or not available (kernel.io_uring_disabled, "
                         "seccomp); use --transport epoll");
    if (r < 0)
        return error_errno(err, r, "io_uring");
    l->ring_open = true;
    io_uring_register_ring_fd(
        &l->ring); /* looked up once; where there is no such thing, each time */
    return 0;
}

static int open_buffers(struct vr_io *io, struct loop *l, struct error *err)
{
    l->receive_shape = (struct msghdr){.msg_namelen = sizeof(union vr_address)};
    l->buffer_bytes =
        sizeof(struct io_uring_recvmsg_out) + sizeof(union vr_address) + io->datagram_bytes;
    l->buffer_bytes = (l->buffer_bytes + 63) / 64 * 64;
    l->buffers = memory_alloc(BUFFERS * l->buffer_bytes);
    l->buffer_ring_bytes = BUFFERS * sizeof(struct io_uring_buf);
    void *place = mmap(NULL, l->buffer_ring_bytes, PROT_READ | PROT_WRITE,
                       MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    if (place == MAP_FAILED)
        return error_errno(err, -errno, "memory for buffers");
    l->buffer_ring = place;
    struct io_uring_buf_reg reg = {
        .ring_addr = (uint64_t)(uintptr_t)place, .ring_entries = BUFFERS, .bgid = GROUP};
    int r = io_uring_register_buf_ring(&l->ring, &reg, 0);
    if (r)
        return error_errno(err, r, "provided buffers (they need Linux 5.19)");
    io_uring_buf_ring_init(l->buffer_ring);
    for (unsigned i = 0; i < BUFFERS; i++)
        io_uring_buf_ring_add(l->buffer_ring, buffer(l, i), (unsigned)l->buffer_bytes,
                              (unsigned short)i, io_uring_buf_ring_mask(BUFFERS), (int)i);
    io_uring_buf_ring_advance(l->buffer_ring, BUFFERS);
    return 0;
}

static int open_common(struct vr_io *io, bool deferred, struct error *err)
{
    struct loop *l = memory_zalloc(1, sizeof(*l));
    io->state = l;
    l->epoll_fd = l->event_fd = -1;
    l->out = memory_zalloc(VR_IO_OUT_MAX, sizeof(*l->out));
    l->out_pieces = memory_zalloc(VR_IO_OUT_MAX, sizeof(*l->out_pieces));
    int result = open_ring(l, deferred, err);
    if (!result)
        result = open_buffers(io, l, err);
    if (!result && io->socket_count) {
        result = io_uring_register_files(&l->ring, io->sockets, io->socket_count);
        if (result)
            error_errno(err, result, "sockets in a ring");
    }
    for (uint32_t i = 0; i < io->socket_count && !result; i++)
        arm_receive(l, i);
    return result;
}

static int open_deferred(struct vr_io *io, struct error *err)
{
    int result = open_common(io, true, err);
    if (result)
        close_loop(io);
    return result;
}

static int open_eventfd(struct vr_io *io, struct error *err)
{
    int result = open_common(io, false, err);
    struct loop *l = io->state;
    struct epoll_event event = {.events = EPOLLIN};
    if (!result) {
        l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        l->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (l->epoll_fd < 0 || l->event_fd < 0 ||
            epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->event_fd, &event))
            result = error_errno(err, -errno, "epoll with an eventfd");
    }
    if (!result) {
        result = io_uring_register_eventfd(&l->ring, l->event_fd);
        if (result)
            error_errno(err, result, "io_uring_register_eventfd");
    }
    if (result)
        close_loop(io);
    return result;
}

/* The kernel takes the bytes while it is handed the entry (MSG_DONTWAIT: it never keeps one), so
 * that the queue is free afterwards. */
static void flush_loop(struct vr_io *io)
{
    struct loop *l = io->state;
    for (uint32_t i = 0; i < io->out_count; i++) {
        struct vr_io_out *o = &io->outs[i];
        bool named = o->to.any.sa_family != 0;
        l->out_pieces[i] = (struct iovec){(void *)(uintptr_t)o->bytes, o->size};
        l->out[i] = (struct msghdr){.msg_name = named ? &o->to : NULL,
                                    .msg_namelen = named ? vr_address_size(&o->to) : 0,
                                    .msg_iov = &l->out_pieces[i],
                                    .msg_iovlen = 1};
        struct io_uring_sqe *e = entry(l);
        io_uring_prep_sendmsg(e, (int)o->socket, &l->out[i], MSG_DONTWAIT);
        e->flags |= IOSQE_CQE_SKIP_SUCCESS | IOSQE_FIXED_FILE;
        e->user_data = (uint64_t)KIND_SEND << 32;
    }
}

static void forget_queue(struct vr_io *io)
{
    io->out_count = 0;
    io->arena_used = 0;
}

static void flush_now(struct vr_io *io)
{
    struct loop *l = io->state;
    flush_loop(io);
    io_uring_submit(&l->ring);
    forget_queue(io);
}

static void received(struct vr_io *io, struct loop *l, const struct io_uring_cqe *done)
{
    uint32_t socket = (uint32_t)done->user_data;
    if (done->flags & IORING_CQE_F_BUFFER) {
        unsigned index = done->flags >> IORING_CQE_BUFFER_SHIFT;
        struct io_uring_recvmsg_out *out =
            done->res < 0
                ? NULL
                : io_uring_recvmsg_validate(buffer(l, index), done->res, &l->receive_shape);
        if (out && !(out->flags & MSG_TRUNC) && out->namelen <= sizeof(union vr_address)) {
            union vr_address from = {0};
            memcpy(&from, io_uring_recvmsg_name(out), out->namelen);
            unsigned size = io_uring_recvmsg_payload_length(out, done->res, &l->receive_shape);
            vr_io_deliver(io, socket, &from, io_uring_recvmsg_payload(out, &l->receive_shape),
                          size);
        }
        io_uring_buf_ring_add(l->buffer_ring, buffer(l, index), (unsigned)l->buffer_bytes,
                              (unsigned short)index, io_uring_buf_ring_mask(BUFFERS), 0);
        io_uring_buf_ring_advance(l->buffer_ring, 1);
    }
    if (done->res == -EINVAL || done->res == -EBADF || done->res == -EOPNOTSUPP)
        io->receive_error = done->res; /* it would end so for ever */
    else if (!(done->flags & IORING_CQE_F_MORE))
        arm_receive(l, socket);
}

static unsigned reap(struct vr_io *io, struct loop *l)
{
    struct io_uring_cqe *done;
    unsigned head, count = 0, got = 0;
    io_uring_for_each_cqe(&l->ring, head, done)
    {
        count++;
        switch (done->user_data >> 32) {
        case KIND_RECEIVE:
            received(io, l, done);
            got++;
            break;
        case KIND_DISK:
            io->handler.disk(io->handler.context, (uint32_t)done->user_data, done->res);
            got++;
            break;
        case KIND_TIMER:
            l->timer_ns = 0;
            break;
        case KIND_TIMER_MOVED: /* or ended meanwhile, which is told apart */
            break;
        default:
            io->counters.send_failures++;
        }
    }
    io_uring_cq_advance(&l->ring, count);
    return got;
}

static struct __kernel_timespec until(uint64_t deadline_ns)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t wait_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    return (struct __kernel_timespec){.tv_sec = (int64_t)(wait_ns / NS_PER_S),
                                      .tv_nsec = (long long)(wait_ns % NS_PER_S)};
}

/* The kernel reads timer_at while it is handed the entry. */
static void set_timer(struct loop *l, uint64_t deadline_ns)
{
    if (l->timer_ns && l->timer_ns <= deadline_ns)
        return;
    struct io_uring_sqe *e = entry(l);
    l->timer_at = (struct __kernel_timespec){.tv_sec = (int64_t)(deadline_ns / NS_PER_S),
                                             .tv_nsec = (long long)(deadline_ns % NS_PER_S)};
    if (l->timer_ns)
        io_uring_prep_timeout_update(e, &l->timer_at, (uint64_t)KIND_TIMER << 32,
                                     IORING_TIMEOUT_ABS);
    else
        io_uring_prep_timeout(e, &l->timer_at, 0, IORING_TIMEOUT_ABS);
    e->user_data = (uint64_t)(l->timer_ns ? KIND_TIMER_MOVED : KIND_TIMER) << 32;
    l->timer_ns = deadline_ns;
}

static int wait_uring(struct vr_io *io, uint64_t deadline_ns, struct error *err)
{
    struct loop *l = io->state;
    flush_loop(io);
    set_timer(l, deadline_ns);
    int r = io_uring_submit_and_wait(&l->ring, 1);
    forget_queue(io);
    if (r < 0 && r != -ETIME && r != -EINTR && r != -EAGAIN && r != -EBUSY)
        return error_errno(err, r, "io_uring_enter");
    io->counters.waits_empty += reap(io, l) == 0;
    return 0;
}

static int wait_uring_spin(struct vr_io *io, uint64_t deadline_ns, struct error *err)
{
    struct loop *l = io->state;
    flush_now(io);
    for (unsigned idle = 0;; idle++) {
        int r = io_uring_get_events(&l->ring);
        if (r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY)
            return error_errno(err, r, "io_uring_enter");
        if (reap(io, l))
            return 0;
        if (clock_now_ns() >= deadline_ns) {
            io->counters.waits_empty++;
            return 0;
        }
        if (idle % 4 == 3)
            sched_yield();
    }
}

static int wait_behind_eventfd(struct vr_io *io, uint64_t deadline_ns, bool read_it,
                               struct error *err)
{
    struct loop *l = io->state;
    struct epoll_event ready;
    flush_now(io);
    struct __kernel_timespec wait = until(deadline_ns);
    int ms = (int)(wait.tv_sec * 1000 + (wait.tv_nsec + 999999) / 1000000);
    if (epoll_wait(l->epoll_fd, &ready, 1, ms) < 0 && errno != EINTR)
        return error_errno(err, -errno, "epoll_wait");
    uint64_t events;
    if (read_it && read(l->event_fd, &events, sizeof(events)) < 0 && errno != EAGAIN)
        return error_errno(err, -errno, "reading the eventfd");
    io->counters.waits_empty += reap(io, l) == 0;
    return 0;
}

static int wait_eventfd(struct vr_io *io, uint64_t deadline_ns, struct error *err)
{
    return wait_behind_eventfd(io, deadline_ns, true, err);
}

static int wait_eventfd_unread(struct vr_io *io, uint64_t deadline_ns, struct error *err)
{
    return wait_behind_eventfd(io, deadline_ns, false, err);
}

static void write_loop(struct vr_io *io, int fd, const void *bytes, size_t size, uint64_t offset,
                       bool dsync, uint32_t tag)
{
    struct loop *l = io->state;
    struct io_uring_sqe *e = entry(l);
    io_uring_prep_write(e, fd, bytes, (unsigned)size, offset);
    e->rw_flags = dsync && !PLANTED(NO_DSYNC) ? RWF_DSYNC : 0;
    e->user_data = (uint64_t)KIND_DISK << 32 | tag;
}

static void sync_loop(struct vr_io *io, int fd, uint32_t tag)
{
    struct loop *l = io->state;
    struct io_uring_sqe *e = entry(l);
    io_uring_prep_fsync(e, fd, IORING_FSYNC_DATASYNC);
    if (PLANTED(NO_SYNC))
        io_uring_prep_nop(e);
    e->user_data = (uint64_t)KIND_DISK << 32 | tag;
}

const struct vr_io_way vr_io_uring = {
    .name = "uring",
    .summary = "one io_uring: multishot receives, provided buffers, one call per iteration",
    .open = open_deferred,
    .close = close_loop,
    .flush = flush_now,
    .wait = wait_uring,
    .write = write_loop,
    .sync = sync_loop,
};

const struct vr_io_way vr_io_uring_tc = {
    .name = "uring+tc",
    .summary = "as uring; prepares for all peers are sent once and copied by eBPF at tc egress",
    .broadcasts = true,
    .open = open_deferred,
    .close = close_loop,
    .flush = flush_now,
    .wait = wait_uring,
    .write = write_loop,
    .sync = sync_loop,
};

const struct vr_io_way vr_io_uring_xdp = {
    .name = "uring+xdp",
    .summary = "as uring+tc; in memory, backups' prepares are also acknowledged by eBPF at XDP",
    .broadcasts = true,
    .answers = true,
    .open = open_deferred,
    .close = close_loop,
    .flush = flush_now,
    .wait = wait_uring,
    .write = write_loop,
    .sync = sync_loop,
};

const struct vr_io_way vr_io_uring_spin = {
    .name = "uring-spin",
    .summary = "as uring, but never sleeps",
    .open = open_deferred,
    .close = close_loop,
    .flush = flush_now,
    .wait = wait_uring_spin,
    .write = write_loop,
    .sync = sync_loop,
};

const struct vr_io_way vr_io_uring_eventfd = {
    .name = "uring-eventfd",
    .summary = "io_uring behind an eventfd in an epoll set",
    .open = open_eventfd,
    .close = close_loop,
    .flush = flush_now,
    .wait = wait_eventfd,
    .write = write_loop,
    .sync = sync_loop,
};

const struct vr_io_way vr_io_uring_eventfd_unread = {
    .name = "uring-eventfd-unread",
    .summary = "the same with a known mistake: the eventfd is never read, epoll_wait never waits",
    .open = open_eventfd,
    .close = close_loop,
    .flush = flush_now,
    .wait = wait_eventfd_unread,
    .write = write_loop,
    .sync = sync_loop,
};

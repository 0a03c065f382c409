/* SPDX-License-Identifier: MIT */
/*
 * epoll with recvmmsg and sendmmsg, and the same without sleeping (spin).  Writes go through a ring
 * beside, whose descriptor is in the same epoll set; where there is no io_uring they are made at
 * once, and everything waits for them.
 *
 * While packets come one after the other, and one socket is all there is to wait for, the wait is
 * recvmmsg itself: one call less, and no timer that is set and taken back each time (two writes to
 * the clock's registers, which leave the guest on a virtual machine; the socket's own limit counts
 * in ticks and costs nothing).  When nothing has come for a while, epoll keeps the time.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/portable.h"
#include "vr/core/planted.h"
#include "vr/net/io_ways.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define READY_MAX 128
#define DONE_MAX 512
#define DISK_READY UINT32_MAX
#define SINGLES_LEAST 16 /* so many turns in a row brought one packet: the next will, too */
#define LOOK_EVERY 8
#define LULL_NS NS_PER_MS /* so long nothing comes: the socket is quiet */
#define STREAK_LEAST 4

struct loop {
    int epoll_fd;
    struct vr_disk_ring *ring;
    struct mmsghdr in[VR_IO_RECEIVE_MAX], out[VR_IO_RECEIVE_MAX];
    struct iovec in_pieces[VR_IO_RECEIVE_MAX], out_pieces[VR_IO_RECEIVE_MAX];
    union vr_address from[VR_IO_RECEIVE_MAX];
    unsigned char *buffers;
    /* Writes made at once, to be told at the next wait. */
    struct {
        uint32_t tag;
        int result;
    } done[DONE_MAX];
    uint32_t done_count;
    uint32_t again; /* spin: which socket is next */
    /* The last wait: when it began, and whether something came. */
    uint64_t waited_ns;
    unsigned came;
    unsigned streak;  /* waits in a row that something ended soon */
    unsigned singles; /* turns in a row that brought one packet */
};

int vr_io_write_now(int fd, const void *bytes, size_t size, uint64_t offset, bool dsync)
{
    struct iovec piece = {(void *)(uintptr_t)bytes, size};
    ssize_t written;
    do
        written =
            pwritev2(fd, &piece, 1, (off_t)offset, dsync && !PLANTED(NO_DSYNC) ? RWF_DSYNC : 0);
    while (written < 0 && errno == EINTR);
    return written < 0 ? -errno : (int)written;
}

int vr_io_sync_now(int fd)
{
    return !PLANTED(NO_SYNC) && fdatasync(fd) ? -errno : 0;
}

static int watch(struct loop *l, int fd, uint32_t index, struct error *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event))
        return error_errno(err, -errno, "epoll_ctl");
    return 0;
}

static void close_loop(struct vr_io *io)
{
    struct loop *l = io->state;
    if (l->epoll_fd >= 0)
        close(l->epoll_fd);
    vr_disk_ring_free(l->ring);
    free(l->buffers);
    free(l);
    io->state = NULL;
}

/* Receives and sends that must not wait say so each time. */
static int let_wait(int fd, struct error *err)
{
    struct timeval most = {.tv_usec = LULL_NS / NS_PER_US};
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)))
        return error_errno(err, -errno, "a socket that waits");
    return 0;
}

static int open_loop(struct vr_io *io, struct error *err)
{
    struct loop *l = memory_zalloc(1, sizeof(*l));
    io->state = l;
    l->buffers = memory_alloc(VR_IO_RECEIVE_MAX * io->datagram_bytes);
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int result = l->epoll_fd < 0 ? error_errno(err, -errno, "epoll_create1") : 0;
    for (uint32_t i = 0; i < io->socket_count && !result; i++)
        result = watch(l, io->sockets[i], i, err);
    if (io->socket_count == 1 && !result)
        result = let_wait(io->sockets[0], err);
    l->ring = io->with_disk && !result ? vr_disk_ring_new() : NULL;
    if (l->ring && !result)
        result = watch(l, vr_disk_ring_fd(l->ring), DISK_READY, err);
    for (unsigned i = 0; i < VR_IO_RECEIVE_MAX; i++) {
        l->in_pieces[i] = (struct iovec){l->buffers + i * io->datagram_bytes, io->datagram_bytes};
        l->in[i].msg_hdr =
            (struct msghdr){.msg_name = &l->from[i], .msg_iov = &l->in_pieces[i], .msg_iovlen = 1};
    }
    if (result)
        close_loop(io);
    return result;
}

/* One datagram by the call that has the least around it. */
static void send_one(struct vr_io *io, const struct vr_io_out *o)
{
    bool named = o->to.any.sa_family != 0;
    ssize_t sent;
    do
        sent = sendto(io->sockets[o->socket], o->bytes, o->size, MSG_DONTWAIT,
                      named ? &o->to.any : NULL, named ? vr_address_size(&o->to) : 0);
    while (sent < 0 && errno == EINTR);
    io->counters.send_failures += sent < 0;
}

/* Sends outs[first..first + count), all of one socket. */
static void send_run(struct vr_io *io, struct loop *l, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct vr_io_out *o = &io->outs[first + i];
        bool named = o->to.any.sa_family != 0;
        l->out_pieces[i] = (struct iovec){(void *)(uintptr_t)o->bytes, o->size};
        l->out[i].msg_hdr = (struct msghdr){.msg_name = named ? &o->to : NULL,
                                            .msg_namelen = named ? vr_address_size(&o->to) : 0,
                                            .msg_iov = &l->out_pieces[i],
                                            .msg_iovlen = 1};
    }
    int fd = io->sockets[io->outs[first].socket];
    for (uint32_t sent = 0; sent < count;) {
        int got = sendmmsg(fd, l->out + sent, count - sent, MSG_DONTWAIT);
        if (got > 0) {
            sent += (uint32_t)got;
            continue;
        }
        /* A full buffer, or a word that somebody's port is closed: this one counts as lost. */
        if (errno != EINTR) {
            io->counters.send_failures++;
            sent++;
        }
    }
}

static void flush_loop(struct vr_io *io)
{
    struct loop *l = io->state;
    for (uint32_t first = 0; first < io->out_count;) {
        uint32_t count = 1;
        while (first + count < io->out_count && count < VR_IO_RECEIVE_MAX &&
               io->outs[first + count].socket == io->outs[first].socket)
            count++;
        if (count == 1)
            send_one(io, &io->outs[first]);
        else
            send_run(io, l, first, count);
        first += count;
    }
    io->out_count = 0;
    io->arena_used = 0;
    if (l->ring)
        vr_disk_ring_submit(l->ring);
}

/* One call's worth of datagrams; how many. */
static unsigned receive(struct vr_io *io, struct loop *l, uint32_t socket, int how)
{
    for (unsigned i = 0; i < VR_IO_RECEIVE_MAX; i++)
        l->in[i].msg_hdr.msg_namelen = sizeof(l->from[i]);
    int got = recvmmsg(io->sockets[socket], l->in, io->socket_count > 1 ? 4 : VR_IO_RECEIVE_MAX,
                       how, NULL);
    for (int i = 0; i < got; i++)
        if (!(l->in[i].msg_hdr.msg_flags & MSG_TRUNC))
            vr_io_deliver(io, socket, &l->from[i], l->in_pieces[i].iov_base, l->in[i].msg_len);
    return got > 0 ? (unsigned)got : 0;
}

static unsigned tell_done(struct vr_io *io, struct loop *l)
{
    uint32_t count = l->done_count;
    if (l->ring)
        return vr_disk_ring_reap(l->ring, &io->handler);
    /* The handler may write again: what it adds stays for the next time. */
    for (uint32_t i = 0; i < count; i++)
        io->handler.disk(io->handler.context, l->done[i].tag, l->done[i].result);
    l->done_count -= count;
    memmove(l->done, l->done + count, l->done_count * sizeof(l->done[0]));
    return count;
}

/* The same for one datagram. */
static unsigned receive_one(struct vr_io *io, struct loop *l)
{
    socklen_t size = sizeof(l->from[0]);
    ssize_t got =
        recvfrom(io->sockets[0], l->buffers, io->datagram_bytes, MSG_TRUNC, &l->from[0].any, &size);
    if (got >= 0 && (size_t)got <= io->datagram_bytes)
        vr_io_deliver(io, 0, &l->from[0], l->buffers, (size_t)got);
    return got >= 0;
}

/* Waits in the receive itself.  Where packets have come one by one, one is taken; now and then it
 * is looked whether there are more by now. */
static void wait_in_receive(struct vr_io *io, struct loop *l)
{
    l->singles = l->came == 1 ? l->singles + 1 : 0;
    bool look = l->singles < SINGLES_LEAST || l->singles % LOOK_EVERY == 0;
    l->came = look ? receive(io, l, 0, MSG_WAITFORONE) : receive_one(io, l);
    io->counters.waits_empty += l->came == 0;
}

/* A wait of a few ticks more than LULL_NS must do no harm. */
static bool packets_flow(const struct vr_io *io, struct loop *l, uint64_t now_ns,
                         uint64_t deadline_ns)
{
    /* A few at a time are no flow: that wait would end by its limit, for nothing. */
    l->streak = l->came && now_ns - l->waited_ns < LULL_NS ? l->streak + 1 : 0;
    bool flow = l->streak >= STREAK_LEAST && io->socket_count == 1 &&
                deadline_ns >= now_ns + 2 * LULL_NS && !l->done_count &&
                !(l->ring && vr_disk_ring_busy(l->ring));
    l->waited_ns = now_ns;
    return flow;
}

static int wait_epoll(struct vr_io *io, uint64_t deadline_ns, struct error *err)
{
    struct loop *l = io->state;
    struct epoll_event ready[READY_MAX];
    flush_loop(io);
    uint64_t now_ns = clock_now_ns();
    if (packets_flow(io, l, now_ns, deadline_ns)) {
        wait_in_receive(io, l);
        return 0;
    }
    struct timespec wait = timespec_from_ns(deadline_ns > now_ns ? deadline_ns - now_ns : 0);
    if (l->done_count)
        wait = (struct timespec){0};
    int count = epoll_wait_precisely(l->epoll_fd, ready, READY_MAX, &wait);
    if (count < 0 && errno == ENOSYS) /* before Linux 5.11 */
        count = epoll_wait(l->epoll_fd, ready, READY_MAX,
                           (int)(wait.tv_sec * 1000 + (wait.tv_nsec + 999999) / 1000000));
    if (count < 0 && errno != EINTR)
        return error_errno(err, -errno, "epoll_wait");
    unsigned got = l->done_count || l->ring ? tell_done(io, l) : 0;
    for (int i = 0; i < count; i++)
        if (ready[i].data.u32 != DISK_READY)
            got += receive(io, l, ready[i].data.u32, MSG_DONTWAIT);
    l->came = got;
    io->counters.waits_empty += got == 0;
    return 0;
}

static int wait_spin(struct vr_io *io, uint64_t deadline_ns, struct error *err)
{
    struct loop *l = io->state;
    (void)err;
    flush_loop(io);
    for (unsigned idle = 0;; idle++) {
        unsigned got = l->done_count || l->ring ? tell_done(io, l) : 0;
        for (uint32_t i = 0; i < io->socket_count && got < VR_IO_RECEIVE_MAX; i++) {
            got += receive(io, l, l->again, MSG_DONTWAIT);
            l->again = (l->again + 1) % io->socket_count;
        }
        if (got)
            return 0;
        if (clock_now_ns() >= deadline_ns) {
            io->counters.waits_empty++;
            return 0;
        }
        /* Where there are fewer CPUs than spinners, somebody else may have what is waited for. */
        if (idle % 4 == 3)
            sched_yield();
    }
}

static void write_loop(struct vr_io *io, int fd, const void *bytes, size_t size, uint64_t offset,
                       bool dsync, uint32_t tag)
{
    struct loop *l = io->state;
    if (l->ring) {
        vr_disk_ring_write(l->ring, fd, bytes, size, offset, dsync, tag);
        return;
    }
    assert(l->done_count < DONE_MAX);
    l->done[l->done_count].tag = tag;
    l->done[l->done_count++].result = vr_io_write_now(fd, bytes, size, offset, dsync);
}

static void sync_loop(struct vr_io *io, int fd, uint32_t tag)
{
    struct loop *l = io->state;
    if (l->ring) {
        vr_disk_ring_sync(l->ring, fd, tag);
        return;
    }
    assert(l->done_count < DONE_MAX);
    l->done[l->done_count].tag = tag;
    l->done[l->done_count++].result = vr_io_sync_now(fd);
}

const struct vr_io_way vr_io_epoll = {
    .name = "epoll",
    .summary = "epoll, recvmmsg, sendmmsg",
    .open = open_loop,
    .close = close_loop,
    .flush = flush_loop,
    .wait = wait_epoll,
    .write = write_loop,
    .sync = sync_loop,
};

const struct vr_io_way vr_io_spin = {
    .name = "spin",
    .summary = "as epoll, but never sleeps",
    .open = open_loop,
    .close = close_loop,
    .flush = flush_loop,
    .wait = wait_spin,
    .write = write_loop,
    .sync = sync_loop,
};

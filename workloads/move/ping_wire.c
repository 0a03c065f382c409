/* SPDX-License-Identifier: MIT */
/* The ends of a connection for round trips: sockets, pipes and shared memory behind four calls. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "link.h"
#include "ping.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdalign.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { LANE_SLOTS = 256, LANE_BYTES_MAX = 1 << 20, UDP_WAIT_MS = 50, SHM_WAIT_MS = 50 };

/* One writer, one reader.  `written` and `taken` count messages. */
struct ping_lane {
    alignas(128) _Atomic uint64_t written; /* release by the writer, acquired by the reader */
    _Atomic uint32_t sleeps;               /* futex word of the reader: 1 while it is asleep */
    alignas(128) _Atomic uint64_t taken;   /* release by the reader, acquired by the writer */
    alignas(128) unsigned char slots[];
};

static size_t lane_stride(size_t message_bytes)
{
    return (message_bytes + 127) / 128 * 128;
}

static size_t lane_bytes(size_t message_bytes)
{
    return sizeof(struct ping_lane) + LANE_SLOTS * lane_stride(message_bytes);
}

static int lane_put(struct ping_lane *l, const void *message, size_t bytes)
{
    uint64_t at = atomic_load_explicit(&l->written, memory_order_relaxed);
    /* Partner: the release in lane_get. */
    if (at - atomic_load_explicit(&l->taken, memory_order_acquire) == LANE_SLOTS)
        return 0;
    memcpy(l->slots + at % LANE_SLOTS * lane_stride(bytes), message, bytes);
    /* Partner: the acquire in lane_get.  It is sequentially consistent with `sleeps`, so that
     * either the reader sees the message or this end sees that it sleeps. */
    atomic_store(&l->written, at + 1);
    if (atomic_load(&l->sleeps) && atomic_exchange(&l->sleeps, 0))
        syscall(SYS_futex, &l->sleeps, FUTEX_WAKE, 1, NULL, NULL, 0);
    return 1;
}

static int lane_get(struct ping_lane *l, void *message, size_t bytes)
{
    uint64_t at = atomic_load_explicit(&l->taken, memory_order_relaxed);
    if (atomic_load_explicit(&l->written, memory_order_acquire) == at)
        return 0;
    memcpy(message, l->slots + at % LANE_SLOTS * lane_stride(bytes), bytes);
    atomic_store_explicit(&l->taken, at + 1, memory_order_release);
    return 1;
}

static void lane_sleep(struct ping_lane *l, uint64_t limit_ns)
{
    struct timespec limit = timespec_from_ns(limit_ns);
    atomic_store(&l->sleeps, 1);
    if (atomic_load(&l->written) == atomic_load_explicit(&l->taken, memory_order_relaxed))
        syscall(SYS_futex, &l->sleeps, FUTEX_WAIT, 1, &limit, NULL, 0);
    atomic_store(&l->sleeps, 0);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool is_socket(const struct ping_end *e)
{
    return e->transport & (TRANSPORT_TCP | TRANSPORT_UNIX | TRANSPORT_UDP);
}

/* The message is the whole of a datagram, and in a stream what is left of it. */
static int through(struct ping_end *e, ssize_t done, size_t *offset)
{
    if (done < 0)
        return errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED ? 0 : -errno;
    *offset += (size_t)done;
    if (*offset < e->message_bytes)
        return 0;
    *offset = 0;
    return 1;
}

int ping_put(struct ping_end *e, const void *message)
{
    if (e->transport == TRANSPORT_SHM)
        return lane_put(e->out, message, e->message_bytes);
    const char *from = (const char *)message + e->out_offset;
    size_t left = e->message_bytes - e->out_offset;
    int flags = MSG_NOSIGNAL | (e->may_block ? 0 : MSG_DONTWAIT);
    return through(e,
                   is_socket(e) ? send(e->out_fd, from, left, flags) : write(e->out_fd, from, left),
                   &e->out_offset);
}

int ping_get(struct ping_end *e, void *message)
{
    if (e->transport == TRANSPORT_SHM)
        return lane_get(e->in, message, e->message_bytes);
    char *to = (char *)message + e->in_offset;
    size_t left = e->message_bytes - e->in_offset;
    int yes = 1;
    if (e->how.quickack)
        setsockopt(e->in_fd, IPPROTO_TCP, TCP_QUICKACK, &yes, sizeof(yes));
    ssize_t got = is_socket(e) ? recv(e->in_fd, to, left, e->may_block ? 0 : MSG_DONTWAIT)
                               : read(e->in_fd, to, left);
    if (got == 0 && e->transport != TRANSPORT_UDP)
        return -EPIPE;
    return through(e, got, &e->in_offset);
}

void ping_wait(struct ping_end *e, bool wants_room, uint64_t until_ns)
{
    if (e->how.spin) {
        relax();
        return;
    }
    uint64_t now_ns = clock_now_ns(), longest_ns = SHM_WAIT_MS * NS_PER_MS;
    if (until_ns <= now_ns)
        return;
    uint64_t limit_ns = until_ns - now_ns < longest_ns ? until_ns - now_ns : longest_ns;
    if (e->transport == TRANSPORT_SHM) {
        lane_sleep(e->in, wants_room ? NS_PER_US : limit_ns);
        return;
    }
    struct pollfd p[2] = {{.fd = e->in_fd, .events = POLLIN},
                          {.fd = wants_room ? e->out_fd : -1, .events = POLLOUT}};
    struct timespec limit = timespec_from_ns(limit_ns);
    ppoll(p, 2, &limit, NULL);
}

static int set_options(struct ping_end *e, struct error *err)
{
    int yes = 1, poll_us = 50;
    if (e->transport == TRANSPORT_TCP && !e->how.nagle &&
        setsockopt(e->in_fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) < 0)
        return error_errno(err, -errno, "TCP_NODELAY");
    if (e->how.busy_poll &&
        setsockopt(e->in_fd, SOL_SOCKET, SO_BUSY_POLL, &poll_us, sizeof(poll_us)) < 0)
        return error_errno(err, -errno,
                           "--ping=busypoll (SO_BUSY_POLL needs CAP_NET_ADMIN to be raised)");
    /* A datagram may be lost: nobody waits for it for ever. */
    struct timeval limit = {.tv_usec = UDP_WAIT_MS * 1000};
    if (e->transport == TRANSPORT_UDP &&
        setsockopt(e->in_fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
        return error_errno(err, -errno, "SO_RCVTIMEO");
    return 0;
}

static int open_tcp(const struct settings *s, struct ping_pair *p, struct error *err)
{
    struct endpoint at;
    CLEANUP(fd_closep) int listener = -1;
    int r = endpoint_parse("127.0.0.1:0", false, &at, err);
    if (r < 0 || (listener = link_listen(s, &at, err)) < 0)
        return err->code;
    at.length = sizeof(at.address);
    if (getsockname(listener, (struct sockaddr *)&at.address, &at.length) < 0)
        return error_errno(err, -errno, "getsockname");
    p->client.in_fd = link_connect(s, &at, SOCK_STREAM, 5000, err);
    if (p->client.in_fd < 0)
        return p->client.in_fd;
    p->echo.in_fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    return p->echo.in_fd < 0 ? error_errno(err, -errno, "accept") : 0;
}

/* Two sockets that are connected to each other: what others send is not seen. */
static int open_udp(struct ping_pair *p, struct error *err)
{
    struct sockaddr_in at[2] = {0};
    int fds[2] = {-1, -1};
    bool done = true;
    for (int i = 0; i < 2; i++) {
        socklen_t length = sizeof(at[i]);
        at[i] =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        fds[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        done = done && fds[i] >= 0 && bind(fds[i], (struct sockaddr *)&at[i], length) == 0 &&
               getsockname(fds[i], (struct sockaddr *)&at[i], &length) == 0;
    }
    for (int i = 0; done && i < 2; i++)
        done = connect(fds[i], (struct sockaddr *)&at[1 - i], sizeof(at[i])) == 0;
    int code = -errno;
    p->client.in_fd = fds[0];
    p->echo.in_fd = fds[1];
    return done ? 0 : error_errno(err, code, "UDP sockets");
}

static int open_pipes(struct ping_pair *p, struct error *err)
{
    int there[2], back[2];
    if (pipe2(there, O_CLOEXEC) < 0)
        return error_errno(err, -errno, "pipe");
    p->client.out_fd = there[1];
    p->echo.in_fd = there[0];
    if (pipe2(back, O_CLOEXEC) < 0)
        return error_errno(err, -errno, "pipe");
    p->client.in_fd = back[0];
    p->echo.out_fd = back[1];
    for (int i = 0; i < 2; i++) {
        struct ping_end *e = i ? &p->client : &p->echo;
        if (!e->may_block &&
            (fcntl(e->in_fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(e->out_fd, F_SETFL, O_NONBLOCK) < 0))
            return error_errno(err, -errno, "O_NONBLOCK");
    }
    return 0;
}

static int open_shared(const struct settings *s, struct ping_pair *p, struct error *err)
{
    if (s->size > LANE_BYTES_MAX)
        return error_set(err, -EINVAL, "--ping over shm takes messages of up to %d bytes",
                         LANE_BYTES_MAX);
    size_t each = lane_bytes(s->size);
    p->shared_bytes = 2 * each;
    void *at =
        mmap(NULL, p->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return error_errno(err, -errno, "%zu bytes of shared memory", p->shared_bytes);
    p->shared = at;
    p->client.out = p->echo.in = at;
    p->client.in = p->echo.out = (struct ping_lane *)(void *)((char *)at + each);
    return 0;
}

int ping_pair_open(const struct settings *s, const struct ping_how *how, struct ping_pair *ret,
                   struct error *err)
{
    int ends[2], r = 0;
    struct ping_end end = {.transport = s->transport,
                           .how = *how,
                           .in_fd = -1,
                           .out_fd = -1,
                           .message_bytes = s->size};
    *ret = (struct ping_pair){.client = end, .echo = end};
    ret->echo.may_block = !how->spin;
    ret->client.may_block = !how->spin && !s->rate;
    if (s->transport == TRANSPORT_TCP)
        r = open_tcp(s, ret, err);
    else if (s->transport == TRANSPORT_UDP)
        r = open_udp(ret, err);
    else if (s->transport == TRANSPORT_PIPE)
        r = open_pipes(ret, err);
    else if (s->transport == TRANSPORT_SHM)
        r = open_shared(s, ret, err);
    else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        r = error_errno(err, -errno, "socketpair");
    else {
        ret->client.in_fd = ends[0];
        ret->echo.in_fd = ends[1];
    }
    if (r == 0 && s->transport != TRANSPORT_PIPE && s->transport != TRANSPORT_SHM) {
        ret->client.out_fd = ret->client.in_fd;
        ret->echo.out_fd = ret->echo.in_fd;
        r = set_options(&ret->client, err);
        r = r ? r : set_options(&ret->echo, err);
    }
    if (r < 0)
        ping_pair_close(ret);
    return r;
}

void ping_end_close(struct ping_end *e)
{
    if (e->out_fd == e->in_fd)
        e->out_fd = -1;
    fd_closep(&e->in_fd);
    fd_closep(&e->out_fd);
}

void ping_pair_close(struct ping_pair *p)
{
    ping_end_close(&p->client);
    ping_end_close(&p->echo);
    if (p->shared)
        munmap(p->shared, p->shared_bytes);
    p->shared = NULL;
}

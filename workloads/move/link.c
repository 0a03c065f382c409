/* SPDX-License-Identifier: MIT */
/* Connections: see link.h. */
#include "link.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>

static int wire_open(const struct settings *s, struct wire *w, struct error *err)
{
    int ends[2];
    if (s->transport == TRANSPORT_UNIX) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
            return error_errno(err, -errno, "socketpair");
        w->send_fd = ends[0];
        w->receive_fd = ends[1];
        int r = link_apply(s, ends[0], err);
        return r ? r : link_apply(s, ends[1], err);
    }
    if (s->transport == TRANSPORT_PIPE) {
        if (pipe2(ends, O_CLOEXEC) < 0)
            return error_errno(err, -errno, "pipe");
        w->send_fd = ends[1];
        w->receive_fd = ends[0];
        int bytes = s->buffer_bytes ? (int)s->buffer_bytes : 1 << 20;
        if (fcntl(ends[1], F_SETPIPE_SZ, bytes) < 0 && s->buffer_bytes)
            return error_errno(err, -errno,
                               "--buffer %d for a pipe (/proc/sys/fs/pipe-max-size is the limit)",
                               bytes);
    }
    if (s->send->shared_bytes) {
        size_t bytes = s->send->shared_bytes(s);
        void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            return error_errno(err, -errno, "%zu bytes of shared memory", bytes);
        w->shared = at;
        w->shared_bytes = bytes;
    }
    return 0;
}

int wires_new(const struct settings *s, struct wire **ret_wires, struct error *err)
{
    struct wire *wires = memory_zalloc(s->threads, sizeof(*wires));
    for (size_t i = 0; i < s->threads; i++)
        wires[i].send_fd = wires[i].receive_fd = -1;
    for (size_t i = 0; i < s->threads; i++) {
        int r = wire_open(s, &wires[i], err);
        if (r < 0) {
            wires_free(s, wires);
            return r;
        }
    }
    *ret_wires = wires;
    return 0;
}

void wires_free(const struct settings *s, struct wire *wires)
{
    for (size_t i = 0; wires && i < s->threads; i++) {
        fd_closep(&wires[i].send_fd);
        fd_closep(&wires[i].receive_fd);
        if (wires[i].shared)
            munmap(wires[i].shared, wires[i].shared_bytes);
    }
    free(wires);
}

int endpoint_parse(const char *text, bool for_listening, struct endpoint *ret, struct error *err)
{
    CLEANUP(memory_freep) char *copy = memory_strdup(text);
    char *host = copy, *port = strrchr(copy, ':');
    if (port)
        *port++ = 0;
    else if (for_listening) {
        port = copy;
        host = NULL;
    } else
        return error_set(err, -EINVAL, "'%s' has no port; write HOST:PORT", text);
    if (host && host[0] == '[' && host[strlen(host) - 1] == ']') {
        host[strlen(host) - 1] = 0;
        host++;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = for_listening ? AI_PASSIVE : 0};
    struct addrinfo *list = NULL;
    int r = getaddrinfo(host && *host ? host : NULL, port, &hints, &list);
    if (r)
        return error_set(err, -EINVAL, "'%s': %s", text, gai_strerror(r));
    memcpy(&ret->address, list->ai_addr, list->ai_addrlen);
    ret->length = list->ai_addrlen;
    freeaddrinfo(list);
    return 0;
}

void endpoint_set_port(struct endpoint *e, uint16_t port)
{
    if (e->address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&e->address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)&e->address)->sin_port = htons(port);
}

uint16_t endpoint_port(const struct endpoint *e)
{
    return ntohs(e->address.ss_family == AF_INET6
                     ? ((const struct sockaddr_in6 *)&e->address)->sin6_port
                     : ((const struct sockaddr_in *)&e->address)->sin_port);
}

int link_apply(const struct settings *s, int fd, struct error *err)
{
    if (s->cc && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, s->cc, (socklen_t)strlen(s->cc)) < 0) {
        char there[256] = "";
        int code = -errno;
        bool refused = code == -EPERM;
        file_read_line(refused ? "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
                               : "/proc/sys/net/ipv4/tcp_available_congestion_control",
                       there, sizeof(there));
        return error_errno(err, code,
                           refused ? "--cc %s (you may choose: %s; or --cc fair)"
                                   : "--cc %s (available: %s)",
                           s->cc, there);
    }
    int bytes = (int)s->buffer_bytes;
    if (bytes && (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) < 0 ||
                  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) < 0))
        return error_errno(err, -errno, "--buffer %d", bytes);
    return 0;
}

/* The socket of a server that has just ended may take a moment to be gone. */
static int bind_and_listen(int fd, const struct endpoint *at)
{
    enum { TRIES = 40, PAUSE_US = 50000 };
    for (int tries = 1;; tries++) {
        if (bind(fd, (const struct sockaddr *)&at->address, at->length) == 0 &&
            listen(fd, THREADS_MAX) == 0)
            return 0;
        if (errno != EADDRINUSE || tries == TRIES)
            return -errno;
        usleep(PAUSE_US);
    }
}

int link_listen(const struct settings *s, const struct endpoint *at, struct error *err)
{
    int yes = 1;
    int fd = socket(at->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_errno(err, -errno, "a socket to listen on");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    int r = link_apply(s, fd, err);
    int code = r == 0 ? bind_and_listen(fd, at) : 0;
    if (code < 0)
        r = error_errno(err, code, "listening on port %u", endpoint_port(at));
    if (r < 0) {
        close(fd);
        return r;
    }
    return fd;
}

int link_bind_udp(const struct settings *s, const struct endpoint *at, struct error *err)
{
    struct timeval limit = {.tv_usec = 50000};
    int fd = socket(at->address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_errno(err, -errno, "a UDP socket");
    int r = link_apply(s, fd, err);
    if (r == 0 && (bind(fd, (const struct sockaddr *)&at->address, at->length) < 0 ||
                   setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0))
        r = error_errno(err, -errno, "binding a UDP socket");
    if (r < 0) {
        close(fd);
        return r;
    }
    return fd;
}

static int finish_connect(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int code = 0, ready;
    socklen_t length = sizeof(code);
    do
        ready = poll(&p, 1, timeout_ms);
    while (ready < 0 && errno == EINTR);
    if (ready == 0)
        return -ETIMEDOUT;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length) < 0)
        return -errno;
    return -code;
}

int link_connect(const struct settings *s, const struct endpoint *to, int type, int timeout_ms,
                 struct error *err)
{
    CLEANUP(fd_closep)
    int fd = socket(to->address.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_errno(err, -errno, "a socket");
    int r = link_apply(s, fd, err);
    if (r < 0)
        return r;
    r = connect(fd, (const struct sockaddr *)&to->address, to->length) < 0 ? -errno : 0;
    if (r == -EINPROGRESS)
        r = finish_connect(fd, timeout_ms);
    unsigned port = endpoint_port(to);
    if (r == -ETIMEDOUT)
        return error_set(err, r,
                         "no answer from port %u within %d s: its listen queue is full, or "
                         "a firewall drops the packets",
                         port, timeout_ms / 1000);
    if (r == -ECONNREFUSED)
        return error_set(err, r,
                         "nothing listens on port %u; start 'assay-move --listen %u' there first",
                         port, port);
    if (r < 0)
        return error_errno(err, r, "connecting to port %u", port);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    int result = fd;
    fd = -1;
    return result;
}

bool link_tcp_read(int fd, struct link_tcp *ret)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof(info);
    if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
        return false;
    ret->segments = info.tcpi_data_segs_out;
    ret->segment_bytes = info.tcpi_bytes_sent;
    ret->retransmits = info.tcpi_total_retrans;
    return true;
}

int link_failed(const struct link *l, const char *call, int code, struct error *err)
{
    if (code == -EPIPE || code == -ECONNRESET)
        return error_set(err, code, "connection %u: the receiver is gone (%s: %s)", l->index, call,
                         strerror(-code));
    if (code == -EMSGSIZE)
        return error_set(err, code, "a message of %zu bytes is too long for %s", l->message_bytes,
                         transport_text(l->transport));
    if (code == -ENOBUFS)
        return error_set(err, code,
                         "connection %u: %s: no memory for zero-copy: raise the limit on locked "
                         "memory (ulimit -l) or net.core.optmem_max, or use smaller messages",
                         l->index, call);
    return error_errno(err, code, "connection %u: %s", l->index, call);
}

int link_wait(const struct link *l, short events, int timeout_ms)
{
    struct pollfd p = {.fd = l->fd, .events = events};
    int r = poll(&p, 1, timeout_ms);
    return r < 0 && errno != EINTR ? -errno : r < 0 ? 0 : r;
}

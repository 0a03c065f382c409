/* SPDX-License-Identifier: MIT */
/*
 * Sending by reference through a pipe: vmsplice (user pages), sendfile and splice (a file's pages).
 * The kernel queues references to the sender's own pages; nothing is copied before the receiver
 * takes the data.
 *
 * The pages are huge ones where the kernel gives them: neighbours in one make one fragment of a
 * packet instead of one each.
 *
 * The price is that nobody tells the sender when a page is free again.  An acknowledgement says
 * only that the data lies in the receiver's queue, and over loopback that queue holds the very
 * pages.  So with --verify, where every message has another content, the sender goes through so
 * many buffers that no queue on the way could hold them all before it comes to one again.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "settings.h"
#include "variants.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#define PIPE_BYTES (1 << 20)
#define PAGE 4096UL

struct splicer {
    int pipe[2]; /* read end, write end; -1 when the link is a pipe itself */
    size_t slot;
};

/* The third number of tcp_rmem or tcp_wmem: how far the kernel lets a buffer grow. */
static size_t tcp_buffer_max(const char *path)
{
    char line[128];
    unsigned long low, usual, most;
    if (file_read_line(path, line, sizeof(line)) &&
        sscanf(line, "%lu %lu %lu", &low, &usual, &most) == 3)
        return most;
    return 64UL << 20;
}

static size_t socket_bytes(int fd, int option)
{
    int bytes = 0;
    socklen_t length = sizeof(bytes);
    return getsockopt(fd, SOL_SOCKET, option, &bytes, &length) == 0 ? (size_t)bytes : 0;
}

/* The most that can be on its way between a buffer's sending and its last reading. */
static size_t bytes_under_way(const struct link *l)
{
    size_t bytes = PIPE_BYTES;
    if (l->transport == TRANSPORT_PIPE) {
        int size = fcntl(l->fd, F_GETPIPE_SZ);
        return size > 0 ? (size_t)size : bytes;
    }
    size_t own = socket_bytes(l->fd, SO_SNDBUF), theirs = socket_bytes(l->fd, SO_RCVBUF);
    if (l->transport != TRANSPORT_UNIX && !l->settings->buffer_bytes) {
        own = tcp_buffer_max("/proc/sys/net/ipv4/tcp_wmem");
        theirs = tcp_buffer_max("/proc/sys/net/ipv4/tcp_rmem");
    }
    return bytes + own + theirs;
}

/* Each page of a message takes one of the pipe's buffers, whatever it holds. */
static int open_pipe(struct link *l, struct splicer *s, struct error *err)
{
    if (pipe2(s->pipe, O_CLOEXEC) < 0)
        return error_errno(err, -errno, "a pipe");
    int wanted = (int)(l->message_bytes + PAGE > PIPE_BYTES ? PIPE_BYTES : l->message_bytes + PAGE);
    if (wanted > 16 * (int)PAGE && fcntl(s->pipe[1], F_SETPIPE_SZ, wanted) < 0 && errno != EPERM)
        return error_errno(err, -errno, "a pipe of %d bytes", wanted);
    return 0;
}

static int open_splicer(struct link *l, bool with_file, bool with_pipe, struct error *err)
{
    size_t slots = 1;
    if (l->fill)
        slots = bytes_under_way(l) / l->message_bytes + 2;
    int r = source_open(l, SOURCE_HUGE, slots, with_file, err);
    if (r < 0)
        return r;
    struct splicer *s = memory_zalloc(1, sizeof(*s));
    s->pipe[0] = s->pipe[1] = -1;
    l->state = s;
    return with_pipe && l->transport != TRANSPORT_PIPE ? open_pipe(l, s, err) : 0;
}

static int open_vmsplice(struct link *l, struct error *err)
{
    return open_splicer(l, false, true, err);
}

static int open_sendfile(struct link *l, struct error *err)
{
    return open_splicer(l, true, false, err);
}

static int open_splice(struct link *l, struct error *err)
{
    return open_splicer(l, true, true, err);
}

static int close_splicer(struct link *l, struct error *err)
{
    (void)err;
    struct splicer *s = l->state;
    if (s) {
        fd_closep(&s->pipe[0]);
        fd_closep(&s->pipe[1]);
    }
    free(s);
    l->state = NULL;
    source_close(l);
    return 0;
}

static inline size_t next_slot(struct link *l, struct splicer *s)
{
    size_t slot = s->slot;
    if (++s->slot == l->source.slots)
        s->slot = 0;
    source_fill(l, slot);
    return slot;
}

/* Out of the pipe into the socket, all of it. */
static int drain_pipe(struct link *l, struct splicer *s, size_t bytes, uint64_t *calls,
                      struct error *err)
{
    while (bytes) {
        ssize_t r = splice(s->pipe[0], NULL, l->fd, NULL, bytes, SPLICE_F_MOVE);
        ++*calls;
        if (__builtin_expect(r <= 0, 0)) {
            if (r < 0 && errno == EINTR)
                continue;
            return link_failed(l, "splice", r < 0 ? -errno : -EPIPE, err);
        }
        bytes -= (size_t)r;
    }
    return 0;
}

static int run_vmsplice(struct link *l, struct error *err)
{
    struct splicer *s = l->state;
    const bool straight = l->transport == TRANSPORT_PIPE;
    const int into = straight ? l->fd : s->pipe[1];
    while (link_going(l)) {
        struct iovec left = source_pieces(l, next_slot(l, s))[0];
        uint64_t calls = 0;
        while (left.iov_len) {
            ssize_t r = vmsplice(into, &left, 1, 0);
            calls++;
            if (__builtin_expect(r < 0, 0)) {
                if (errno == EINTR)
                    continue;
                return link_failed(l, "vmsplice", -errno, err);
            }
            left.iov_base = (char *)left.iov_base + r;
            left.iov_len -= (size_t)r;
            int code = straight ? 0 : drain_pipe(l, s, (size_t)r, &calls, err);
            if (code)
                return code;
        }
        link_count(l, 1, l->message_bytes, calls);
    }
    return 0;
}

static int run_sendfile(struct link *l, struct error *err)
{
    struct splicer *s = l->state;
    while (link_going(l)) {
        off_t at = (off_t)(next_slot(l, s) * l->source.stride);
        size_t left = l->message_bytes;
        uint64_t calls = 0;
        while (left) {
            ssize_t r = sendfile(l->fd, l->source.file_fd, &at, left);
            calls++;
            if (__builtin_expect(r <= 0, 0)) {
                if (r < 0 && errno == EINTR)
                    continue;
                return link_failed(l, "sendfile", r < 0 ? -errno : -EIO, err);
            }
            left -= (size_t)r;
        }
        link_count(l, 1, l->message_bytes, calls);
    }
    return 0;
}

static int run_splice(struct link *l, struct error *err)
{
    struct splicer *s = l->state;
    const bool straight = l->transport == TRANSPORT_PIPE;
    const int into = straight ? l->fd : s->pipe[1];
    while (link_going(l)) {
        off_t at = (off_t)(next_slot(l, s) * l->source.stride);
        size_t left = l->message_bytes;
        uint64_t calls = 0;
        while (left) {
            ssize_t r = splice(l->source.file_fd, &at, into, NULL, left, SPLICE_F_MOVE);
            calls++;
            if (__builtin_expect(r <= 0, 0)) {
                if (r < 0 && errno == EINTR)
                    continue;
                return link_failed(l, "splice", r < 0 ? -errno : -EIO, err);
            }
            left -= (size_t)r;
            int code = straight ? 0 : drain_pipe(l, s, (size_t)r, &calls, err);
            if (code)
                return code;
        }
        link_count(l, 1, l->message_bytes, calls);
    }
    return 0;
}

const struct variant variant_vmsplice = {
    .name = "vmsplice",
    .summary = "the sender's pages by vmsplice() into a pipe, splice() into the socket",
    .role = ROLE_SEND,
    .transports = TRANSPORT_STREAM_SOCKETS | TRANSPORT_PIPE,
    .claim = {COPIES_NONE, COPIES_NOT_MY_SIDE, "the queue holds the sender's own pages"},
    .open = open_vmsplice,
    .run = run_vmsplice,
    .close = close_splicer,
};

const struct variant variant_sendfile = {
    .name = "sendfile",
    .summary = "the pages of a file in memory by sendfile()",
    .role = ROLE_SEND,
    .transports = TRANSPORT_STREAM_SOCKETS | TRANSPORT_PIPE,
    .claim = {COPIES_NONE, COPIES_NOT_MY_SIDE, "the queue holds the file's own pages"},
    .open = open_sendfile,
    .run = run_sendfile,
    .close = close_splicer,
};

const struct variant variant_splice = {
    .name = "splice",
    .summary = "the pages of a file in memory by splice() into a pipe and on into the socket",
    .role = ROLE_SEND,
    .transports = TRANSPORT_STREAM_SOCKETS | TRANSPORT_PIPE,
    .claim = {COPIES_NONE, COPIES_NOT_MY_SIDE, "the queue holds the file's own pages"},
    .open = open_splice,
    .run = run_splice,
    .close = close_splicer,
};

/* SPDX-License-Identifier: MIT */
/*
 * pipe: the kernel's pipe as a queue; a measure for the others.
 *
 * Progress   blocking inside the kernel (its lock), otherwise each call is one system call.
 * Order      first in, first out; the kernel takes its lock for each call.
 * Memory     the pipe's capacity in the kernel (64 KiB unless changed).
 * Failure    try_push fails only when the pipe has no room for the item, try_pop when it is empty.
 *
 * Why items stay whole: a write of at most PIPE_BUF bytes is atomic (POSIX), and item sizes are
 * powers of two up to PIPE_BUF, so that no item lies across two pages of the pipe and every read of
 * a multiple of the item size returns whole items.
 */
#ifndef ASSAY_QUEUE_PIPE_H
#define ASSAY_QUEUE_PIPE_H

#include "atomics.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

struct pipe_queue {
    int read_fd, write_fd;
};

static inline bool pipe_item_bytes_valid(size_t bytes)
{
    return bytes >= 8 && bytes <= PIPE_BUF && (bytes & (bytes - 1)) == 0;
}

/* 0 or a negative errno. */
static inline int pipe_init(struct pipe_queue *q, uint64_t capacity_bytes)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    if (capacity_bytes > 65536)
        fcntl(ends[1], F_SETPIPE_SZ, (int)capacity_bytes); /* what the system allows will do */
    *q = (struct pipe_queue){ends[0], ends[1]};
    return 0;
}

static inline void pipe_done(struct pipe_queue *q)
{
    close(q->read_fd);
    close(q->write_fd);
}

/* Pushes as many of the items as one atomic write takes; 0 when there is no room (after waiting
 * for some when `wait`). */
static inline size_t pipe_push_some(struct pipe_queue *q, const void *items, size_t count,
                                    size_t bytes, bool wait)
{
    if (count > PIPE_BUF / bytes)
        count = PIPE_BUF / bytes;
    ssize_t done = write(q->write_fd, items, count * bytes);
    if (done < 0 && wait)
        poll(&(struct pollfd){.fd = q->write_fd, .events = POLLOUT}, 1, -1);
    return done < 0 ? 0 : (size_t)done / bytes;
}

static inline size_t pipe_pop_some(struct pipe_queue *q, void *items, size_t count, size_t bytes,
                                   bool wait)
{
    ssize_t done = read(q->read_fd, items, count * bytes);
    if (done < 0 && wait)
        poll(&(struct pollfd){.fd = q->read_fd, .events = POLLIN}, 1, -1);
    return done < 0 ? 0 : (size_t)done / bytes;
}

#endif

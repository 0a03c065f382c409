/* SPDX-License-Identifier: MIT */
/*
 * eventfd: a ring whose items and free slots are counted by two eventfds; the kernel's semaphores
 * as a queue, a measure for the others.
 *
 * Progress   a system call for each operation; the ring behind is mpmc, with its guarantees.
 * Order      first in, first out; linearizable where the ring is (mpmc.h): the counters only hold
 *            back who would find nothing, so a try_pop may fail while a push has placed its item
 * and not yet counted it, that is, before that push has returned. Memory     that of the ring.
 *
 * Why a pop that got a count finds an item: a push places its item before it adds to the count.
 */
#ifndef ASSAY_QUEUE_EVENTFD_H
#define ASSAY_QUEUE_EVENTFD_H

#include "mpmc.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct eventfd_queue {
    struct mpmc *ring;
    int items_fd, room_fd;
};

/* 0 or a negative errno.  `memory` is as for mpmc_init. */
static inline int eventfd_queue_init(struct eventfd_queue *q, void *memory, uint64_t capacity,
                                     size_t item_bytes)
{
    q->ring = mpmc_init(memory, capacity, item_bytes);
    q->items_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK);
    q->room_fd = eventfd((unsigned)mpmc_capacity(capacity, item_bytes),
                         EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK);
    return q->items_fd < 0 || q->room_fd < 0 ? -errno : 0;
}

static inline void eventfd_queue_done(struct eventfd_queue *q)
{
    close(q->items_fd);
    close(q->room_fd);
}

/* Takes up to `count` from a counter, waiting for the first when `wait`. */
static inline size_t eventfd_take(int fd, size_t count, bool wait)
{
    size_t taken = 0;
    while (taken < count) {
        uint64_t one;
        if (read(fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
            taken++;
        else if (errno == EAGAIN && wait && taken == 0)
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
        else if (errno != EINTR)
            break;
    }
    return taken;
}

static inline void eventfd_give(int fd, uint64_t count)
{
    while (write(fd, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
}

static inline size_t eventfd_push_some(struct eventfd_queue *q, const void *items, size_t count,
                                       size_t bytes, bool wait)
{
    size_t room = eventfd_take(q->room_fd, count, wait), done = 0;
    while (done < room)
        done += mpmc_push_some(q->ring, (const char *)items + done * bytes, room - done, bytes);
    if (done)
        eventfd_give(q->items_fd, done);
    return done;
}

static inline size_t eventfd_pop_some(struct eventfd_queue *q, void *items, size_t count,
                                      size_t bytes, bool wait)
{
    size_t there = eventfd_take(q->items_fd, count, wait), done = 0;
    while (done < there)
        done += mpmc_pop_some(q->ring, (char *)items + done * bytes, there - done, bytes);
    if (done)
        eventfd_give(q->room_fd, done);
    return done;
}

#endif

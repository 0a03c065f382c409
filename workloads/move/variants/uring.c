/* SPDX-License-Identifier: MIT */
/* Rings, and words for their failures: see uring.h. */
#include "uring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int ring_open(struct io_uring *ring, unsigned entries, struct error *err)
{
    struct io_uring_params p = {
        .flags = IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
        .cq_entries = entries * 4,
    };
    int r = io_uring_queue_init_params(entries, ring, &p);
    if (r == -EINVAL) { /* before Linux 6.1 */
        p = (struct io_uring_params){.flags = IORING_SETUP_CQSIZE, .cq_entries = entries * 4};
        r = io_uring_queue_init_params(entries, ring, &p);
    }
    ring->ring_fd = r < 0 ? -1 : ring->ring_fd;
    if (r == -EPERM)
        return error_set(
            err, r,
            "io_uring is not allowed (sysctl kernel.io_uring_disabled, or a container's filter)");
    if (r == -ENOSYS)
        return error_set(err, r, "this kernel has no io_uring");
    if (r == -ENOMEM)
        return error_set(
            err, r, "io_uring: no memory, or the limit on locked memory (ulimit -l) is too low");
    return r < 0 ? error_errno(err, r, "io_uring") : 0;
}

int ring_enter(struct io_uring *ring, struct link *l, unsigned count, struct error *err)
{
    int r;
    do {
        r = io_uring_submit_and_wait(ring, count);
        count_add(&l->counts->calls, 1);
    } while (r == -EINTR);
    return r < 0 ? error_errno(err, r, "connection %u: io_uring_enter", l->index) : 0;
}

int ring_failed(const struct link *l, const char *what, int code, struct error *err)
{
    if (code == -EINVAL || code == -EOPNOTSUPP)
        return error_set(err, code, "%s: not supported by this kernel or this kind of socket (%s)",
                         what, strerror(-code));
    return link_failed(l, what, code, err);
}

int buffer_ring_open(struct io_uring *ring, struct buffer_ring *b, unsigned entries, int group,
                     struct error *err)
{
    *b = (struct buffer_ring){
        .bytes = entries * sizeof(struct io_uring_buf), .entries = entries, .group = group};
    void *at = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return error_errno(err, -errno, "a ring of %u buffers", entries);
    b->ring = at;
    struct io_uring_buf_reg reg = {
        .ring_addr = (uintptr_t)at, .ring_entries = entries, .bgid = (unsigned short)group};
    int r = io_uring_register_buf_ring(ring, &reg, 0);
    if (r < 0)
        return error_errno(err, r, "registering provided buffers (Linux 5.19 or later)");
    io_uring_buf_ring_init(b->ring);
    return 0;
}

void buffer_ring_close(struct io_uring *ring, struct buffer_ring *b)
{
    if (!b->ring)
        return;
    io_uring_unregister_buf_ring(ring, b->group);
    munmap(b->ring, b->bytes);
    b->ring = NULL;
}

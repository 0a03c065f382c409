/* SPDX-License-Identifier: MIT */
/* A ring of io_uring for writes alone, beside a loop of another kind. */
#include "config.h"
#include "vr/net/io_ways.h"

#if HAVE_LIBURING

#include "base/memory.h"
#include "vr/core/planted.h"

#include <liburing.h>
#include <sys/uio.h>

#define ENTRIES 512

struct vr_disk_ring {
    struct io_uring ring;
    unsigned under_way;
};

struct vr_disk_ring *vr_disk_ring_new(void)
{
    struct vr_disk_ring *r = memory_zalloc(1, sizeof(*r));
    if (io_uring_queue_init(ENTRIES, &r->ring, 0) == 0)
        return r;
    free(r);
    return NULL;
}

void vr_disk_ring_free(struct vr_disk_ring *r)
{
    if (r)
        io_uring_queue_exit(&r->ring);
    free(r);
}

int vr_disk_ring_fd(const struct vr_disk_ring *r)
{
    return r->ring.ring_fd;
}

static struct io_uring_sqe *entry(struct vr_disk_ring *r)
{
    struct io_uring_sqe *e = io_uring_get_sqe(&r->ring);
    while (!e) {
        io_uring_submit(&r->ring);
        e = io_uring_get_sqe(&r->ring);
    }
    r->under_way++;
    return e;
}

void vr_disk_ring_write(struct vr_disk_ring *r, int fd, const void *bytes, size_t size,
                        uint64_t offset, bool dsync, uint32_t tag)
{
    struct io_uring_sqe *e = entry(r);
    io_uring_prep_write(e, fd, bytes, (unsigned)size, offset);
    e->rw_flags = dsync && !PLANTED(NO_DSYNC) ? RWF_DSYNC : 0;
    e->user_data = tag;
}

void vr_disk_ring_sync(struct vr_disk_ring *r, int fd, uint32_t tag)
{
    struct io_uring_sqe *e = entry(r);
    io_uring_prep_fsync(e, fd, IORING_FSYNC_DATASYNC);
    if (PLANTED(NO_SYNC))
        io_uring_prep_nop(e);
    e->user_data = tag;
}

void vr_disk_ring_submit(struct vr_disk_ring *r)
{
    if (io_uring_sq_ready(&r->ring))
        io_uring_submit(&r->ring);
}

bool vr_disk_ring_busy(const struct vr_disk_ring *r)
{
    return r->under_way > 0;
}

unsigned vr_disk_ring_reap(struct vr_disk_ring *r, const struct vr_io_handler *handler)
{
    struct io_uring_cqe *done;
    unsigned count = 0;
    while (io_uring_peek_cqe(&r->ring, &done) == 0) {
        uint32_t tag = (uint32_t)done->user_data;
        int result = done->res;
        io_uring_cqe_seen(&r->ring, done);
        r->under_way--;
        handler->disk(handler->context, tag, result);
        count++;
    }
    return count;
}

#else

#include <stdlib.h>

struct vr_disk_ring *vr_disk_ring_new(void)
{
    return NULL;
}
void vr_disk_ring_free(struct vr_disk_ring *r)
{
    (void)r;
}
int vr_disk_ring_fd(const struct vr_disk_ring *r)
{
    (void)r;
    return -1;
}
void vr_disk_ring_write(struct vr_disk_ring *r, int fd, const void *bytes, size_t size,
                        uint64_t offset, bool dsync, uint32_t tag)
{
    (void)r, (void)fd, (void)bytes, (void)size, (void)offset, (void)dsync, (void)tag;
    abort();
}
void vr_disk_ring_sync(struct vr_disk_ring *r, int fd, uint32_t tag)
{
    (void)r, (void)fd, (void)tag;
    abort();
}
void vr_disk_ring_submit(struct vr_disk_ring *r)
{
    (void)r;
}
bool vr_disk_ring_busy(const struct vr_disk_ring *r)
{
    (void)r;
    return false;
}
unsigned vr_disk_ring_reap(struct vr_disk_ring *r, const struct vr_io_handler *handler)
{
    (void)r, (void)handler;
    return 0;
}

#endif

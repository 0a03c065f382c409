/* SPDX-License-Identifier: MIT */
/* The ways of moving packets, and writing without io_uring. */
#ifndef ASSAY_VR_IO_WAYS_H
#define ASSAY_VR_IO_WAYS_H

#include "vr/net/io.h"

extern const struct vr_io_way vr_io_epoll, vr_io_spin;
extern const struct vr_io_way vr_io_uring, vr_io_uring_spin, vr_io_uring_tc, vr_io_uring_xdp;
extern const struct vr_io_way vr_io_uring_eventfd, vr_io_uring_eventfd_unread;

/* Writes at once, in the caller's thread; the same results as a ring's. */
int vr_io_write_now(int fd, const void *bytes, size_t size, uint64_t offset, bool dsync);
int vr_io_sync_now(int fd);

/* A ring for writes beside a loop that is not io_uring's; NULL where there is no io_uring. */
struct vr_disk_ring;
struct vr_disk_ring *vr_disk_ring_new(void);
void vr_disk_ring_free(struct vr_disk_ring *ring);
int vr_disk_ring_fd(const struct vr_disk_ring *ring); /* readable when something has ended */
void vr_disk_ring_write(struct vr_disk_ring *ring, int fd, const void *bytes, size_t size,
                        uint64_t offset, bool dsync, uint32_t tag);
void vr_disk_ring_sync(struct vr_disk_ring *ring, int fd, uint32_t tag);
void vr_disk_ring_submit(struct vr_disk_ring *ring);
bool vr_disk_ring_busy(const struct vr_disk_ring *ring); /* something has yet to end */
/* Calls back for what has ended; how many. */
unsigned vr_disk_ring_reap(struct vr_disk_ring *ring, const struct vr_io_handler *handler);

#endif

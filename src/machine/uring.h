/* SPDX-License-Identifier: MIT */
/* Inside src/machine: the smallest ring that can be submitted to, by raw system calls.  The
 * constants that Debian 12's headers lack are here. */
#ifndef ASSAY_MACHINE_URING_H
#define ASSAY_MACHINE_URING_H

#include <linux/io_uring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uring {
    int fd;
    uint32_t features;
    bool polls; /* a thread of the kernel takes the entries (SQPOLL) */
    void *ring_map, *entry_map;
    size_t ring_size, entry_size;
    uint32_t *sq_head, *sq_tail, *sq_mask, *sq_array;
    uint32_t *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *completions;
};

/* Starts with all zero.  0 or a negative errno; uring_done is needed only after success. */
int uring_open(struct uring *u, unsigned entry_count, uint32_t flags);
void uring_done(struct uring *u);

/* Queues a copy of the entry and submits it. */
int uring_submit(struct uring *u, const struct io_uring_sqe *entry);
/* Waits for one completion, at most for half a second: 0 or a negative errno. */
int uring_wait(struct uring *u, struct io_uring_cqe *ret_completion);
int uring_register(const struct uring *u, unsigned opcode, void *argument, unsigned count);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * io_uring for the variants: a ring of one thread, and what liburing 2.3 does not define yet.
 * The kernel may be older than these definitions: setup and first use say so in words.
 */
#ifndef ASSAY_MOVE_URING_H
#define ASSAY_MOVE_URING_H

#include "variant.h"

#include <liburing.h>

#ifndef IORING_SEND_ZC_REPORT_USAGE
#define IORING_SEND_ZC_REPORT_USAGE (1U << 3)
#endif
#ifndef IORING_NOTIF_USAGE_ZC_COPIED
#define IORING_NOTIF_USAGE_ZC_COPIED (1U << 31)
#endif
#ifndef IORING_RECVSEND_BUNDLE
#define IORING_RECVSEND_BUNDLE (1U << 4)
#endif

/* A ring for `entries` requests and four times the completions; by and for the calling thread. */
int ring_open(struct io_uring *ring, unsigned entries, struct error *err);
/* Submits what is prepared and waits for `count` completions; one system call. */
int ring_enter(struct io_uring *ring, struct link *l, unsigned count, struct error *err);
/* Words for a request that failed: an opcode or a flag that this kernel does not know. */
int ring_failed(const struct link *l, const char *what, int code, struct error *err);

/* A ring of provided buffers. */
struct buffer_ring {
    struct io_uring_buf_ring *ring;
    size_t bytes;
    unsigned entries; /* a power of two */
    int group;
};

int buffer_ring_open(struct io_uring *ring, struct buffer_ring *b, unsigned entries, int group,
                     struct error *err);
void buffer_ring_close(struct io_uring *ring, struct buffer_ring *b);

#endif

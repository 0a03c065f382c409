/* SPDX-License-Identifier: MIT */
/* What the receiver does with the bytes it sees: --verify, and the proofs' look at where they lie.
 */
#ifndef ASSAY_MOVE_CHECK_H
#define ASSAY_MOVE_CHECK_H

#include "variant.h"

/* source.c: the content of messages for --verify. */
uint64_t message_checksum(const void *message, size_t bytes);
void message_make(void *message, size_t bytes, uint64_t sequence);

struct check {
    bool verify;
    bool datagrams; /* each piece is a message of its own, some may be missing */
    uint64_t expected, verified, lost;
    char *partial; /* a message that came in pieces */
    size_t partial_bytes;
    /* The first piece seen, for the aliasing test on the receiving side. */
    const unsigned char *view;
    size_t view_bytes;
    uint64_t painted[256]; /* how often each byte value came, when verify is off */
};

struct check *check_new(const struct link *l, bool verify);
void check_free(struct check *c);

#endif

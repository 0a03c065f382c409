/* SPDX-License-Identifier: MIT */
/*
 * Messages larger than a datagram.  Pieces of equal size, in any order, each a packet of its own
 * with its own checksum; a message that is not complete when its place is needed is forgotten, as
 * a lost packet would be.  Memory is bounded: a fixed number of messages at once.
 */
#ifndef ASSAY_VR_FRAGMENT_H
#define ASSAY_VR_FRAGMENT_H

#include "vr/core/wire.h"

#define VR_FRAGMENT_PLACES 8
#define VR_FRAGMENTS_MAX 256

struct vr_reassembly {
    size_t message_bytes_max, piece_bytes;
    uint64_t turn; /* counts messages begun, so that the oldest gives way */
    struct vr_partial {
        bool used;
        uint8_t replica;
        uint64_t id, begun;
        uint32_t size, count, got;
        uint64_t seen[VR_FRAGMENTS_MAX / 64];
        unsigned char *bytes;
    } places[VR_FRAGMENT_PLACES];
};

/* piece_bytes is what a fragment's body holds, the last one's apart. */
void vr_reassembly_init(struct vr_reassembly *r, size_t message_bytes_max, size_t piece_bytes);
void vr_reassembly_done(struct vr_reassembly *r);

/* Takes one fragment that vr_open_packet has passed.  Returns the whole encoded message, to be
 * opened with vr_open_packet, when this was its last piece: it stays until the next call. */
const void *vr_reassembly_add(struct vr_reassembly *r, const struct vr_header *header,
                              const void *body, size_t *ret_size, enum vr_drop *ret_drop);

/* How many fragments a message of that size takes, and the piece at index: header (unsealed, but
 * for cluster and replica) with its place in the message. */
uint32_t vr_fragment_count(size_t message_bytes, size_t piece_bytes);
struct vr_header vr_fragment_header(uint64_t id, size_t message_bytes, size_t piece_bytes,
                                    uint32_t index, size_t *ret_offset, size_t *ret_size);

#endif

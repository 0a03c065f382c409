/* SPDX-License-Identifier: MIT */
/* Messages of the core to datagrams and back: sealing, fragments, checks, counting of drops. */
#ifndef ASSAY_VR_PACKET_H
#define ASSAY_VR_PACKET_H

#include "vr/core/core.h"
#include "vr/core/fragment.h"

struct vr_packets {
    struct vr_key key;
    uint32_t cluster;
    uint8_t replica;        /* who sends */
    size_t datagram_bytes;  /* at most */
    uint64_t next_fragment; /* differs at each start */
    struct vr_reassembly reassembly;
    unsigned char *whole, *piece; /* where a message and a fragment are put together */
    uint64_t dropped[VR_DROP_COUNT];
};

typedef void (*vr_send_datagram)(void *context, uint8_t to, uint64_t client, const void *bytes,
                                 size_t size);

void vr_packets_init(struct vr_packets *p, const struct vr_config *config, struct vr_key key,
                     size_t datagram_bytes, uint64_t first_fragment);
void vr_packets_done(struct vr_packets *p);
size_t vr_message_bytes_max(const struct vr_config *config);

/* Calls send for each datagram of the message; the bytes are valid during the call. */
void vr_packets_send(struct vr_packets *p, const struct vr_message *message, vr_send_datagram send,
                     void *context);

/* Checks a datagram; true when a whole message is there, valid until the next call. */
bool vr_packets_receive(struct vr_packets *p, const void *bytes, size_t size,
                        struct vr_header *ret_header, const void **ret_body);

#endif

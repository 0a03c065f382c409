/* SPDX-License-Identifier: MIT */
/* Messages of the core to datagrams and back: sealing, fragments, checks, counting of drops. */
#ifndef ASSAY_VR_PACKET_H
#define ASSAY_VR_PACKET_H

#include "vr/core/core.h"
#include "vr/core/fragment.h"

#define VR_KEY_SETS 2 /* while keys are changed, those before or after are accepted, too */

/* By which key a packet was sealed: what it is answered with. */
struct vr_seal_choice {
    uint8_t set, role;
};

/* How datagrams are made unreadable for others; the core knows none. */
#define VR_CIPHER_BYTES 48 /* by which a datagram grows */
struct vr_cipher {
    /* out has room for VR_CIPHER_BYTES more.  slot: a role, VR_ROLES for replicas.  0: it failed.
     */
    size_t (*encrypt)(const struct vr_cipher *c, unsigned set, unsigned slot, const void *bytes,
                      size_t size, unsigned char *out);
    /* Bytes that are now in out, or 0: this was not encrypted with one of the keys. */
    size_t (*decrypt)(const struct vr_cipher *c, const void *bytes, size_t size,
                      unsigned char *out);
};

struct vr_packets {
    struct vr_keys keys[VR_KEY_SETS];
    uint8_t key_sets;
    struct vr_seal_choice own;  /* of a client: how it seals */
    struct vr_seal_choice from; /* of the last message that was received */
    uint32_t cluster;
    uint8_t replica;        /* who sends; VR_TO_CLIENT: a client */
    size_t datagram_bytes;  /* at most */
    size_t message_bytes;   /* the same */
    uint64_t next_fragment; /* differs at each start */
    struct vr_reassembly reassembly;
    unsigned char *whole, *piece;   /* where a message and a fragment are put together */
    const struct vr_cipher *cipher; /* NULL: datagrams are readable */
    unsigned char *hidden, *opened; /* a datagram, encrypted and decrypted */
    uint64_t dropped[VR_DROP_COUNT];
};

typedef void (*vr_send_datagram)(void *context, uint8_t to, uint64_t client, const void *bytes,
                                 size_t size);

void vr_packets_init(struct vr_packets *p, const struct vr_config *config,
                     const struct vr_keys *keys, size_t datagram_bytes, uint64_t first_fragment);
/* Keys that are accepted beside the others, and never used first. */
void vr_packets_accept(struct vr_packets *p, const struct vr_keys *keys);
/* From now on all datagrams are encrypted, and have at most as many bytes as before. */
void vr_packets_encrypt(struct vr_packets *p, const struct vr_cipher *cipher);
/* Whether a client with a key of this role may ask for this. */
bool vr_role_allows(enum vr_role role, enum vr_type type, uint32_t opcode);
void vr_packets_done(struct vr_packets *p);
size_t vr_message_bytes_max(const struct vr_config *config);

/* Calls send for each datagram of the message; the bytes are valid during the call.  What goes to a
 * client is sealed as its request was: to says how, and is ignored for other messages. */
void vr_packets_send(struct vr_packets *p, const struct vr_message *message,
                     struct vr_seal_choice to, vr_send_datagram send, void *context);

/* Checks a datagram; true when a whole message is there, valid until the next call. */
bool vr_packets_receive(struct vr_packets *p, const void *bytes, size_t size,
                        struct vr_header *ret_header, const void **ret_body);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Encryption of datagrams: XChaCha20-Poly1305 of libsodium, which is loaded when a cluster asks for
 * it ('encrypt yes').  A datagram becomes
 *
 *   which key (1 byte), 7 bytes of zeros, nonce (24, random), the datagram encrypted, its tag (16)
 *
 * and the first 8 bytes are covered by the tag.  The keys follow from those of the packets, one for
 * replicas and one for each role of clients: who has no key sees sizes and addresses, who has the
 * key of a role sees what clients of this role say, and nothing that replicas say to each other.
 */
#ifndef ASSAY_VR_CRYPT_H
#define ASSAY_VR_CRYPT_H

#include "base/error.h"
#include "vr/core/packet.h"

struct vr_crypt {
    struct vr_cipher cipher;
    unsigned char keys[VR_KEY_SETS][VR_ROLES + 1][32]; /* behind the roles: of replicas */
    unsigned sets;
    uint32_t cluster;
};

/* -ENOPKG: libsodium is not there.  accept may be NULL. */
int vr_crypt_init(struct vr_crypt *c, uint32_t cluster, const struct vr_keys *keys,
                  const struct vr_keys *accept, struct error *err);

#endif

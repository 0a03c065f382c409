/* SPDX-License-Identifier: MIT */
/*
 * The one checksum of this program: SipHash (Aumasson and Bernstein, 2012) of 64 bits.  With a
 * secret key and 2-4 rounds it authenticates packets; with the public key of a cluster and 1-3
 * rounds it finds damage on the wire and on disks.
 */
#ifndef ASSAY_VR_HASH_H
#define ASSAY_VR_HASH_H

#include <stddef.h>
#include <stdint.h>

struct vr_key {
    uint64_t word[2];
    unsigned rounds, final_rounds; /* 1-3 for damage, 2-4 for a secret */
};

uint64_t vr_hash_keyed(const struct vr_key *key, const void *bytes, size_t size);
/* Of what is stored and chained; the same in every cluster. */
uint64_t vr_hash(const void *bytes, size_t size);
/* The key of a cluster without a secret. */
struct vr_key vr_key_public(uint32_t cluster);
/* The key of a cluster whose members share a secret; derived from all of its bytes. */
struct vr_key vr_key_secret(uint32_t cluster, const void *secret, size_t size);
/*
 * Who may do what.  A client's key is derived from that of the role above it, so that who may write
 * may also read, and nobody can find a key above his own.  Replicas have one that no client has.
 */
enum vr_role { VR_ROLE_ADMIN, VR_ROLE_WRITE, VR_ROLE_READ, VR_ROLES };
extern const char *const vr_role_names[VR_ROLES];

struct vr_keys {
    struct vr_key replica, clients[VR_ROLES];
};
struct vr_keys vr_keys_secret(struct vr_key master);
/* One for everything: a cluster without a secret, where sums only find damage. */
struct vr_keys vr_keys_same(struct vr_key key);
/* Sets the keys of a role and of those below it. */
void vr_keys_set_role(struct vr_keys *keys, enum vr_role role, struct vr_key key);

/* The key for bodies.  Their sums stand in packets for all to see, and bodies are what clients
 * please: with a secret they have a key of their own, so that no body's sum seals a header. */
struct vr_key vr_key_of_bodies(const struct vr_key *key);
#define VR_KEY_BODIES 0x7365696d6f62ULL /* by which its first word differs */

#endif

/* SPDX-License-Identifier: MIT */
#include "vr/core/hash.h"

#include <assert.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are hashed as they stand");

static inline uint64_t rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

struct state {
    uint64_t a, b, c, d;
};

static inline __attribute__((always_inline)) void mix(struct state *s, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        s->a += s->b;
        s->b = rotate(s->b, 13) ^ s->a;
        s->a = rotate(s->a, 32);
        s->c += s->d;
        s->d = rotate(s->d, 16) ^ s->c;
        s->a += s->d;
        s->d = rotate(s->d, 21) ^ s->a;
        s->c += s->b;
        s->b = rotate(s->b, 17) ^ s->c;
        s->c = rotate(s->c, 32);
    }
}

static inline __attribute__((always_inline)) void absorb(struct state *s, uint64_t word,
                                                         unsigned rounds)
{
    s->d ^= word;
    mix(s, rounds);
    s->a ^= word;
}

/* Compiled once for each pair of rounds that is used, so that the loops over them are gone. */
static inline __attribute__((always_inline)) uint64_t hash(const struct vr_key *key,
                                                           const void *bytes, size_t size,
                                                           unsigned rounds, unsigned final_rounds)
{
    struct state s = {key->word[0] ^ 0x736f6d6570736575, key->word[1] ^ 0x646f72616e646f6d,
                      key->word[0] ^ 0x6c7967656e657261, key->word[1] ^ 0x7465646279746573};
    const unsigned char *at = bytes;
    for (size_t left = size; left >= 8; left -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        absorb(&s, word, rounds);
    }
    uint64_t last = (uint64_t)size << 56;
    for (size_t i = 0; i < size % 8; i++)
        last |= (uint64_t)at[i] << (8 * i);
    absorb(&s, last, rounds);
    s.c ^= 0xff;
    mix(&s, final_rounds);
    return s.a ^ s.b ^ s.c ^ s.d;
}

uint64_t vr_hash_keyed(const struct vr_key *key, const void *bytes, size_t size)
{
    if (key->rounds == 0)
        return 0;
    if (key->rounds == 1 && key->final_rounds == 3)
        return hash(key, bytes, size, 1, 3);
    if (key->rounds == 2 && key->final_rounds == 4)
        return hash(key, bytes, size, 2, 4);
    return hash(key, bytes, size, key->rounds, key->final_rounds);
}

uint64_t vr_hash(const void *bytes, size_t size)
{
    static const struct vr_key key = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}, 1, 3};
    return vr_hash_keyed(&key, bytes, size);
}

struct vr_key vr_key_public(uint32_t cluster)
{
    return (struct vr_key){{cluster, 0x7672}, 1, 3};
}

struct vr_key vr_key_secret(uint32_t cluster, const void *secret, size_t size)
{
    struct vr_key first = {{cluster, 1}, 2, 4}, second = {{cluster, 2}, 2, 4};
    return (struct vr_key){
        {vr_hash_keyed(&first, secret, size), vr_hash_keyed(&second, secret, size)}, 2, 4};
}

struct vr_key vr_key_of_bodies(const struct vr_key *key)
{
    struct vr_key own = *key;
    if (key->rounds == 2)
        own.word[0] ^= VR_KEY_BODIES;
    return own;
}

const char *const vr_role_names[VR_ROLES] = {"admin", "write", "read"};

static struct vr_key derive(const struct vr_key *from, const char *label)
{
    char text[32] = {0};
    struct vr_key key = *from;
    strncpy(text, label, sizeof(text) - 2);
    for (unsigned i = 0; i < 2; i++) {
        text[sizeof(text) - 1] = (char)i;
        key.word[i] = vr_hash_keyed(from, text, sizeof(text));
    }
    return key;
}

void vr_keys_set_role(struct vr_keys *keys, enum vr_role role, struct vr_key key)
{
    for (unsigned i = role; i < VR_ROLES; i++) {
        keys->clients[i] = key;
        if (i + 1 < VR_ROLES)
            key = derive(&key, vr_role_names[i + 1]);
    }
}

struct vr_keys vr_keys_secret(struct vr_key master)
{
    struct vr_keys keys = {.replica = derive(&master, "replica")};
    vr_keys_set_role(&keys, VR_ROLE_ADMIN, derive(&master, vr_role_names[VR_ROLE_ADMIN]));
    return keys;
}

struct vr_keys vr_keys_same(struct vr_key key)
{
    return (struct vr_keys){key, {key, key, key}};
}

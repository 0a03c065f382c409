/* SPDX-License-Identifier: MIT */
/* FNV-1a of 64 bits (http://www.isthe.com/chongo/tech/comp/fnv): for tables and to tell texts
 * apart, not against anyone's will. */
#ifndef ASSAY_BASE_HASH_H
#define ASSAY_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START 0xcbf29ce484222325ULL

/* Each goes on from a hash of what came before; the first one from HASH_START. */
static inline uint64_t hash_byte(uint64_t hash, uint8_t byte)
{
    return (hash ^ byte) * 0x100000001b3ULL;
}

static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    for (const uint8_t *at = bytes, *end = at + size; at < end; at++)
        hash = hash_byte(hash, *at);
    return hash;
}

/* Without the zero at its end. */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = hash_byte(hash, (uint8_t)*text);
    return hash;
}

#endif

/* SPDX-License-Identifier: MIT */
/* Reading of little-endian bytes that may end anywhere: a cursor that remembers if it went too
 * far, so that a row of reads is checked once at its end. */
#ifndef ASSAY_SYMBOLS_TABLES_BYTES_H
#define ASSAY_SYMBOLS_TABLES_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const uint8_t *at, *end;
    bool bad; /* something was read behind the end; what was returned is 0 */
};

static inline size_t cursor_left(const struct cursor *c)
{
    return (size_t)(c->end - c->at);
}

/* Size 1, 2, 4 or 8. */
static inline uint64_t cursor_unsigned(struct cursor *c, size_t size)
{
    uint64_t value = 0;
    if (cursor_left(c) < size) {
        c->bad = true;
        c->at = c->end;
        return 0;
    }
    memcpy(&value, c->at, size);
    c->at += size;
    return value;
}

static inline int64_t cursor_signed(struct cursor *c, size_t size)
{
    unsigned shift = 64 - 8 * (unsigned)size;
    return (int64_t)(cursor_unsigned(c, size) << shift) >> shift;
}

static inline uint8_t cursor_u8(struct cursor *c)
{
    if (c->at < c->end)
        return *c->at++;
    c->bad = true;
    return 0;
}

static inline uint64_t cursor_uleb(struct cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    c->bad = true;
    return 0;
}

static inline int64_t cursor_sleb(struct cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; c->at < c->end;) {
        uint8_t byte = *c->at++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80)) {
            if (shift < 64 && (byte & 0x40))
                value |= ~0ull << shift;
            return (int64_t)value;
        }
    }
    c->bad = true;
    return 0;
}

static inline void cursor_skip(struct cursor *c, uint64_t size)
{
    if (size > cursor_left(c)) {
        c->bad = true;
        size = cursor_left(c);
    }
    c->at += size;
}

#endif

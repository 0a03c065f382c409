/* SPDX-License-Identifier: MIT */
/* Bytes of a stream, cut into whole and aligned records: see perfdata_internal.h. */
#include "base/memory.h"
#include "sampler/perfdata_internal.h"

#include <stdio.h>

#define POOL_FREE_MAX 16

static struct chunk *chunk_of(const void *record)
{
    return (struct chunk *)((uintptr_t)record & ~(CHUNK_BYTES - 1));
}

struct chunk *chunk_get(struct chunk_pool *pool)
{
    struct chunk *c = pool->free_list;
    if (c) {
        pool->free_list = c->next_free;
        pool->free_count--;
    } else {
        c = aligned_alloc(CHUNK_BYTES, CHUNK_BYTES);
        if (!c) {
            fputs("assay: out of memory\n", stderr);
            abort();
        }
    }
    c->next_free = NULL;
    c->pins = 1;
    pool->live_count++;
    return c;
}

void chunk_pin(const void *record)
{
    chunk_of(record)->pins++;
}

void chunk_unpin(struct chunk_pool *pool, const void *record)
{
    struct chunk *c = chunk_of(record);
    if (--c->pins)
        return;
    pool->live_count--;
    if (pool->free_count >= POOL_FREE_MAX) {
        free(c);
        return;
    }
    c->next_free = pool->free_list;
    pool->free_list = c;
    pool->free_count++;
}

void chunk_pool_done(struct chunk_pool *pool)
{
    while (pool->free_list) {
        struct chunk *c = pool->free_list;
        pool->free_list = c->next_free;
        free(c);
    }
    pool->free_count = 0;
}

/* Moves what is left to the front of a chunk, aligned: the same one when nobody needs it. */
static void renew(struct window *w)
{
    size_t left = w->end - w->start;
    struct chunk *old = w->chunk;
    if (old && old->pins == 1) {
        memmove(old->bytes, old->bytes + w->start, left);
    } else {
        w->chunk = chunk_get(w->pool);
        if (old) {
            memcpy(w->chunk->bytes, old->bytes + w->start, left);
            chunk_unpin(w->pool, old);
        }
    }
    w->start = 0;
    w->end = left;
}

unsigned char *window_room(struct window *w, size_t *ret_size)
{
    if (!w->chunk || CHUNK_CAPACITY - w->end < RECORD_BYTES_MAX)
        renew(w);
    *ret_size = CHUNK_CAPACITY - w->end;
    return w->chunk->bytes + w->end;
}

void window_done(struct window *w)
{
    if (w->chunk)
        chunk_unpin(w->pool, w->chunk);
    if (w->spill)
        chunk_unpin(w->pool, w->spill);
    *w = (struct window){0};
}

/* Records may lie askew behind ones whose size is no multiple of eight. */
static const void *aligned_copy(struct window *w, const void *record, size_t size)
{
    if (w->spill && w->spill->pins == 1)
        w->spill_used = 0;
    if (!w->spill || CHUNK_CAPACITY - w->spill_used < size) {
        if (w->spill)
            chunk_unpin(w->pool, w->spill);
        w->spill = chunk_get(w->pool);
        w->spill_used = 0;
    }
    void *copy = w->spill->bytes + w->spill_used;
    memcpy(copy, record, size);
    w->spill_used += (size + 7) & ~(size_t)7;
    return copy;
}

/*
 * perf 6.16 and later may write a COMPRESSED2 record with a size that does not fit into the
 * header's 16 bits: the size is then cut, the alignment is missing, and what went over is in
 * records behind the first whose data_size was never set.  Puts both fields right in place.
 */
static void mend_compressed2(struct window *w, unsigned char *at, struct perf_event_header *header)
{
    const uint64_t head_size = sizeof(*header) + sizeof(uint64_t), size_max = UINT16_MAX;
    uint64_t data_size;
    memcpy(&data_size, at + sizeof(*header), sizeof(data_size));
    if (w->overflow_bytes >= header->size && header->size >= head_size) {
        w->overflow_bytes -= header->size;
        data_size = header->size - head_size;
    } else {
        w->overflow_bytes = 0;
        if (data_size <= header->size - head_size && header->size >= head_size)
            return;
        if (data_size > UINT32_MAX)
            return;
        uint64_t size = head_size + data_size;
        if (size > size_max) {
            w->overflow_bytes = size - size_max;
            size = size_max;
            data_size = size - head_size;
        }
        header->size = (uint16_t)size;
    }
    memcpy(at, header, sizeof(*header));
    memcpy(at + sizeof(*header), &data_size, sizeof(data_size));
}

enum window_state window_take(struct window *w, const struct perf_event_header **ret_record)
{
    struct perf_event_header header;
    size_t left = w->end - w->start;
    if (left < sizeof(header))
        return WINDOW_HUNGRY;
    unsigned char *at = w->chunk->bytes + w->start;
    memcpy(&header, at, sizeof(header));
    if (header.type == PERFDATA_COMPRESSED2) {
        if (left < sizeof(header) + sizeof(uint64_t))
            return WINDOW_HUNGRY;
        mend_compressed2(w, at, &header);
    }
    if (header.size < sizeof(header))
        return WINDOW_DAMAGED;
    if (left < header.size)
        return WINDOW_HUNGRY;
    w->start += header.size;
    w->start_offset += header.size;
    const void *record = at;
    if ((uintptr_t)at & 7)
        record = aligned_copy(w, at, header.size);
    *ret_record = record;
    return WINDOW_RECORD;
}

const unsigned char *window_skip(struct window *w, uint64_t size, size_t *ret_taken)
{
    size_t left = w->end - w->start;
    size_t taken = size < left ? (size_t)size : left;
    const unsigned char *bytes = w->chunk ? w->chunk->bytes + w->start : NULL;
    w->start += taken;
    w->start_offset += taken;
    *ret_taken = taken;
    return bytes;
}

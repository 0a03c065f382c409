/* SPDX-License-Identifier: MIT */
#include "vr/core/fragment.h"
#include "base/memory.h"
#include "vr/core/planted.h"

#include <string.h>

void vr_reassembly_init(struct vr_reassembly *r, size_t message_bytes_max, size_t piece_bytes)
{
    *r = (struct vr_reassembly){.message_bytes_max = message_bytes_max, .piece_bytes = piece_bytes};
    for (unsigned i = 0; i < VR_FRAGMENT_PLACES; i++)
        r->places[i].bytes = memory_alloc(message_bytes_max);
}

void vr_reassembly_done(struct vr_reassembly *r)
{
    for (unsigned i = 0; i < VR_FRAGMENT_PLACES; i++)
        free(r->places[i].bytes);
    *r = (struct vr_reassembly){0};
}

uint32_t vr_fragment_count(size_t message_bytes, size_t piece_bytes)
{
    return (uint32_t)((message_bytes + piece_bytes - 1) / piece_bytes);
}

struct vr_header vr_fragment_header(uint64_t id, size_t message_bytes, size_t piece_bytes,
                                    uint32_t index, size_t *ret_offset, size_t *ret_size)
{
    uint32_t count = vr_fragment_count(message_bytes, piece_bytes);
    *ret_offset = index * piece_bytes;
    *ret_size = index + 1 < count ? piece_bytes : message_bytes - *ret_offset;
    return (struct vr_header){.type = VR_FRAGMENT,
                              .view = (uint64_t)index << 32 | count,
                              .op = id,
                              .commit = message_bytes};
}

static struct vr_partial *place_of(struct vr_reassembly *r, const struct vr_header *header)
{
    struct vr_partial *oldest = &r->places[0];
    for (unsigned i = 0; i < VR_FRAGMENT_PLACES; i++) {
        struct vr_partial *p = &r->places[i];
        if (p->used && p->replica == header->replica && p->id == header->op)
            return p;
        if (oldest->used && (!p->used || p->begun < oldest->begun))
            oldest = p;
    }
    unsigned char *bytes = oldest->bytes;
    *oldest = (struct vr_partial){.used = true,
                                  .replica = header->replica,
                                  .id = header->op,
                                  .begun = ++r->turn,
                                  .size = (uint32_t)header->commit,
                                  .count = (uint32_t)header->view,
                                  .bytes = bytes};
    return oldest;
}

const void *vr_reassembly_add(struct vr_reassembly *r, const struct vr_header *header,
                              const void *body, size_t *ret_size, enum vr_drop *ret_drop)
{
    uint32_t index = (uint32_t)(header->view >> 32), count = (uint32_t)header->view;
    *ret_drop = VR_DROP_FRAGMENT;
    if (header->commit > r->message_bytes_max || header->commit < sizeof(struct vr_header) ||
        count > VR_FRAGMENTS_MAX || index >= count ||
        count != vr_fragment_count(header->commit, r->piece_bytes))
        return NULL;
    size_t offset = index * r->piece_bytes;
    size_t size = index + 1 < count ? r->piece_bytes : header->commit - offset;
    if (header->size != size)
        return NULL;
    struct vr_partial *p = place_of(r, header);
    if (p->size != header->commit || p->count != count)
        return NULL;
    *ret_drop = VR_DROP_NONE;
    if (PLANTED(FRAGMENTS_IN_ORDER) && index != p->got)
        return NULL;
    uint64_t bit = 1ULL << index % 64;
    if (p->seen[index / 64] & bit) {
        *ret_drop = VR_DROP_REPLAYED;
        return NULL;
    }
    p->seen[index / 64] |= bit;
    memcpy(p->bytes + offset, body, size);
    if (++p->got < p->count)
        return NULL;
    p->used = false;
    *ret_size = p->size;
    return p->bytes;
}

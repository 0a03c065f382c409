/* SPDX-License-Identifier: MIT */
#include "vr/core/hints.h"
#include "base/memory.h"
#include "vr/core/hash.h"

#include <assert.h>

#define WAYS 8u

struct vr_hint_line {
    struct {
        uint32_t page; /* 0: free */
        uint16_t place, tag;
    } ways[WAYS];
};
static_assert(sizeof(struct vr_hint_line) == 64, "one line of the cache");

void vr_hints_init(struct vr_hints *h, uint32_t pages)
{
    uint64_t lines = 1;
    while (lines < pages)
        lines *= 2;
    /* Zeros from the system: memory is taken when it is used. */
    h->memory = memory_zalloc(lines + 1, sizeof(struct vr_hint_line));
    uintptr_t at = (uintptr_t)h->memory, size = sizeof(struct vr_hint_line);
    h->lines = (struct vr_hint_line *)((at + size - 1) / size * size);
    h->mask = lines - 1;
}

void vr_hints_done(struct vr_hints *h)
{
    free(h->memory);
    *h = (struct vr_hints){0};
}

uint64_t vr_hint_of(const void *key, size_t size)
{
    return vr_hash(key, size);
}

static struct vr_hint_line *line_of(const struct vr_hints *h, uint64_t hint)
{
    return &h->lines[hint & h->mask];
}

static uint16_t tag_of(uint64_t hint)
{
    return (uint16_t)(hint >> 40);
}

void vr_hints_prefetch(const struct vr_hints *h, uint64_t hint)
{
    __builtin_prefetch(line_of(h, hint));
}

bool vr_hints_find(const struct vr_hints *h, uint64_t hint, uint32_t *ret_page, uint16_t *ret_place)
{
    const struct vr_hint_line *line = line_of(h, hint);
    for (unsigned i = 0; i < WAYS; i++)
        if (line->ways[i].tag == tag_of(hint) && line->ways[i].page) {
            *ret_page = line->ways[i].page;
            *ret_place = line->ways[i].place;
            return true;
        }
    return false;
}

void vr_hints_set(struct vr_hints *h, uint64_t hint, uint32_t page, uint16_t place)
{
    struct vr_hint_line *line = line_of(h, hint);
    unsigned at = (unsigned)(hint >> 61); /* where all are taken, any gives way */
    for (unsigned i = WAYS; i-- > 0;)
        if (!line->ways[i].page)
            at = i;
    for (unsigned i = 0; i < WAYS; i++)
        if (line->ways[i].tag == tag_of(hint) && line->ways[i].page)
            at = i;
    line->ways[at].tag = tag_of(hint);
    line->ways[at].page = page;
    line->ways[at].place = place;
}

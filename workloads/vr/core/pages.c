/* SPDX-License-Identifier: MIT */
#include "vr/core/pages.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK_PAGES 64u

static void frozen_init(struct vr_frozen *f, uint32_t pages)
{
    *f = (struct vr_frozen){.place = memory_zalloc(pages, sizeof(uint32_t))};
}

static void frozen_done(struct vr_frozen *f)
{
    free(f->place);
    free(f->list);
}

#define HUGE_BYTES ((size_t)2 << 20)

/* Zero, and taken from the system when it is first used.  A large state is read all over the place:
 * in huge pages it costs fewer walks through the tables of the processor. */
static void take_memory(struct vr_pages *p, size_t bytes)
{
    size_t size = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    void *place = MAP_FAILED;
    if (bytes >= 2 * HUGE_BYTES)
        place = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) {
        p->memory = memory_zalloc(1, bytes);
        return;
    }
    madvise(place, size, MADV_HUGEPAGE);
    p->memory = place;
    p->mapped_bytes = size;
}

static void give_memory(struct vr_pages *p)
{
    if (p->mapped_bytes)
        munmap(p->memory, p->mapped_bytes);
    else
        free(p->memory);
}

void vr_pages_init(struct vr_pages *p, uint32_t count, uint32_t bytes)
{
    *p = (struct vr_pages){.count = count, .bytes = bytes};
    take_memory(p, (size_t)count * bytes);
    p->sums = memory_zalloc(count, sizeof(uint64_t));
    p->groups = memory_zalloc(count / vr_pages_in_group(p) + 1, sizeof(uint64_t));
    frozen_init(&p->newest, count);
    frozen_init(&p->pending, count);
}

void vr_pages_done(struct vr_pages *p)
{
    give_memory(p);
    free(p->sums);
    free(p->groups);
    frozen_done(&p->newest);
    frozen_done(&p->pending);
    free(p->pending_sums);
    for (uint32_t i = 0; i < p->chunk_count; i++)
        free(p->chunks[i]);
    free(p->chunks);
    free(p->pool_free);
    *p = (struct vr_pages){0};
}

static unsigned char *kept(const struct vr_pages *p, uint32_t place)
{
    return p->chunks[(place - 1) / CHUNK_PAGES] + (size_t)((place - 1) % CHUNK_PAGES) * p->bytes;
}

static uint32_t take_place(struct vr_pages *p)
{
    if (p->pool_free_count)
        return p->pool_free[--p->pool_free_count];
    if (p->pool_used == p->chunk_count * CHUNK_PAGES) {
        p->chunks = memory_resize(p->chunks, p->chunk_count + 1, sizeof(*p->chunks));
        p->chunks[p->chunk_count++] = memory_alloc((size_t)CHUNK_PAGES * p->bytes);
    }
    return ++p->pool_used;
}

static void give_place(struct vr_pages *p, uint32_t place)
{
    if (p->pool_free_count == p->pool_free_capacity) {
        p->pool_free_capacity = p->pool_free_capacity ? 2 * p->pool_free_capacity : 64;
        p->pool_free = memory_resize(p->pool_free, p->pool_free_capacity, sizeof(*p->pool_free));
    }
    p->pool_free[p->pool_free_count++] = place;
}

static void keep(struct vr_pages *p, struct vr_frozen *f, uint32_t page)
{
    uint32_t place = take_place(p);
    memcpy(kept(p, place), vr_pages_at(p, page), p->bytes);
    f->place[page] = place;
    if (f->count == f->capacity) {
        f->capacity = f->capacity ? 2 * f->capacity : 64;
        f->list = memory_resize(f->list, f->capacity, sizeof(*f->list));
    }
    f->list[f->count++] = page;
}

unsigned char *vr_pages_touch(struct vr_pages *p, uint32_t page)
{
    struct vr_frozen *latest = p->has_pending ? &p->pending : &p->newest;
    assert(page < p->count);
    if (!latest->place[page])
        keep(p, latest, page);
    return p->memory + (size_t)page * p->bytes;
}

void vr_pages_write(struct vr_pages *p, uint32_t first, size_t offset, const void *bytes,
                    size_t size)
{
    const unsigned char *from = bytes;
    while (size) {
        size_t at = offset % p->bytes, part = p->bytes - at < size ? p->bytes - at : size;
        memcpy(vr_pages_touch(p, first + (uint32_t)(offset / p->bytes)) + at, from, part);
        from += part;
        offset += part;
        size -= part;
    }
}

void vr_pages_read(const struct vr_pages *p, uint32_t first, size_t offset, void *bytes,
                   size_t size)
{
    memcpy(bytes, vr_pages_at(p, first) + offset, size);
}

static bool all_zero(const unsigned char *content, uint32_t bytes)
{
    return content[0] == 0 && memcmp(content, content + 1, bytes - 1) == 0;
}

static inline uint64_t rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static inline uint64_t mix(uint64_t word)
{
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

/* Four lanes side by side: it is taken of every page that changes, and must not cost more than to
 * read the page.  Each step can be undone, so that no difference in one word is lost. */
uint64_t vr_page_sum(uint32_t page, const void *content, uint32_t bytes)
{
    const unsigned char *at = content;
    uint64_t lane[4] = {page, ~(uint64_t)page, 0x9e3779b97f4a7c15, bytes}, word[4];
    if (all_zero(content, bytes))
        return 0;
    for (uint32_t left = bytes; left;) {
        uint32_t part = left < sizeof(word) ? left : (uint32_t)sizeof(word);
        if (part < sizeof(word))
            memset(word, 0, sizeof(word));
        memcpy(word, at, part);
        for (unsigned i = 0; i < 4; i++)
            lane[i] = rotate(lane[i] ^ word[i], 27) * 0x9fb21c651e98df25;
        at += part;
        left -= part;
    }
    return mix(mix(mix(mix(lane[0]) + lane[1]) + lane[2]) + lane[3]);
}

const unsigned char *vr_pages_pending(const struct vr_pages *p, uint32_t page)
{
    uint32_t place = p->pending.place[page];
    return place ? kept(p, place) : vr_pages_at(p, page);
}

const unsigned char *vr_pages_newest(const struct vr_pages *p, uint32_t page)
{
    uint32_t place = p->newest.place[page];
    return place ? kept(p, place) : vr_pages_pending(p, page);
}

void vr_pages_freeze(struct vr_pages *p)
{
    assert(!p->has_pending && p->pending.count == 0);
    p->has_pending = true;
    p->pending_root = p->root;
    if (p->pending_capacity < p->newest.count) {
        p->pending_capacity = p->newest.capacity;
        p->pending_sums =
            memory_resize(p->pending_sums, p->pending_capacity, sizeof(*p->pending_sums));
    }
}

const unsigned char *vr_pages_sum(struct vr_pages *p, uint32_t index)
{
    uint32_t page = p->newest.list[index];
    const unsigned char *content = vr_pages_pending(p, page);
    p->pending_sums[index] = vr_page_sum(page, content, p->bytes);
    p->pending_root += p->pending_sums[index] - p->sums[page];
    return content;
}

static void set_sum(struct vr_pages *p, uint32_t page, uint64_t sum)
{
    p->groups[page / vr_pages_in_group(p)] += sum - p->sums[page];
    p->root += sum - p->sums[page];
    p->sums[page] = sum;
}

static void forget(struct vr_pages *p, struct vr_frozen *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        give_place(p, f->place[f->list[i]]);
        f->place[f->list[i]] = 0;
    }
    f->count = 0;
}

void vr_pages_settle(struct vr_pages *p)
{
    assert(p->has_pending);
    for (uint32_t i = 0; i < p->newest.count; i++)
        set_sum(p, p->newest.list[i], p->pending_sums[i]);
    assert(p->root == p->pending_root);
    forget(p, &p->newest);
    struct vr_frozen empty = p->newest;
    p->newest = p->pending;
    p->pending = empty;
    p->has_pending = false;
}

void vr_pages_revert(struct vr_pages *p)
{
    assert(!p->has_pending);
    for (uint32_t i = 0; i < p->newest.count; i++) {
        uint32_t page = p->newest.list[i];
        memcpy(p->memory + (size_t)page * p->bytes, kept(p, p->newest.place[page]), p->bytes);
    }
    forget(p, &p->newest);
}

void vr_pages_replace(struct vr_pages *p, uint32_t page, const void *content, uint64_t sum)
{
    assert(page < p->count && !p->has_pending && !p->newest.place[page]);
    memcpy(p->memory + (size_t)page * p->bytes, content, p->bytes);
    set_sum(p, page, sum);
}

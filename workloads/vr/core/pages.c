/* SPDX-License-Identifier: MIT */
#include "vr/core/pages.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK_PAGES 64u
/* What struct vr_frozen says of a page: 0, ZERO_PLACE, 1 + index in the pool of pages, or PART_BIT
 * and 1 + index in that of parts. */
#define ZERO_PLACE UINT32_MAX /* the page was empty: nothing needs to be kept */
#define PART_BIT 0x80000000u

#define CHUNK_PARTS 512u
#define PART_BYTES 512u
#define PARTS_MAX 3u /* of one page: from there on it is kept whole */
#define BLOCK_BYTES 64u
#define AHEAD 8u /* so many pages before it is its turn, what is known of a page is fetched */

/* Bytes of a page as they were before they were changed.  The parts of a page are a chain, the
 * latest first: put back in that order, they are the page as it was at the freeze. */
struct vr_part {
    uint64_t difference; /* of the page's sum: what all changes from this part back have added */
    uint32_t next;       /* 1 + index, 0: none */
    uint16_t offset, size;
    uint32_t count; /* parts from this one back */
    unsigned char bytes[PART_BYTES];
};

static void frozen_init(struct vr_frozen *f, uint32_t pages)
{
    *f = (struct vr_frozen){.place = memory_zalloc(pages, sizeof(uint32_t))};
}

static void frozen_done(struct vr_frozen *f)
{
    free(f->place);
    free(f->list);
}

#define MAPPED_BYTES ((size_t)4 << 20) /* from here on not from the heap */

/* Zero, and taken from the system when it is first used, page by page.  Not in huge pages: in a
 * virtual machine the first touch of one was seen to take 40 ms and more, in which nobody is
 * served, and 4 to 6 times the time of small ones in all; reading was no faster (docs/VR.md). */
static void take_memory(struct vr_pages *p, size_t bytes)
{
    void *place = MAP_FAILED;
    if (bytes >= MAPPED_BYTES)
        place = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) {
        p->memory = memory_zalloc(1, bytes);
        return;
    }
    madvise(place, bytes, MADV_NOHUGEPAGE);
    p->memory = place;
    p->mapped_bytes = bytes;
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
    p->empty = memory_zalloc(1, bytes);
    p->written = memory_zalloc(count, 1);
    frozen_init(&p->newest, count);
    frozen_init(&p->pending, count);
}

void vr_pages_done(struct vr_pages *p)
{
    give_memory(p);
    free(p->sums);
    free(p->groups);
    free(p->empty);
    frozen_done(&p->newest);
    frozen_done(&p->pending);
    free(p->pending_sums);
    for (uint32_t i = 0; i < p->chunk_count; i++)
        free(p->chunks[i]);
    free(p->chunks);
    free(p->pool_free);
    for (uint32_t i = 0; i < p->part_chunk_count; i++)
        free(p->part_chunks[i]);
    free(p->part_chunks);
    free(p->written);
    *p = (struct vr_pages){0};
}

static bool in_parts(uint32_t place)
{
    return place != ZERO_PLACE && (place & PART_BIT);
}

static unsigned char *kept(const struct vr_pages *p, uint32_t place)
{
    assert(!in_parts(place));
    if (place == ZERO_PLACE)
        return p->empty;
    return p->chunks[(place - 1) / CHUNK_PAGES] + (size_t)((place - 1) % CHUNK_PAGES) * p->bytes;
}

/* number: 1 + index, with or without PART_BIT. */
static struct vr_part *part_at(const struct vr_pages *p, uint32_t number)
{
    uint32_t index = (number & ~PART_BIT) - 1;
    return &p->part_chunks[index / CHUNK_PARTS][index % CHUNK_PARTS];
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

static uint32_t take_part(struct vr_pages *p)
{
    if (p->part_free) {
        uint32_t number = p->part_free;
        p->part_free = part_at(p, number)->next;
        if (p->part_free) /* the one after: in time it will be there */
            vr_pages_prefetch((const unsigned char *)part_at(p, p->part_free),
                              sizeof(struct vr_part));
        return number;
    }
    if (p->parts_used == p->part_chunk_count * CHUNK_PARTS) {
        p->part_chunks =
            memory_resize(p->part_chunks, p->part_chunk_count + 1, sizeof(*p->part_chunks));
        p->part_chunks[p->part_chunk_count++] = memory_alloc(CHUNK_PARTS * sizeof(struct vr_part));
    }
    return ++p->parts_used;
}

static void give_parts(struct vr_pages *p, uint32_t number)
{
    for (uint32_t next; number; number = next) {
        struct vr_part *part = part_at(p, number);
        next = part->next;
        part->next = p->part_free;
        p->part_free = number & ~PART_BIT;
    }
}

static void give_place(struct vr_pages *p, uint32_t place)
{
    if (place == ZERO_PLACE)
        return;
    if (in_parts(place)) {
        give_parts(p, place);
        return;
    }
    if (p->pool_free_count == p->pool_free_capacity) {
        p->pool_free_capacity = p->pool_free_capacity ? 2 * p->pool_free_capacity : 64;
        p->pool_free = memory_resize(p->pool_free, p->pool_free_capacity, sizeof(*p->pool_free));
    }
    p->pool_free[p->pool_free_count++] = place;
}

static void put_back(const struct vr_pages *p, uint32_t number, unsigned char *content)
{
    for (; number; number = part_at(p, number)->next) {
        const struct vr_part *part = part_at(p, number);
        memcpy(content + part->offset, part->bytes, part->size);
    }
}

/* A page of which parts are kept is kept whole from now on; later: as it was after the freeze, or
 * is now. */
static void keep_whole(struct vr_pages *p, struct vr_frozen *f, uint32_t page,
                       const unsigned char *later)
{
    uint32_t parts = f->place[page], place = take_place(p);
    memcpy(kept(p, place), later, p->bytes);
    put_back(p, parts, kept(p, place));
    give_parts(p, parts);
    f->place[page] = place;
}

/* A store that grows takes pages that nobody has used: to read one only to keep its zeros would be
 * another fault of a new page. */
static bool is_empty(const struct vr_pages *p, uint32_t page)
{
    return p->sums[page] == 0 && !p->written[page];
}

static void remember(struct vr_frozen *f, uint32_t page, uint32_t place)
{
    f->place[page] = place;
    if (f->count == f->capacity) {
        f->capacity = f->capacity ? 2 * f->capacity : 64;
        f->list = memory_resize(f->list, f->capacity, sizeof(*f->list));
    }
    f->list[f->count++] = page;
}

static void keep(struct vr_pages *p, struct vr_frozen *f, uint32_t page)
{
    uint32_t place = is_empty(p, page) ? ZERO_PLACE : take_place(p);
    if (place != ZERO_PLACE)
        memcpy(kept(p, place), vr_pages_at(p, page), p->bytes);
    remember(f, page, place);
}

static struct vr_frozen *latest_of(struct vr_pages *p)
{
    return p->has_pending ? &p->pending : &p->newest;
}

unsigned char *vr_pages_touch(struct vr_pages *p, uint32_t page)
{
    struct vr_frozen *latest = latest_of(p);
    assert(page < p->count);
    if (!latest->place[page])
        keep(p, latest, page);
    else if (in_parts(latest->place[page]))
        keep_whole(p, latest, page, vr_pages_at(p, page));
    p->written[page] = 1;
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

/* Two lanes side by side, and no block waits for another: it is taken of all that changes, and must
 * not cost more than to read it.  Each step can be undone, so that no difference in one word is
 * lost.  A block of zeros counts nothing. */
static inline uint64_t word_at(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

static inline uint64_t step(uint64_t lane, uint64_t word)
{
    return rotate(lane ^ word, 27) * 0x9fb21c651e98df25;
}

static inline uint64_t block_sum(uint32_t page, uint32_t block, const unsigned char *at)
{
    uint64_t seed = ((uint64_t)page << 16 | block) * 0x9e3779b97f4a7c15;
    uint64_t first = seed, second = ~seed, any = 0;
#pragma GCC unroll 4
    for (unsigned i = 0; i < BLOCK_BYTES; i += 16) {
        uint64_t even = word_at(at + i), odd = word_at(at + i + 8);
        any |= even | odd;
        first = step(first, even);
        second = step(second, odd);
    }
    return any ? mix(mix(first) + second) : 0;
}

/* Of the blocks from the one at the first byte to the one at the last. */
static uint64_t blocks_sum(uint32_t page, const unsigned char *content, uint32_t bytes,
                           uint32_t first, uint32_t last)
{
    uint32_t block = first / BLOCK_BYTES, end = last / BLOCK_BYTES + 1;
    uint32_t whole = end < bytes / BLOCK_BYTES ? end : bytes / BLOCK_BYTES;
    uint64_t sum = 0;
    for (; block < whole; block++)
        sum += block_sum(page, block, content + block * BLOCK_BYTES);
    if (block < end) { /* the last one of the page may be shorter */
        unsigned char part[BLOCK_BYTES] = {0};
        memcpy(part, content + block * BLOCK_BYTES, bytes - block * BLOCK_BYTES);
        sum += block_sum(page, block, part);
    }
    return sum;
}

uint64_t vr_page_sum(uint32_t page, const void *content, uint32_t bytes)
{
    return blocks_sum(page, content, bytes, 0, bytes - 1);
}

void vr_pages_put(struct vr_pages *p, uint32_t page, uint32_t offset, const void *bytes,
                  uint32_t size)
{
    struct vr_frozen *latest = latest_of(p);
    uint32_t place = latest->place[page];
    assert(page < p->count && offset <= p->bytes && size <= p->bytes - offset);
    if (!size)
        return;
    bool whole = place && (!in_parts(place) || part_at(p, place)->count == PARTS_MAX);
    if (whole || size > PART_BYTES) {
        memcpy(vr_pages_touch(p, page) + offset, bytes, size);
        return;
    }
    unsigned char *content = p->memory + (size_t)page * p->bytes;
    uint32_t number = take_part(p), last = offset + size - 1;
    struct vr_part *part = part_at(p, number);
    const struct vr_part *before = place ? part_at(p, place) : NULL;
    part->difference = before ? before->difference : 0;
    part->count = before ? before->count + 1 : 1;
    part->next = place & ~PART_BIT;
    part->offset = (uint16_t)offset;
    part->size = (uint16_t)size;
    memcpy(part->bytes, content + offset, size);
    part->difference -= blocks_sum(page, content, p->bytes, offset, last);
    memcpy(content + offset, bytes, size);
    part->difference += blocks_sum(page, content, p->bytes, offset, last);
    if (place)
        latest->place[page] = PART_BIT | number;
    else
        remember(latest, page, PART_BIT | number);
}

/* What is kept in parts is put together where somebody asks for it; that is seen by nobody, so it
 * changes what is otherwise constant. */
static const unsigned char *content_of(const struct vr_pages *p, const struct vr_frozen *f,
                                       uint32_t page, const unsigned char *later)
{
    uint32_t place = f->place[page];
    if (!place)
        return later;
    if (in_parts(place))
        keep_whole((struct vr_pages *)(uintptr_t)p, (struct vr_frozen *)(uintptr_t)f, page, later);
    return kept(p, f->place[page]);
}

const unsigned char *vr_pages_pending(const struct vr_pages *p, uint32_t page)
{
    return content_of(p, &p->pending, page, vr_pages_at(p, page));
}

const unsigned char *vr_pages_newest(const struct vr_pages *p, uint32_t page)
{
    uint32_t place = p->newest.place[page];
    if (place && !in_parts(place))
        return kept(p, place);
    return content_of(p, &p->newest, page, vr_pages_pending(p, page));
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

void vr_pages_prefetch(const unsigned char *content, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += 64)
        __builtin_prefetch(content + at);
}

void vr_pages_prefetch_known(const struct vr_pages *p, uint32_t page)
{
    __builtin_prefetch(&(p->has_pending ? &p->pending : &p->newest)->place[page]);
}

/* The next ones of a list are fetched while one is worked on. */
static void look_ahead(const struct vr_pages *p, uint32_t index)
{
    if (index + AHEAD < p->newest.count) {
        uint32_t page = p->newest.list[index + AHEAD];
        __builtin_prefetch(&p->newest.place[page]);
        __builtin_prefetch(&p->sums[page]);
    }
    if (index + AHEAD / 2 < p->newest.count) {
        uint32_t place = p->newest.place[p->newest.list[index + AHEAD / 2]];
        if (in_parts(place))
            __builtin_prefetch(part_at(p, place));
    }
}

void vr_pages_sum(struct vr_pages *p, uint32_t index)
{
    uint32_t page = p->newest.list[index], place = p->newest.place[page];
    look_ahead(p, index);
    p->pending_sums[index] = in_parts(place)
                                 ? p->sums[page] + part_at(p, place)->difference
                                 : vr_page_sum(page, vr_pages_pending(p, page), p->bytes);
    p->pending_root += p->pending_sums[index] - p->sums[page];
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
        look_ahead(p, i);
        give_place(p, f->place[f->list[i]]);
        f->place[f->list[i]] = 0;
    }
    f->count = 0;
}

void vr_pages_settle(struct vr_pages *p)
{
    assert(p->has_pending);
    for (uint32_t i = 0; i < p->newest.count; i++) {
        look_ahead(p, i);
        set_sum(p, p->newest.list[i], p->pending_sums[i]);
    }
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
        uint32_t page = p->newest.list[i], place = p->newest.place[page];
        unsigned char *content = p->memory + (size_t)page * p->bytes;
        if (in_parts(place))
            put_back(p, place, content);
        else
            memcpy(content, kept(p, place), p->bytes);
    }
    forget(p, &p->newest);
}

void vr_pages_replace(struct vr_pages *p, uint32_t page, const void *content, uint64_t sum)
{
    assert(page < p->count && !p->has_pending && !p->newest.place[page]);
    memcpy(p->memory + (size_t)page * p->bytes, content, p->bytes);
    p->written[page] = 1;
    set_sum(p, page, sum);
}

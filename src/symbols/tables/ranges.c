/* SPDX-License-Identifier: MIT */
/* Ranges that do not overlap: see ranges.h. */
#include "symbols/tables/ranges.h"

#include "base/memory.h"

static int by_start(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->priority < y->priority ? -1 : x->priority > y->priority;
}

/* A heap of the ranges that cover the present address; the one that owns it is on top.  One that
 * has ended stays until it comes up. */
struct cover {
    const struct range *ranges;
    uint32_t *heap;
    size_t count;
};

static bool owns_before(const struct cover *c, uint32_t x, uint32_t y)
{
    const struct range *a = &c->ranges[x], *b = &c->ranges[y];
    return a->priority != b->priority ? a->priority > b->priority : x > y;
}

static void cover_push(struct cover *c, uint32_t range)
{
    size_t i = c->count++;
    while (i > 0 && owns_before(c, range, c->heap[(i - 1) / 2])) {
        c->heap[i] = c->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    c->heap[i] = range;
}

static void cover_pop(struct cover *c)
{
    uint32_t moved = c->heap[--c->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= c->count)
            break;
        if (child + 1 < c->count && owns_before(c, c->heap[child + 1], c->heap[child]))
            child++;
        if (!owns_before(c, c->heap[child], moved))
            break;
        c->heap[i] = c->heap[child];
        i = child;
    }
    if (c->count)
        c->heap[i] = moved;
}

/* From start on; what was put for the same start before did not last. */
static void put(struct range_map *map, uint64_t start, uint32_t owner)
{
    if (map->count && map->starts[map->count - 1] == start)
        map->count--;
    if (map->count ? map->owners[map->count - 1] == owner : owner == RANGE_NONE)
        return;
    map->starts[map->count] = start;
    map->owners[map->count++] = owner;
}

/* Goes from boundary to boundary, of which there are at most two for each range. */
static void sweep(struct range_map *map, const struct range *ranges, size_t count)
{
    struct cover c = {.ranges = ranges, .heap = memory_alloc(count * sizeof(*c.heap))};
    uint64_t at = 0;
    for (size_t next = 0; next < count || c.count;) {
        if (c.count == 0) {
            const struct range *r = &ranges[next];
            at = r->start;
            /* Mostly nothing overlaps: then there is nothing to settle. */
            if (next + 1 == count || ranges[next + 1].start >= r->end) {
                next++;
                if (r->end <= at)
                    continue;
                put(map, at, r->owner);
                put(map, r->end, RANGE_NONE);
                continue;
            }
        }
        while (next < count && ranges[next].start == at)
            cover_push(&c, (uint32_t)next++);
        while (c.count && ranges[c.heap[0]].end <= at)
            cover_pop(&c);
        if (c.count == 0) {
            put(map, at, RANGE_NONE);
            continue;
        }
        put(map, at, ranges[c.heap[0]].owner);
        at = ranges[c.heap[0]].end;
        if (next < count && ranges[next].start < at)
            at = ranges[next].start;
    }
    free(c.heap);
}

void range_map_build(struct range_map *ret, struct range *ranges, size_t count)
{
    bool sorted = true;
    for (size_t i = 1; i < count && sorted; i++)
        sorted = by_start(&ranges[i - 1], &ranges[i]) <= 0;
    if (!sorted)
        qsort(ranges, count, sizeof(*ranges), by_start);
    ret->starts = memory_alloc((2 * count + 1) * sizeof(*ret->starts));
    ret->owners = memory_alloc((2 * count + 1) * sizeof(*ret->owners));
    ret->count = 0;
    sweep(ret, ranges, count);
}

void range_map_done(struct range_map *map)
{
    free(map->starts);
    free(map->owners);
    *map = (struct range_map){0};
}

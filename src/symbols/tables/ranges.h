/* SPDX-License-Identifier: MIT */
/*
 * From ranges of addresses that overlap to a row that does not.
 *
 * Symbols, compilation units, inlined calls and JIT code all come as ranges that may overlap, with
 * a rule for who wins.  range_map_build settles it once; a look-up is one binary search.
 */
#ifndef ASSAY_SYMBOLS_TABLES_RANGES_H
#define ASSAY_SYMBOLS_TABLES_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANGE_NONE UINT32_MAX

struct range {
    uint64_t start, end; /* nothing when end <= start */
    uint32_t owner;
    uint32_t priority; /* the highest wins; of two equal ones the later start */
};

struct range_map {
    uint64_t *starts; /* [starts[i], starts[i + 1]) belongs to owners[i] */
    uint32_t *owners; /* RANGE_NONE for a gap, and always for the last */
    size_t count;
};

/* Sorts the ranges in place by start. */
void range_map_build(struct range_map *ret, struct range *ranges, size_t count);
void range_map_done(struct range_map *map);

/* The owner at an address; RANGE_NONE when there is none. */
static inline uint32_t range_find(const uint64_t *starts, const uint32_t *owners, size_t count,
                                  uint64_t address)
{
    if (count == 0 || address < starts[0])
        return RANGE_NONE;
    size_t low = 0;
    while (count > 1) {
        size_t half = count / 2;
        low += starts[low + half] <= address ? half : 0;
        count -= half;
    }
    return owners[low];
}

static inline uint32_t range_map_find(const struct range_map *map, uint64_t address)
{
    return range_find(map->starts, map->owners, map->count, address);
}

#endif

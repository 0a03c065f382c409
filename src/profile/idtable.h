/* SPDX-License-Identifier: MIT */
/*
 * A hash table of numbers: it finds the index of an item that stands in an array of the caller.
 * Only the indices are kept here (4 bytes each), so that interning costs little more than the
 * items themselves.  The caller compares; everything is inline, since a million samples pass
 * through these few lines.
 *
 *   uint32_t slot, id;
 *   IDTABLE_EACH(&table, hash, slot, id)
 *       if (items[id] equals the wanted one)
 *           return id;
 *   … append the item, id = its index …
 *   idtable_put(&table, slot, id);
 *   if (idtable_is_crowded(&table))
 *       idtable_grow(&table, hash_of_item, items);
 */
#ifndef ASSAY_PROFILE_IDTABLE_H
#define ASSAY_PROFILE_IDTABLE_H

#include "base/hash.h"
#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>

#define IDTABLE_NONE UINT32_MAX

struct idtable {
    uint32_t *slots; /* index + 1; 0 for free */
    uint32_t mask;   /* slots - 1 */
    uint32_t count;
};

static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6))) * 0xff51afd7ed558ccdULL;
    h ^= h >> 32;
    h *= 0xc4ceb9fe1a85ec53ULL;
    return h ^ (h >> 29);
}

static inline uint64_t hash_string(const char *text)
{
    return hash_mix(hash_text(HASH_START, text), 0);
}

static inline void idtable_init(struct idtable *t, uint32_t slot_count_log2)
{
    uint32_t slot_count = 1u << slot_count_log2;
    *t = (struct idtable){.slots = memory_zalloc(slot_count, sizeof(*t->slots)),
                          .mask = slot_count - 1};
}

static inline void idtable_done(struct idtable *t)
{
    free(t->slots);
    *t = (struct idtable){0};
}

static inline void idtable_clear(struct idtable *t)
{
    for (size_t i = 0; i <= t->mask; i++)
        t->slots[i] = 0;
    t->count = 0;
}

static inline uint32_t idtable_at(const struct idtable *t, uint32_t slot)
{
    return t->slots[slot] - 1; /* IDTABLE_NONE for a free slot */
}

#define IDTABLE_EACH(table, hash, slot, id)                    \
    for ((slot) = (uint32_t)(hash) & (table)->mask;            \
         ((id) = idtable_at((table), (slot))) != IDTABLE_NONE; \
         (slot) = ((slot) + 1) & (table)->mask)

static inline void idtable_put(struct idtable *t, uint32_t slot, uint32_t id)
{
    t->slots[slot] = id + 1;
    t->count++;
}

static inline bool idtable_is_crowded(const struct idtable *t)
{
    return (uint64_t)t->count * 10 > (uint64_t)t->mask * 7;
}

static inline void idtable_grow(struct idtable *t, uint64_t (*hash)(const void *items, uint32_t id),
                                const void *items)
{
    struct idtable larger = {
        .slots = memory_zalloc(2 * ((size_t)t->mask + 1), sizeof(*t->slots)),
        .mask = 2 * t->mask + 1,
        .count = t->count,
    };
    for (uint32_t i = 0; i <= t->mask; i++) {
        uint32_t id = idtable_at(t, i);
        if (id == IDTABLE_NONE)
            continue;
        uint32_t slot = (uint32_t)hash(items, id) & larger.mask;
        while (larger.slots[slot])
            slot = (slot + 1) & larger.mask;
        larger.slots[slot] = id + 1;
    }
    free(t->slots);
    *t = larger;
}

#endif

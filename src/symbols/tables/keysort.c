/* SPDX-License-Identifier: MIT */
/* Radix sort, from the lowest digit up: see keysort.h. */
#include "symbols/tables/keysort.h"

#include "base/memory.h"

#include <stdbool.h>
#include <string.h>

#define DIGIT_BITS 11
#define DIGIT_VALUES (1u << DIGIT_BITS)
#define FEW 64

static bool is_sorted(const struct keysort_item *items, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (items[i].key < items[i - 1].key)
            return false;
    return true;
}

static void insertion_sort(struct keysort_item *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct keysort_item item = items[i];
        size_t at = i;
        for (; at > 0 && items[at - 1].key > item.key; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

/* Moves the items to `to` in order of one digit; false when all have the same. */
static bool sort_digit(const struct keysort_item *from, struct keysort_item *to, size_t count,
                       unsigned shift)
{
    uint32_t starts[DIGIT_VALUES] = {0};
    for (size_t i = 0; i < count; i++)
        starts[from[i].key >> shift & (DIGIT_VALUES - 1)]++;
    if (starts[from[0].key >> shift & (DIGIT_VALUES - 1)] == count)
        return false;
    uint32_t sum = 0;
    for (size_t i = 0; i < DIGIT_VALUES; i++) {
        uint32_t here = starts[i];
        starts[i] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[from[i].key >> shift & (DIGIT_VALUES - 1)]++] = from[i];
    return true;
}

void keysort(struct keysort_item *items, size_t count)
{
    if (is_sorted(items, count))
        return;
    if (count < FEW) {
        insertion_sort(items, count);
        return;
    }
    struct keysort_item *other = memory_alloc(count * sizeof(*other)), *from = items, *to = other;
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (sort_digit(from, to, count, shift)) {
            struct keysort_item *swap = from;
            from = to;
            to = swap;
        }
    }
    if (from != items)
        memcpy(items, from, count * sizeof(*items));
    free(other);
}

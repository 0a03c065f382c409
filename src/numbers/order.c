/* SPDX-License-Identifier: MIT */
/* See order.h. */
#include "numbers/order.h"
#include "base/memory.h"
#include "numbers/random.h"

#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

/* 0, 1, n-1, 2, n-2, …: neighbours differ by every distance once. */
static size_t zigzag(size_t place, size_t count)
{
    return place % 2 ? (place + 1) / 2 : (count - place / 2) % count;
}

void round_order(uint64_t seed, uint64_t round, size_t *items, size_t count)
{
    if (count < 2)
        return;
    uint64_t cycle = count % 2 ? 2 * count : count;
    CLEANUP(memory_freep) size_t *labels = memory_alloc(count * sizeof(*labels));
    struct rng rng;
    qsort(items, count, sizeof(*items), by_size);
    rng_seed(&rng, seed + round / cycle * 0x2545f4914f6cdd1dULL);
    rng_shuffle(&rng, items, count);
    for (size_t i = 0; i < count; i++) /* the first round of a cycle is as it was shuffled */
        labels[zigzag(i, count)] = items[i];
    size_t within = (size_t)(round % cycle), shift = within / 2;
    for (size_t i = 0; i < count; i++) {
        size_t place = within % 2 ? count - 1 - i : i;
        items[place] = labels[(zigzag(i, count) + shift) % count];
    }
}

size_t round_first_of_two(uint64_t seed, uint64_t round)
{
    size_t items[] = {0, 1};
    round_order(seed, round, items, 2);
    return items[0];
}

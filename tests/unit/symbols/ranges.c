/* SPDX-License-Identifier: MIT */
#include "symbols/tables/ranges.h"
#include "base/memory.h"
#include "symbols/tables/keysort.h"
#include "test.h"

static uint32_t owner_at(struct range *ranges, size_t count, uint64_t address)
{
    struct range_map map;
    range_map_build(&map, ranges, count);
    uint32_t owner = range_map_find(&map, address);
    range_map_done(&map);
    return owner;
}

TEST(nothing_owns_nothing)
{
    CHECK_INT(owner_at(NULL, 0, 0), RANGE_NONE);
    struct range empty = {.start = 5, .end = 5, .owner = 1};
    CHECK_INT(owner_at(&empty, 1, 5), RANGE_NONE);
}

TEST(the_inner_one_wins_and_the_outer_one_goes_on)
{
    struct range ranges[] = {{10, 100, 1, 0}, {20, 30, 2, 1}, {25, 28, 3, 2}};
    size_t count = ARRAY_COUNT(ranges);
    CHECK_INT(owner_at(ranges, count, 9), RANGE_NONE);
    CHECK_INT(owner_at(ranges, count, 10), 1);
    CHECK_INT(owner_at(ranges, count, 20), 2);
    CHECK_INT(owner_at(ranges, count, 27), 3);
    CHECK_INT(owner_at(ranges, count, 28), 2);
    CHECK_INT(owner_at(ranges, count, 30), 1);
    CHECK_INT(owner_at(ranges, count, 99), 1);
    CHECK_INT(owner_at(ranges, count, 100), RANGE_NONE);
}

/* Against the definition, for many small cases. */
TEST(a_map_agrees_with_looking_at_each_range)
{
    uint32_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        struct range ranges[12], copy[12];
        size_t count = (size_t)(seed >> 8) % 12;
        for (size_t i = 0; i < count; i++) {
            seed = seed * 1103515245u + 12345u;
            uint64_t start = seed >> 16 & 31;
            seed = seed * 1103515245u + 12345u;
            ranges[i] = (struct range){start, start + (seed >> 16 & 7), (uint32_t)i,
                                       (seed >> 24 & 3) * 16 + (uint32_t)i};
        }
        memcpy(copy, ranges, sizeof(copy));
        struct range_map map;
        range_map_build(&map, ranges, count);
        for (uint64_t address = 0; address < 42; address++) {
            const struct range *best = NULL;
            for (size_t i = 0; i < count; i++)
                if (address >= copy[i].start && address < copy[i].end &&
                    (!best || copy[i].priority > best->priority))
                    best = &copy[i];
            uint32_t expected = best ? best->owner : RANGE_NONE;
            if (range_map_find(&map, address) == expected)
                continue;
            test_fail(__FILE__, __LINE__, "round %d, address %d: %u, not %u", round, (int)address,
                      range_map_find(&map, address), expected);
            round = 2000; /* one is enough */
            break;
        }
        for (size_t i = 1; i < map.count; i++)
            CHECK(map.starts[i] > map.starts[i - 1] && map.owners[i] != map.owners[i - 1]);
        range_map_done(&map);
        seed = seed * 1103515245u + 12345u;
    }
}

TEST(keys_are_sorted_and_equal_ones_keep_their_order)
{
    uint32_t seed = 9;
    for (size_t count = 0; count < 3000; count = count * 3 / 2 + 1) {
        struct keysort_item *items = memory_zalloc(count, sizeof(*items));
        for (size_t i = 0; i < count; i++) {
            seed = seed * 1103515245u + 12345u;
            uint64_t key = seed >> 16 & 0xff;
            items[i] = (struct keysort_item){seed & 0x100 ? key : key << 50 | key, (uint32_t)i};
        }
        keysort(items, count);
        for (size_t i = 1; i < count; i++)
            CHECK(items[i - 1].key < items[i].key ||
                  (items[i - 1].key == items[i].key && items[i - 1].index < items[i].index));
        free(items);
    }
}

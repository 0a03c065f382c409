/* SPDX-License-Identifier: MIT */
#include "numbers/order.h"
#include "test.h"

#include <string.h>

enum { COUNT_MAX = 9 };

static void order_of(uint64_t seed, uint64_t round, size_t count, size_t *items)
{
    for (size_t i = 0; i < count; i++)
        items[i] = i;
    round_order(seed, round, items, count);
}

TEST(every_second_round_reverses_the_one_before)
{
    for (size_t count = 2; count <= COUNT_MAX; count++)
        for (uint64_t round = 0; round < 40; round += 2) {
            size_t one[COUNT_MAX], two[COUNT_MAX];
            order_of(7, round, count, one);
            order_of(7, round + 1, count, two);
            for (size_t i = 0; i < count; i++)
                CHECK_INT(one[i], two[count - 1 - i]);
        }
}

TEST(a_cycle_is_balanced)
{
    for (size_t count = 2; count <= COUNT_MAX; count++) {
        size_t at[COUNT_MAX][COUNT_MAX] = {0}, after[COUNT_MAX][COUNT_MAX] = {0};
        size_t cycle = count % 2 ? 2 * count : count;
        for (uint64_t round = 3 * cycle; round < 4 * cycle; round++) {
            size_t items[COUNT_MAX];
            order_of(11, round, count, items);
            for (size_t i = 0; i < count; i++) {
                at[items[i]][i]++;
                if (i > 0)
                    after[items[i]][items[i - 1]]++;
            }
            /* Within a count of rounds nothing is first twice. */
            for (size_t i = 0; round + 1 == 3 * cycle + count && i < count; i++)
                CHECK_INT(at[i][0], 1);
        }
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < count; k++) {
                CHECK_INT(at[i][k], cycle / count);
                CHECK_INT(after[i][k], i == k ? 0 : cycle / count);
            }
    }
}

TEST(the_order_follows_from_seed_round_and_set_alone)
{
    size_t one[] = {4, 8, 15, 16, 23}, two[] = {23, 4, 16, 8, 15}, other[] = {4, 8, 15, 16, 23};
    round_order(3, 17, one, 5);
    round_order(3, 17, two, 5);
    CHECK_INT(memcmp(one, two, sizeof(one)), 0);
    size_t same = 0, first = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        round_order(seed, 17, other, 5);
        same += memcmp(one, other, sizeof(one)) == 0;
        first += round_first_of_two(seed, 2);
    }
    CHECK(same < 40);
    CHECK_NEAR((double)first, 500, 60);
    round_order(1, 1, NULL, 0);
    round_order(1, 1, one, 1);
}

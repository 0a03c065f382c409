/* SPDX-License-Identifier: MIT */
/*
 * In which order the items of a round run.  A new shuffle for each round would be fair in the long
 * run only: of three rounds, one in four has the same command first each time, and a first run that
 * is always slower (cold caches, a clock that speeds up) then looks like a slower command.  So
 * orders are drawn for several rounds together (Williams 1949, with labels that are drawn anew):
 *
 *   - every second round has the order of the one before it, reversed, so that each pair of items
 *     ran in both orders;
 *   - in `count` rounds one after the other each item is first once, and in a whole cycle (`count`
 *     rounds, or twice as many for an odd count) it is at each place, and right after each other
 *     item, equally often.
 */
#ifndef ASSAY_NUMBERS_ORDER_H
#define ASSAY_NUMBERS_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* Puts `count` different items into the order of a round, from 0 on.  It follows from the seed, the
 * round and the set of items alone, not from the order in which they come. */
void round_order(uint64_t seed, uint64_t round, size_t *items, size_t count);
/* The same for two: which of them, 0 or 1, comes first. */
size_t round_first_of_two(uint64_t seed, uint64_t round);

#endif

/* SPDX-License-Identifier: MIT */
/* Sorting of many numbers: addresses, mostly in order already. */
#ifndef ASSAY_SYMBOLS_TABLES_KEYSORT_H
#define ASSAY_SYMBOLS_TABLES_KEYSORT_H

#include <stddef.h>
#include <stdint.h>

struct keysort_item {
    uint64_t key;
    uint32_t index; /* what it is the key of */
};

/* By key; equal keys keep their order.  In linear time. */
void keysort(struct keysort_item *items, size_t count);

#endif

/* SPDX-License-Identifier: MIT */
/* An arena: many small allocations that end together.  Start with {0}; arena_done frees all. */
#ifndef ASSAY_BASE_ARENA_H
#define ASSAY_BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks;
    size_t used, capacity; /* of the newest block */
    size_t total_bytes;    /* handed out so far */
};

void *arena_alloc(struct arena *a, size_t size_bytes); /* aligned to 16, not zeroed */
char *arena_strndup(struct arena *a, const char *text, size_t length);
char *arena_strdup(struct arena *a, const char *text);
void arena_done(struct arena *a);

#endif

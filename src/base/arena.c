/* SPDX-License-Identifier: MIT */
/* An arena: see arena.h. */
#include "base/arena.h"
#include "base/memory.h"

#include <stdalign.h>
#include <string.h>

#define ARENA_BLOCK_BYTES (64u << 10)
#define ARENA_ALIGN 16u

struct arena_block {
    struct arena_block *next;
    alignas(ARENA_ALIGN) char data[];
};

void *arena_alloc(struct arena *a, size_t size_bytes)
{
    size_t size = (size_bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (!a->blocks || a->capacity - a->used < size) {
        size_t capacity = size > ARENA_BLOCK_BYTES ? size : ARENA_BLOCK_BYTES;
        struct arena_block *block = memory_alloc(sizeof(*block) + capacity);
        block->next = a->blocks;
        a->blocks = block;
        a->used = 0;
        a->capacity = capacity;
    }
    void *result = a->blocks->data + a->used;
    a->used += size;
    a->total_bytes += size;
    return result;
}

char *arena_strndup(struct arena *a, const char *text, size_t length)
{
    char *copy = arena_alloc(a, length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *arena_strdup(struct arena *a, const char *text)
{
    return arena_strndup(a, text, strlen(text));
}

void arena_done(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
    *a = (struct arena){0};
}

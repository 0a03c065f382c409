/* SPDX-License-Identifier: MIT */
/*
 * Allocation.  Running out of memory is not an error that callers handle: sizes that come from
 * outside are checked against what the input can hold before anything is allocated, and what
 * remains aborts with a word.  memory_free(NULL) is allowed as with free().
 */
#ifndef ASSAY_BASE_MEMORY_H
#define ASSAY_BASE_MEMORY_H

#include <stddef.h>
#include <stdlib.h>

void *memory_alloc(size_t size_bytes) __attribute__((malloc, returns_nonnull));
void *memory_zalloc(size_t count, size_t size_bytes) __attribute__((malloc, returns_nonnull));
void *memory_resize(void *old, size_t count, size_t size_bytes) __attribute__((returns_nonnull));
char *memory_strdup(const char *string) __attribute__((malloc, returns_nonnull));
char *memory_strndup(const char *string, size_t length) __attribute__((malloc, returns_nonnull));
char *memory_printf(const char *format, ...)
    __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

/* Makes room for at least `needed` elements, growing geometrically. */
void *memory_grow(void *old, size_t *capacity, size_t needed, size_t size_bytes);

/* Appends one element to a growing array: ARRAY_PUSH(items, count, capacity) = value; */
#define ARRAY_PUSH(array, count, capacity)                                         \
    (*((array) = memory_grow((array), &(capacity), (count) + 1, sizeof(*(array))), \
       &(array)[(count)++]))

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Runs fn(&variable) when the variable leaves its scope. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))

static inline void memory_freep(void *pointer)
{
    free(*(void **)pointer);
}

#endif

/* SPDX-License-Identifier: MIT */
/* Allocation that aborts when there is none: see memory.h. */
#include "base/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static _Noreturn void out_of_memory(size_t size_bytes)
{
    fprintf(stderr, "assay: out of memory (%zu bytes requested)\n", size_bytes);
    abort();
}

void *memory_alloc(size_t size_bytes)
{
    void *block = malloc(size_bytes ? size_bytes : 1);
    if (!block)
        out_of_memory(size_bytes);
    return block;
}

void *memory_zalloc(size_t count, size_t size_bytes)
{
    void *block = calloc(count ? count : 1, size_bytes ? size_bytes : 1);
    if (!block)
        out_of_memory(size_bytes);
    return block;
}

void *memory_resize(void *old, size_t count, size_t size_bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, size_bytes, &total))
        out_of_memory(SIZE_MAX);
    void *block = realloc(old, total ? total : 1);
    if (!block)
        out_of_memory(total);
    return block;
}

char *memory_strdup(const char *string)
{
    return memory_strndup(string, strlen(string));
}

char *memory_strndup(const char *string, size_t length)
{
    char *copy = memory_alloc(length + 1);
    memcpy(copy, string, length);
    copy[length] = '\0';
    return copy;
}

char *memory_printf(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0 || !text)
        out_of_memory(0);
    return text;
}

void *memory_grow(void *old, size_t *capacity, size_t needed, size_t size_bytes)
{
    if (needed <= *capacity)
        return old;
    size_t wanted = *capacity > 8 ? *capacity : 8; /* half of 1 would add nothing for ever */
    while (wanted < needed)
        wanted += wanted / 2;
    *capacity = wanted;
    return memory_resize(old, wanted, size_bytes);
}

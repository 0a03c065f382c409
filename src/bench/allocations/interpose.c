/* SPDX-License-Identifier: MIT */
/* Counts allocations in a program with benchmarks: loaded before the C library (LD_PRELOAD), for a
 * pass of its own.  assay.h reads assay_allocated. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

#define EXPORT __attribute__((visibility("default")))

EXPORT uint64_t assay_allocated[2]; /* calls, bytes */

static void count(size_t bytes)
{
    __atomic_fetch_add(&assay_allocated[0], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&assay_allocated[1], bytes, __ATOMIC_RELAXED);
}

EXPORT void *malloc(size_t size);
EXPORT void *calloc(size_t members, size_t size);
EXPORT void *realloc(void *old, size_t size);
EXPORT void *memalign(size_t alignment, size_t size);
EXPORT void *aligned_alloc(size_t alignment, size_t size);
EXPORT int posix_memalign(void **ret, size_t alignment, size_t size);

void *malloc(size_t size)
{
    count(size);
    return __libc_malloc(size);
}

void *calloc(size_t members, size_t size)
{
    count(members * size);
    return __libc_calloc(members, size);
}

void *realloc(void *old, size_t size)
{
    count(size);
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size)
{
    count(size);
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    count(size);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
    if (!alignment || alignment % sizeof(void *) || (alignment & (alignment - 1)))
        return EINVAL;
    count(size);
    void *memory = __libc_memalign(alignment, size);
    if (!memory)
        return ENOMEM;
    *ret = memory;
    return 0;
}

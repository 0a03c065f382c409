/* SPDX-License-Identifier: MIT */
/* The first touch of a page of anonymous memory. */
#include "scale.h"

#include <sys/mman.h>

static int run(struct task *t, struct error *err)
{
    return task_fault_pages(t, MAP_PRIVATE | MAP_ANONYMOUS, -1, err);
}

SCALE_TEST(page_fault1,
           .summary = "first write to a page of anonymous memory; mapped again after 128 MB",
           .calls = "mmap/pages munmap/pages", .memory_bytes = SCALE_BIG_BYTES, .run = run);

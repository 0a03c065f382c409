/* SPDX-License-Identifier: MIT */
/* A page that goes away must be forgotten by every CPU that runs the process: with threads, by all.
 */
#include "scale.h"

#include <sys/mman.h>

static int run(struct task *t, struct error *err)
{
    return task_flush_pages(t, MAP_PRIVATE | MAP_ANONYMOUS, -1, SCALE_MIB, err);
}

SCALE_TEST(tlb_flush2, .summary = "write a page of anonymous memory, MADV_DONTNEED it",
           .calls = "madvise", .memory_bytes = SCALE_MIB, .run = run);

/* SPDX-License-Identifier: MIT */
/* A page that goes away must be forgotten by every CPU that runs the process: with threads, by all.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <sys/mman.h>

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_sparse_file(t, SCALE_BIG_BYTES, err);
    return fd < 0 ? fd : task_flush_pages(t, MAP_PRIVATE, fd, SCALE_BIG_BYTES, err);
}

SCALE_TEST(tlb_flush1,
           .summary = "write a page of a private mapping of a private file, MADV_DONTNEED it",
           .calls = "madvise", .memory_bytes = SCALE_BIG_BYTES, .run = run);

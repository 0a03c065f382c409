/* SPDX-License-Identifier: MIT */
/* The first write to a page of a shared mapping of a file. */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <sys/mman.h>

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_sparse_file(t, SCALE_BIG_BYTES, err);
    return fd < 0 ? fd : task_fault_pages(t, MAP_SHARED, fd, err);
}

SCALE_TEST(
    page_fault3,
    .summary =
        "first write to a page of a shared mapping of a private file; mapped again after 128 MB",
    .calls = "mmap/pages munmap/pages", .memory_bytes = SCALE_BIG_BYTES,
    .disk_bytes = SCALE_BIG_BYTES, .run = run);

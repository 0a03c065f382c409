/* SPDX-License-Identifier: MIT */
/* From the page cache, all tasks from one file. */
#include "blocks.h"

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_shared_file(t, O_RDONLY, err);
    return fd < 0 ? fd : blocks_run(t, fd, BLOCKS_READ | BLOCKS_FOLLOW, 0, err);
}

SCALE_TEST(read2, .summary = "read 4 KiB of the same file, block after block",
           .calls = "read lseek/256", .prepare = scale_prepare_shared, .run = run);

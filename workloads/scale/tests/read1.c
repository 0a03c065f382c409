/* SPDX-License-Identifier: MIT */
/* From the page cache, each task from a file of its own. */
#include "blocks.h"

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_own_file(t, SCALE_FILE_BYTES, 0, err);
    return fd < 0 ? fd : blocks_run(t, fd, BLOCKS_READ | BLOCKS_FOLLOW, 0, err);
}

SCALE_TEST(read1, .summary = "read 4 KiB of a private file, block after block",
           .calls = "read lseek/256", .run = run);

/* SPDX-License-Identifier: MIT */
/* Into the page cache, each task into a file of its own. */
#include "blocks.h"

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_own_file(t, SCALE_FILE_BYTES, 0, err);
    return fd < 0 ? fd : blocks_run(t, fd, BLOCKS_FOLLOW, 0, err);
}

SCALE_TEST(write1, .summary = "write 4 KiB of a private file, block after block",
           .calls = "write lseek/256", .run = run);

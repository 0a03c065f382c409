/* SPDX-License-Identifier: MIT */
/* All tasks in one file, each at its own place. */
#include "blocks.h"

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_shared_file(t, O_RDONLY, err);
    return fd < 0 ? fd : blocks_run(t, fd, BLOCKS_READ | BLOCKS_SEEK, task_offset(t), err);
}

SCALE_TEST(readseek3, .summary = "lseek, then read 4 KiB of one file, each at its own offset",
           .calls = "lseek read", .prepare = scale_prepare_shared, .run = run);

/* SPDX-License-Identifier: MIT */
/* From the device, all tasks from one file. */
#include "blocks.h"

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_shared_file(t, O_RDONLY | O_DIRECT, err);
    return fd < 0 ? fd : blocks_run(t, fd, BLOCKS_READ | BLOCKS_FOLLOW, 0, err);
}

SCALE_TEST(read4, .summary = "read 4 KiB of the same file with O_DIRECT", .calls = "read lseek/256",
           .prepare = scale_prepare_shared_direct, .run = run);

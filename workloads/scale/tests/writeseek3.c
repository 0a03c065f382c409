/* SPDX-License-Identifier: MIT */
/* All tasks in one file, each at its own place. */
#include "blocks.h"

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_shared_file(t, O_RDWR, err);
    return fd < 0 ? fd : blocks_run(t, fd, BLOCKS_SEEK, task_offset(t), err);
}

SCALE_TEST(writeseek3, .summary = "lseek, then write 4 KiB of one file, each at its own offset",
           .calls = "lseek write", .prepare = scale_prepare_shared, .run = run);

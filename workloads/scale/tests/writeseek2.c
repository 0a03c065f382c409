/* SPDX-License-Identifier: MIT */
/* All tasks at one place of one file. */
#include "blocks.h"

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_shared_file(t, O_RDWR, err);
    return fd < 0 ? fd : blocks_run(t, fd, BLOCKS_SEEK, 0, err);
}

SCALE_TEST(writeseek2, .summary = "lseek, then write 4 KiB of one file, all at the same offset",
           .calls = "lseek write", .prepare = scale_prepare_shared, .run = run);

/* SPDX-License-Identifier: MIT */
/* All tasks at one place of one file. */
#include "blocks.h"

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_shared_file(t, O_RDWR, err);
    return fd < 0 ? fd : blocks_run(t, fd, BLOCKS_AT, 0, err);
}

SCALE_TEST(pwrite2, .summary = "pwrite 4 KiB of one file, all at the same offset",
           .calls = "pwrite64", .prepare = scale_prepare_shared, .run = run);

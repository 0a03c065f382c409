/* SPDX-License-Identifier: MIT */
/* Each task in a file of its own. */
#include "blocks.h"

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_own_file(t, SCALE_FILE_BYTES, 0, err);
    return fd < 0 ? fd : blocks_run(t, fd, BLOCKS_SEEK, 0, err);
}

SCALE_TEST(writeseek1, .summary = "lseek, then write 4 KiB of a private file",
           .calls = "lseek write", .run = run);

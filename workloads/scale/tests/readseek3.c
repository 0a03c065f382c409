/* SPDX-License-Identifier: MIT */
/* All tasks in one file, each at its own place. */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <fcntl.h>
#include <unistd.h>

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_shared_file(t, O_RDONLY, err);
    if (fd < 0)
        return fd;
    _Alignas(SCALE_BLOCK_BYTES) char block[SCALE_BLOCK_BYTES] = {0};
    const off_t at = task_offset(t);
    task_start(t);
    do {
        if (lseek(fd, at, SEEK_SET) != at)
            return task_failed(err, "lseek");
        if (read(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
            return task_failed(err, "read");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(readseek3, .summary = "lseek, then read 4 KiB of one file, each at its own offset",
           .calls = "lseek read", .prepare = scale_prepare_shared, .run = run);

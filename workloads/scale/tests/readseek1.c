/* SPDX-License-Identifier: MIT */
/* Each task in a file of its own. */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <unistd.h>

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_own_file(t, SCALE_FILE_BYTES, 0, err);
    if (fd < 0)
        return fd;
    _Alignas(SCALE_BLOCK_BYTES) char block[SCALE_BLOCK_BYTES] = {0};
    task_start(t);
    do {
        if (lseek(fd, 0, SEEK_SET) != 0)
            return task_failed(err, "lseek");
        if (read(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
            return task_failed(err, "read");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(readseek1, .summary = "lseek, then read 4 KiB of an own file", .calls = "lseek read",
           .run = run);

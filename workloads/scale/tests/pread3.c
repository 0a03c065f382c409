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
        if (pread(fd, block, sizeof(block), at) != (ssize_t)sizeof(block))
            return task_failed(err, "pread");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(pread3, .summary = "pread 4 KiB of one file, each at its own offset", .calls = "pread64",
           .prepare = scale_prepare_shared, .run = run);

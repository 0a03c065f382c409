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
        if (pread(fd, block, sizeof(block), 0) != (ssize_t)sizeof(block))
            return task_failed(err, "pread");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(pread1, .summary = "pread 4 KiB of an own file", .calls = "pread64", .run = run);

/* SPDX-License-Identifier: MIT */
/* Room in a file ahead of its use, in the temporary folder. */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { STEP_BYTES = SCALE_FILE_BYTES / 128 };

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_own_file(t, 0, 0, err);
    if (fd < 0)
        return fd;
    off_t at = 0;
    task_start(t);
    do {
        if (fallocate(fd, 0, at, STEP_BYTES) < 0) {
            if (errno == EOPNOTSUPP)
                return error_set(err, -EOPNOTSUPP,
                                 "%s: this file system does not support fallocate; choose a "
                                 "directory on another with --folder",
                                 t->folder);
            return task_failed(err, "fallocate");
        }
        at += STEP_BYTES;
        if (at == SCALE_FILE_BYTES) {
            if (ftruncate(fd, 0) < 0)
                return task_failed(err, "ftruncate");
            at = 0;
        }
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(fallocate2, .summary = "fallocate 8 KiB more, empty at 1 MiB: a private file",
           .calls = "fallocate ftruncate/128", .disk_bytes = SCALE_FILE_BYTES, .run = run);

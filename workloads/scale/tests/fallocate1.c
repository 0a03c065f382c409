/* SPDX-License-Identifier: MIT */
/* Room in a file ahead of its use, in the shared-memory file system. */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STEP_BYTES = SCALE_FILE_BYTES / 128 };

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = memfd_create("scale", MFD_CLOEXEC);
    if (fd < 0)
        return task_failed(err, "memfd_create");
    off_t at = 0;
    task_start(t);
    do {
        if (fallocate(fd, 0, at, STEP_BYTES) < 0)
            return task_failed(err, "fallocate");
        at += STEP_BYTES;
        if (at == SCALE_FILE_BYTES) {
            if (ftruncate(fd, 0) < 0)
                return task_failed(err, "ftruncate");
            at = 0;
        }
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(fallocate1, .summary = "fallocate 8 KiB more, empty at 1 MiB: a shared-memory file",
           .calls = "fallocate ftruncate/128", .disk_bytes = SCALE_FILE_BYTES, .run = run);

/* SPDX-License-Identifier: MIT */
/* A file's position, set to where it is already. */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <unistd.h>

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_own_file(t, SCALE_FILE_BYTES, 0, err);
    if (fd < 0)
        return fd;
    task_start(t);
    do {
        if (lseek(fd, 0, SEEK_SET) != 0)
            return task_failed(err, "lseek");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(lseek1, .summary = "lseek in a private file", .calls = "lseek", .run = run);

/* SPDX-License-Identifier: MIT */
/* Locks of byte ranges as fcntl has them, all tasks the same byte of one file. */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <fcntl.h>

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_shared_file(t, O_RDWR, err);
    if (fd < 0)
        return fd;
    const struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    const struct flock unlock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_len = 1};
    task_start(t);
    do {
        if (fcntl(fd, F_SETLKW, &lock) < 0 || fcntl(fd, F_SETLKW, &unlock) < 0)
            return task_failed(err, "fcntl");
    } while (task_count(t, 2));
    return 0;
}

SCALE_TEST(lock2, .summary = "fcntl write lock + unlock of the same file; two operations",
           .calls = "fcntl", .note = "these locks do not exclude threads of the same process",
           .prepare = scale_prepare_shared, .run = run);

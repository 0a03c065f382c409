/* SPDX-License-Identifier: MIT */
/* Locks of byte ranges as fcntl has them, each task in a file of its own. */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <fcntl.h>

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_own_file(t, SCALE_FILE_BYTES, 0, err);
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

SCALE_TEST(lock1, .summary = "fcntl write lock + unlock of a private file; two operations",
           .calls = "fcntl", .run = run);

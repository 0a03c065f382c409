/* SPDX-License-Identifier: MIT */
/* A new descriptor for an open file. */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <unistd.h>

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_own_file(t, 0, 0, err);
    if (fd < 0)
        return fd;
    task_start(t);
    do {
        int copy = dup(fd);
        if (copy < 0 || close(copy) < 0)
            return task_failed(err, "dup");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(dup1, .summary = "dup + close of a private file", .calls = "dup close", .run = run);

/* SPDX-License-Identifier: MIT */
/* One path for all. */
#include "scale.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int run(struct task *t, struct error *err)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/shared", t->folder);
    task_start(t);
    do {
        int fd = open(path, O_RDWR);
        if (fd < 0 || close(fd) < 0)
            return task_failed(err, "open");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(open3, .summary = "open + close the same file", .calls = "openat close",
           .prepare = scale_prepare_shared, .run = run);

/* SPDX-License-Identifier: MIT */
/* Paths without a folder of their own in common. */
#include "scale.h"

#include <fcntl.h>
#include <unistd.h>

static int run(struct task *t, struct error *err)
{
    char path[512];
    int code = task_named_file(t, true, path, sizeof(path), err);
    if (code < 0)
        return code;
    task_start(t);
    do {
        int fd = open(path, O_RDWR);
        if (fd < 0 || close(fd) < 0)
            return task_failed(err, "open");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(open2, .summary = "open + close a private file, each in its own directory",
           .calls = "openat close", .run = run);

/* SPDX-License-Identifier: MIT */
/* Names that come and go, each task in a folder of its own. */
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
        int fd = open(path, O_RDWR | O_CREAT, 0600);
        if (fd < 0 || close(fd) < 0 || unlink(path) < 0)
            return task_failed(err, "creating and removing a file");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(unlink2, .summary = "create + close + unlink a file, each in its own directory",
           .calls = "openat close unlink", .run = run);

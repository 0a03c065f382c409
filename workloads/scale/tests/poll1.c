/* SPDX-License-Identifier: MIT */
/* A look at a descriptor that is always ready. */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <poll.h>

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_own_file(t, 0, 0, err);
    if (fd < 0)
        return fd;
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    task_start(t);
    do {
        if (poll(&one, 1, 0) != 1)
            return task_failed(err, "poll");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(poll1, .summary = "poll 1 descriptor", .calls = "poll", .run = run);

/* SPDX-License-Identifier: MIT */
/* A look at many descriptors that are all ready. */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <poll.h>

enum { FILES = 128 };

static void close_all(struct pollfd (*all)[FILES])
{
    for (int i = 0; i < FILES; i++)
        fd_closep(&(*all)[i].fd);
}

static int run(struct task *t, struct error *err)
{
    CLEANUP(close_all) struct pollfd all[FILES];
    for (int i = 0; i < FILES; i++)
        all[i] = (struct pollfd){.fd = -1, .events = POLLOUT};
    for (int i = 0; i < FILES; i++) {
        int fd = task_own_file(t, 0, 0, err);
        if (fd < 0)
            return fd;
        all[i].fd = fd;
    }
    task_start(t);
    do {
        if (poll(all, FILES, 0) != FILES)
            return task_failed(err, "poll");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(poll2, .summary = "poll 128 descriptors", .calls = "poll", .file_count = 128,
           .run = run);

/* SPDX-License-Identifier: MIT */
/* A byte that a task sends to itself: no other has to run. */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <fcntl.h>
#include <unistd.h>

static int run(struct task *t, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return task_failed(err, "pipe2");
    CLEANUP(fd_closep) int from = ends[0], to = ends[1];
    char byte = 0;
    task_start(t);
    do {
        if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
            return task_failed(err, "a byte to oneself");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(pipe1, .summary = "write + read one byte through a pipe", .calls = "write read",
           .run = run);

/* SPDX-License-Identifier: MIT */
/* A counter in the kernel, raised and emptied. */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <sys/eventfd.h>
#include <unistd.h>

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = eventfd(0, EFD_CLOEXEC);
    if (fd < 0)
        return task_failed(err, "eventfd");
    uint64_t value = 1;
    task_start(t);
    do {
        if (write(fd, &value, sizeof(value)) != (ssize_t)sizeof(value) ||
            read(fd, &value, sizeof(value)) != (ssize_t)sizeof(value))
            return task_failed(err, "eventfd");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(eventfd1, .summary = "write + read 8 bytes of an eventfd", .calls = "write read",
           .run = run);

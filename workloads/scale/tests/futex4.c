/* SPDX-License-Identifier: MIT */
/* A word that only this process can wait on. */
#include "scale.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static int run(struct task *t, struct error *err)
{
    uint32_t word = 0;
    task_start(t);
    do {
        if (syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0) == 0 || errno != EAGAIN)
            return task_failed(err, "futex");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(futex4,
           .summary = "FUTEX_WAIT_PRIVATE on a word whose value differs, so it returns at once",
           .calls = "futex", .run = run);

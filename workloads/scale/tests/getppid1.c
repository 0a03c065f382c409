/* SPDX-License-Identifier: MIT */
/* The cheapest system call: what entering and leaving the kernel costs. */
#include "scale.h"

#include <unistd.h>

static int run(struct task *t, struct error *err)
{
    (void)err;
    task_start(t);
    do
        (void)getppid();
    while (task_count(t, 1));
    return 0;
}

SCALE_TEST(getppid1, .summary = "getppid", .calls = "getppid", .run = run);

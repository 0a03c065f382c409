/* SPDX-License-Identifier: MIT */
/* A task that is alone on its CPU offers it to others. */
#include "scale.h"

#include <sched.h>

static int run(struct task *t, struct error *err)
{
    task_start(t);
    do {
        if (sched_yield() < 0)
            return task_failed(err, "sched_yield");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(sched_yield, .summary = "sched_yield", .calls = "sched_yield", .run = run);

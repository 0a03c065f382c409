/* SPDX-License-Identifier: MIT */
/* So little that the C library answers by itself. */
#include "scale.h"

#include <errno.h>
#include <stdlib.h>

static int run(struct task *t, struct error *err)
{
    task_start(t);
    do {
        void *memory = malloc(1024UL);
        if (!memory)
            return error_set(err, -ENOMEM, "malloc of 1 kB failed");
        __asm__ volatile("" : "+r"(memory) : : "memory"); /* else the compiler leaves both out */
        free(memory);
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(malloc2, .summary = "malloc + free of 1 kB", .calls = "", .run = run);

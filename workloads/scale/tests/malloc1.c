/* SPDX-License-Identifier: MIT */
/* So much that the C library asks the kernel each time. */
#include "scale.h"

#include <errno.h>
#include <stdlib.h>

static int run(struct task *t, struct error *err)
{
    task_start(t);
    do {
        void *memory = malloc(128UL * SCALE_MIB);
        if (!memory)
            return error_set(err, -ENOMEM, "malloc of 128 MB failed");
        __asm__ volatile("" : "+r"(memory) : : "memory"); /* else the compiler leaves both out */
        free(memory);
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(malloc1, .summary = "malloc + free of 128 MB", .calls = "mmap munmap", .run = run);

/* SPDX-License-Identifier: MIT */
/* Makes and removes a mapping that nobody touches. */
#include "scale.h"

#include <sys/mman.h>

static int run(struct task *t, struct error *err)
{
    task_start(t);
    do {
        void *memory =
            mmap(NULL, SCALE_BIG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED || munmap(memory, SCALE_BIG_BYTES) < 0)
            return task_failed(err, "mmap");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(mmap1, .summary = "mmap + munmap of 128 MB, anonymous", .calls = "mmap munmap",
           .run = run);

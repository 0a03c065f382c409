/* SPDX-License-Identifier: MIT */
/* Makes and removes a mapping that nobody touches. */
#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <sys/mman.h>

static int run(struct task *t, struct error *err)
{
    CLEANUP(fd_closep) int fd = task_sparse_file(t, SCALE_BIG_BYTES, err);
    if (fd < 0)
        return fd;
    task_start(t);
    do {
        void *memory = mmap(NULL, SCALE_BIG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (memory == MAP_FAILED || munmap(memory, SCALE_BIG_BYTES) < 0)
            return task_failed(err, "mmap");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(mmap2, .summary = "mmap + munmap of 128 MB, of a private file", .calls = "mmap munmap",
           .run = run);

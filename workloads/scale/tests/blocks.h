/* SPDX-License-Identifier: MIT */
/*
 * The loop of the tests that read and write blocks of 4 KiB.  It is inlined with a constant `how`,
 * so that each test has its own calls in the loop and no branch on the kind.
 */
#ifndef ASSAY_SCALE_TESTS_BLOCKS_H
#define ASSAY_SCALE_TESTS_BLOCKS_H

#include "base/fd.h"
#include "base/memory.h"
#include "scale.h"

#include <fcntl.h>
#include <unistd.h>

enum blocks_how {
    BLOCKS_READ = 1,   /* else write */
    BLOCKS_AT = 2,     /* pread, pwrite at the offset */
    BLOCKS_SEEK = 4,   /* lseek to the offset before */
    BLOCKS_FOLLOW = 8, /* block after block, and back to the start at the file's end */
};

static inline __attribute__((always_inline)) int blocks_run(struct task *t, int fd, unsigned how,
                                                            off_t at, struct error *err)
{
    _Alignas(SCALE_BLOCK_BYTES) char block[SCALE_BLOCK_BYTES] = {0};
    const ssize_t size = sizeof(block);
    size_t done = 0;
    task_start(t);
    do {
        if (how & BLOCKS_SEEK && lseek(fd, at, SEEK_SET) != at)
            return task_failed(err, "lseek");
        if (how & BLOCKS_AT && how & BLOCKS_READ && pread(fd, block, sizeof(block), at) != size)
            return task_failed(err, "pread");
        if (how & BLOCKS_AT && !(how & BLOCKS_READ) && pwrite(fd, block, sizeof(block), at) != size)
            return task_failed(err, "pwrite");
        if (!(how & BLOCKS_AT) && how & BLOCKS_READ && read(fd, block, sizeof(block)) != size)
            return task_failed(err, "read");
        if (!(how & BLOCKS_AT) && !(how & BLOCKS_READ) && write(fd, block, sizeof(block)) != size)
            return task_failed(err, "write");
        done += sizeof(block);
        if (how & BLOCKS_FOLLOW && done == SCALE_FILE_BYTES) {
            if (lseek(fd, 0, SEEK_SET) < 0)
                return task_failed(err, "lseek");
            done = 0;
        }
    } while (task_count(t, 1));
    return 0;
}

#endif

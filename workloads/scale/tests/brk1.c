/* SPDX-License-Identifier: MIT */
/* Moves the end of the heap up and down by a page: a mapping grows and shrinks. */
#include "scale.h"

#include <malloc.h>
#include <unistd.h>

static int prepare(const struct host *host, struct error *err)
{
    (void)host;
    (void)err;
    /* From here on the C library takes memory from elsewhere: threads that move the end of the
     * heap to and fro must not cut off what another just got there. */
#ifdef M_MMAP_THRESHOLD /* not in musl */
    mallopt(M_MMAP_THRESHOLD, 0);
#endif
    return 0;
}

static int run(struct task *t, struct error *err)
{
    char *low = sbrk(0);
    if (low == (void *)-1)
        return task_failed(err, "sbrk");
    char *high = low + sysconf(_SC_PAGESIZE);
    task_start(t);
    do {
        if (brk(high) < 0 || brk(low) < 0)
            return task_failed(err, "brk");
    } while (task_count(t, 2));
    return 0;
}

SCALE_TEST(brk1, .summary = "brk: the heap grows by a page, then shrinks; two operations",
           .calls = "brk", .prepare = prepare, .run = run);

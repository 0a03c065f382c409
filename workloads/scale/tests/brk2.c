/* SPDX-License-Identifier: MIT */
/* As brk1, but above a page that the task itself added first.  The kernel cannot join that page
 * with the heap that was there before the fork, so that growing makes and shrinking splits a
 * mapping. */
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
    if (sbrk(sysconf(_SC_PAGESIZE)) == (void *)-1)
        return task_failed(err, "sbrk");
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

SCALE_TEST(brk2, .summary = "brk as in brk1, above a page that the task keeps; two operations",
           .calls = "brk", .prepare = prepare, .run = run);

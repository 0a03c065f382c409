/* SPDX-License-Identifier: MIT */
/*
 * The critical path: from the end of a command back to its start, always along what the rest
 * waited for.
 *
 * The walk begins where the first thread ends and goes back in time.  While a thread runs, or could
 * run, the path is its own.  Where it waited and a thread of the command ended the wait, the path
 * goes on with that thread; where something else ended it (a timer, a disk, another program), the
 * wait itself is on the path.  A thread that sleeps
 * again and again and hardly runs between is followed only as far as the wait that it ended: what
 * went before is the waiting thread's.  Where a thread was made, it goes on with its maker.  So the
 * steps cover the whole time without a gap, and work that nobody waited for is on no step.
 */
#ifndef ASSAY_TIMELINE_PATH_H
#define ASSAY_TIMELINE_PATH_H

#include "timeline/timeline.h"

struct path_step {
    uint64_t start_ns, end_ns;
    uint32_t thread;
    uint32_t piece; /* of that thread; TIMELINE_NONE: no record tells what it did */
    /* The innermost wait that this step keeps waiting, of a thread that the path came from. */
    uint32_t waiter;       /* a thread, or TIMELINE_NONE */
    uint32_t waiter_piece; /* of that thread */
};

struct path {
    struct path_step *steps; /* from the start to the end */
    size_t count, capacity;
    uint64_t unknown_ns; /* in steps without a piece */
};

void path_find(struct path *p, const struct timeline *t);
void path_done(struct path *p);

#endif

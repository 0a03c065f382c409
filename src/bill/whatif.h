/* SPDX-License-Identifier: MIT */
/*
 * How much sooner a command would end if one line of its bill cost less.
 *
 * Each traced run is replayed: every thread does again what it did, in the same order and on as
 * many CPUs, but the pieces of the line take less time, wherever they are, on the path or not.  A
 * wait that a thread ended lasts until that thread comes to the same point; waits for anything else
 * last as long as they did.  The gain is what the replay with the change ends earlier than the one
 * without.
 *
 * Two replays bound the truth.  In one, a thread that is early does not wait for those that it used
 * to wake; in the other it does, as if they handed everything over in person.  A queue between them
 * makes the truth lie in between.
 */
#ifndef ASSAY_BILL_WHATIF_H
#define ASSAY_BILL_WHATIF_H

#include "bill/bill.h"

struct whatif {
    uint32_t line;                        /* of the bill */
    struct bill_estimate removed, halved; /* gains */
};

#define WHATIF_MOST 5

struct whatifs {
    struct whatif items[WHATIF_MOST];
    size_t count;
    double replay_error; /* how far the replay without a change is off, a share of the wall time */
};

/* For the largest lines that something could be done about. */
void whatif_predict(struct whatifs *w, const struct bill *b);

/* When the run's first thread would end, in ns from its start; NaN when the replay gets stuck.
 * is_meant: by item of the bill. */
double whatif_replay(const struct bill_run *run, const bool *is_meant, double scale,
                     bool hands_over);

#endif

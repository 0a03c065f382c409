/* SPDX-License-Identifier: MIT */
/* `assay history --backfill`: which commit each new change came with, and why. */
#ifndef ASSAY_CMD_HISTORY_BACKFILL_H
#define ASSAY_CMD_HISTORY_BACKFILL_H

#include "analysis/history.h"

struct history_backfill {
    const char *build; /* builds a commit; NULL for nothing to build */
    const char *run;   /* measures it; NULL: the command that the store has for the cell */
    bool quiet;
};

/* Measures the commits between the two results around each change that is certain, was not accepted
 * and not searched before.  What is found is kept in the store and in the histories.  A change that
 * cannot be searched is passed over with a message.  -EBUSY while another one works in this
 * repository, -EINTR when it was stopped: the next call resumes. */
int history_backfill(const struct history_backfill *o, struct store *store, struct histories *h,
                     struct error *err);

/* Whether an alarm or a search is due: certain, and not accepted. */
bool history_is_news(const struct history *one, size_t change);

#endif

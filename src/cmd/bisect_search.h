/* SPDX-License-Identifier: MIT */
/* What `assay bisect` and `assay history --backfill` share: a search to its end, with reasons. */
#ifndef ASSAY_CMD_BISECT_SEARCH_H
#define ASSAY_CMD_BISECT_SEARCH_H

#include "bisect/bisect.h"

/* Builds and measures until the search has ended, then profiles what was found and keeps the
 * reasons with the commits (settings.explain).  -EINTR: stopped, can be continued. */
int bisect_search(struct bisect *b, struct error *err);

#endif

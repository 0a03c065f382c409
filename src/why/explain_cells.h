/* SPDX-License-Identifier: MIT */
/*
 * Explains what was measured before: pairs of cells in the store.  The measured runs are those of
 * the store; only the cells that moved are run again, as their spec says, with a profiler.
 */
#ifndef ASSAY_WHY_EXPLAIN_CELLS_H
#define ASSAY_WHY_EXPLAIN_CELLS_H

#include "why/explain.h"

struct explain_cells {
    const char *db, *in, *output;
    const char *words[SIDE_COUNT]; /* as cellpairs.h takes them */
    const struct explain_settings *settings;
    uint64_t timeout_ns;
    void (*progress)(void *context, enum explain_phase phase, uint64_t round, uint64_t count);
    void *progress_context;
    /* Called with each pair's explanation, moved or not. */
    void (*found)(void *context, const struct explain *e);
    void *found_context;
};

/* Whether any of the cells ran in an emulated machine: nothing is run again for those. */
int explain_cells_are_emulated(const struct explain_cells *c, bool *ret, struct error *err);
int explain_cells_run(const struct explain_cells *c, struct error *err);

#endif

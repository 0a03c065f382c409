/* SPDX-License-Identifier: MIT */
/*
 * What an experiment lacks: runs that failed, cells without any value, an end that was never
 * reached.  Values of runs that failed do not count, so a verdict that does not mention them hides
 * that there is less behind it than planned.  Every report says it with these words.
 */
#ifndef ASSAY_ANALYSIS_LOSSES_H
#define ASSAY_ANALYSIS_LOSSES_H

#include "analysis/dataset.h"
#include "base/strings.h"

/* "41 of 90 runs failed, in 5 of 9 cells; 4 cells have no values at all."; nothing where none did.
 */
void losses_put_failed(struct strbuf *out, const struct dataset *d);
/* "This experiment was stopped before its end: …"; nothing where it is done. */
void losses_put_state(struct strbuf *out, const struct store_experiment *e);
/* The state in one word: "done", "running", "stopped", "failed", "killed". */
const char *losses_state(const struct store_experiment *e);
/* "9 of 10 runs failed (exit code 3)"; nothing where none did. */
void losses_put_cell(struct strbuf *out, const struct dataset_cell *cell);
/* "exit code 3", "signal 11 (Segmentation fault)", "done". */
void losses_put_status(struct strbuf *out, int status);
/* The cell has runs, and none of them has values. */
bool losses_is_lost(const struct dataset_cell *cell);
/* A caveat for a comparison of two cells of which some runs failed; nothing where none did. */
void losses_put_caveat(struct strbuf *out, const struct dataset_cell *base,
                       const struct dataset_cell *new);

#endif

/* SPDX-License-Identifier: MIT */
/* What the files of the bisect share. */
#ifndef ASSAY_BISECT_BISECT_INTERNAL_H
#define ASSAY_BISECT_BISECT_INTERNAL_H

#include "bisect/bisect.h"

/* One number or text of the settings, as the journal names it. */
struct bisect_setting {
    const char *name;
    enum { SETTING_TEXT, SETTING_COUNT, SETTING_SHARE } kind;
    size_t offset;
};
extern const struct bisect_setting bisect_setting_table[]; /* ends with {0} */

/* The values of one round: a metric for each of the action's commits. */
struct bisect_round {
    double values[3]; /* of the metric that is searched for */
    size_t count;
    const struct dataset *all; /* of a confirmation, else NULL */
};

/* The journal: written as it goes, read back by bisect_journal_read. */
int bisect_journal_create(struct bisect *b, struct error *err);
/* init_search is called when the settings and the commits are known. */
int bisect_journal_read(struct bisect *b, void (*init_search)(struct bisect *b), struct error *err);
int bisect_journal_reasons(struct bisect *b, size_t commit, struct error *err);
int bisect_journal_unit(struct bisect *b, const struct store_metric *m, struct error *err);
int bisect_journal_stolen(struct bisect *b, struct error *err);
int bisect_journal_retry(struct bisect *b, size_t commit, struct error *err);
int bisect_journal_build(struct bisect *b, size_t commit, const char *how, struct error *err);
/* Under which kernel a commit ran, the first time that it is known. */
int bisect_journal_kernel(struct bisect *b, size_t commit, struct error *err);
int bisect_journal_round(struct bisect *b, const struct bisect_round *round, struct error *err);

void bisect_set_unit(struct bisect *b, const char *unit, enum metric_better better);
/* Adds a metric of one round to the table of a step; values that are not finite are left out. */
void bisect_keep_values(struct bisect *b, size_t step, uint32_t round,
                        const struct store_metric *metric, const bool is_bound[2],
                        const double values[2]);

/* Metrics. */
/* Runs some rounds of both ends, as the spec says but for their number, and chooses. */
int bisect_choose_metric(struct bisect *b, const struct rounds_spec *like, struct error *err);
/* Whether the host took time from one of the runs, or the machine stood still. */
bool bisect_was_stolen(const struct rounds *r);
/* What the names of metrics begin with that are searched and kept; NULL: those of any name.  Where
 * an emulator counts, the host's times mean nothing, and what it takes from a run changes nothing.
 */
const char *bisect_only(const struct bisect *b);

/* What of the round failed: a commit that cannot run is left out when it is a candidate.  Before,
 * the round is tried again (0): programs fail now and then.  `failures`: of each commit, in this
 * round; is_warm: all have run to warm up. */
int bisect_after_failure(struct bisect *b, const struct bisection_action *a,
                         const struct rounds *done, size_t *failures, bool is_warm,
                         struct error *err);

/* Trees: a worktree for each commit.  *ret_ok is false when the commit cannot be built. */
char *bisect_tree_folder(const struct bisect *b, size_t commit); /* where its commands run */
int bisect_tree_make(struct bisect *b, size_t commit, bool *ret_ok, struct error *err);
void bisect_trees_remove(const struct bisect *b);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Three or more participants in an order: the best of each group is the baseline of the others, and
 * the judge says which of them are behind it.
 */
#ifndef ASSAY_ANALYSIS_RANKING_H
#define ASSAY_ANALYSIS_RANKING_H

#include "analysis/outcome.h"

struct ranking {
    size_t metric;       /* of the outcome's data */
    size_t *order;       /* participants: group by group, each with the best first */
    size_t count;        /* of those with values, in groups of three or more */
    struct dataset data; /* the outcome's, with other baselines; shares everything else */
    struct outcome against_best;
};

/* False, and nothing to be freed, when there is nothing to rank: no group of three, or a metric of
 * which neither way is better. */
bool ranking_make(struct ranking *r, const struct outcome *o, size_t metric);
void ranking_done(struct ranking *r);
/* The row of a participant against the best of its group; NULL for the best itself. */
const struct judge_row *ranking_row(const struct ranking *r, size_t participant);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What a gate found: new against base, and base against itself as a control, judged by the one
 * judge.  A row whose control shifts as the change does is void; clear regressions stay.
 */
#ifndef ASSAY_BISECT_GATE_H
#define ASSAY_BISECT_GATE_H

#include "analysis/judge.h"
#include "base/strings.h"

/* One metric in one cell. */
struct gate_row {
    char *metric, *unit, *cell;
    struct judge_row change, control; /* new against base, and base against itself */
    enum gate_result result;
    bool control_failed; /* its own shift is comparable with the change: the row is void */
};

struct gate_result_set {
    double max_regression;
    const char *base_commit;
    struct gate_row *rows;
    size_t count, capacity;
    enum gate_result result; /* the worst of all */
    bool control_failed;     /* of some row, and nothing else is clear */
};

/* d has a factor "side" with base, control and new.  Headline metrics of which one way is better.
 */
int gate_judge(struct gate_result_set *set, const struct dataset *d, struct error *err);
void gate_result_set_done(struct gate_result_set *set);

#endif

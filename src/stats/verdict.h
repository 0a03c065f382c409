/* SPDX-License-Identifier: MIT */
/*
 * A comparison in words: "1.34× faster [1.31, 1.37]", "no difference larger than 0.8 %", or
 * "cannot tell: differences below 3 % are invisible in this run; about 40 s more would show 1 %".
 */
#ifndef ASSAY_STATS_VERDICT_H
#define ASSAY_STATS_VERDICT_H

#include "stats/comparison.h"
#include "stats/metric.h"

enum verdict_kind {
    VERDICT_BETTER,
    VERDICT_WORSE,
    VERDICT_DIFFERENT, /* of a metric of which neither way is better */
    VERDICT_SAME,
    VERDICT_CANNOT_TELL,
};

struct verdict_options {
    enum metric_better better;
    bool speed;           /* a time or a rate: "faster" and "slower", else "less" and "more" */
    double interesting;   /* differences above this matter, 0.01 = 1 %; 0 means 1 % */
    double round_seconds; /* what one more round costs; 0 when unknown */
};

struct verdict {
    enum verdict_kind kind;
    double bound;        /* the largest difference that the interval leaves room for */
    double target;       /* when it cannot tell: what more measuring would show, … */
    double more_rounds;  /* … after how many more rounds, … */
    double more_seconds; /* … and how long they take; 0 when unknown */
    char text[160];
};

void verdict_judge(const struct comparison *comparison, const struct verdict_options *options,
                   struct verdict *ret_verdict);

enum gate_result { GATE_PASS, GATE_REGRESSION, GATE_INCONCLUSIVE };

/* Whether the metric got worse by more than max_regression (0.02 = 2 %): a regression when the
 * whole interval says so, passed when the whole interval says not, else inconclusive.  A metric of
 * which neither way is better counts any change. */
enum gate_result verdict_gate(const struct comparison *comparison, enum metric_better better,
                              double max_regression);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A comparison in words: "1.34× faster [1.31, 1.37]", "no difference larger than 0.8 %",
 * "cannot tell: differences below 3 % are invisible in this run; about 40 s more would show 1 %",
 * or "too noisy to tell: runs of the same command differ by up to 90 %". Only the judge (judge.h)
 * makes verdicts; everybody may print them.
 */
#ifndef ASSAY_ANALYSIS_VERDICT_H
#define ASSAY_ANALYSIS_VERDICT_H

#include "stats/comparison.h"
#include "stats/metric.h"

enum verdict_kind {
    VERDICT_BETTER,
    VERDICT_WORSE,
    VERDICT_DIFFERENT, /* of a metric of which neither way is better */
    VERDICT_SAME,
    VERDICT_CANNOT_TELL,
};

/* What the words are made from, besides the comparison. */
struct judge_tails;
struct verdict_options {
    struct metric_facts facts;
    const char *unit;                /* of differences; "" for none */
    double interesting;              /* differences above this matter, 0.01 = 1 %; 0 means 1 % */
    double round_seconds;            /* what one more round costs; 0 when unknown */
    const struct judge_tails *tails; /* what was seen besides the centre; NULL for nothing */
    double apart;                    /* how far runs of the same command are apart, the largest over
                                        the smallest less 1; 0 when unknown */
    size_t run_count, disturbed_count; /* of both */
};

enum { VERDICT_TEXT_MAX = 400 };

struct verdict {
    enum verdict_kind kind;
    double bound;        /* the largest difference that the interval leaves room for */
    double target;       /* when it cannot tell: what more measuring would show, … */
    double more_rounds;  /* … after how many more rounds, … */
    double more_seconds; /* … and how long they take; 0 when unknown */
    bool too_noisy;      /* it cannot tell, and more of the same would hardly help */
    char text[VERDICT_TEXT_MAX];
};

void verdict_judge(const struct comparison *comparison, const struct verdict_options *options,
                   struct verdict *ret_verdict);

/* Decimals of a ratio of more than 1 that tell the ends of its interval apart, and the nearer one
 * from 1.  Ends that differ by rounding alone (exact counts that repeat) are not told apart. */
int verdict_ratio_decimals(double low, double high);
/* "better", "worse", "different", "same", "cannot tell": for programs. */
const char *verdict_name(enum verdict_kind kind);
/* It says that there is a difference. */
bool verdict_is_difference(const struct verdict *verdict);
/* "regression", "improvement" or "change", by the metric's better way; "no change" where the
 * interval leaves room for none. */
const char *verdict_change_name(const struct comparison *c, enum metric_better better);

enum gate_result { GATE_PASS, GATE_REGRESSION, GATE_INCONCLUSIVE };

/* Whether the metric got worse by more than max_regression (0.02 = 2 %): a regression when the
 * whole interval says so, passed when the whole interval says not, else inconclusive.  A metric of
 * which neither way is better counts any change. */
enum gate_result verdict_gate(const struct comparison *comparison, enum metric_better better,
                              double max_regression);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Answers from a matrix: which variant is best where, at what size one overtakes the other, where
 * more threads stop helping, which cells surprise, and what a unit of work costs.  Each is a
 * sentence with its numbers and how sure it is; what cannot be told says so.
 */
#ifndef ASSAY_ANALYSIS_ANSWERS_H
#define ASSAY_ANALYSIS_ANSWERS_H

#include "analysis/dataset.h"
#include "base/arena.h"
#include "spec/spec.h"

enum { ANSWER_NUMBERS_MAX = 16 };

struct answer_number {
    const char *name;
    double value;
};

struct answer {
    const char *kind;   /* "best", "crossover", "saturation", "surprise", "constant",
                           "efficiency", "note" */
    const char *metric; /* what was looked at */
    const char *where;  /* the common factors: "threads=2"; "" for everywhere */
    const char *text;   /* the sentence */
    bool certain;       /* it stands on intervals of 95 % */
    struct answer_number numbers[ANSWER_NUMBERS_MAX];
    size_t number_count;
};

struct answers {
    const struct dataset *d;
    struct answer *items;
    size_t count, capacity;
    struct arena arena;
};

/* `variant` is the factor whose values are rivals; NULL: the baseline's, or the first whose values
 * are no numbers.  `work` is the metric that counts the work done; NULL: the spec's.  `spec` may be
 * NULL; it need not outlive the call. */
int answers_find(struct answers *a, const struct dataset *d, const struct spec *spec,
                 const char *variant, const char *work, struct error *err);
void answers_done(struct answers *a);

#endif

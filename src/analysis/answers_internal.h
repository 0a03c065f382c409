/* SPDX-License-Identifier: MIT */
/* What the kinds of answers share. */
#ifndef ASSAY_ANALYSIS_ANSWERS_INTERNAL_H
#define ASSAY_ANALYSIS_ANSWERS_INTERNAL_H

#include "analysis/answers.h"
#include "analysis/judge.h"
#include "stats/comparison.h"

/* A matrix seen along one factor. */
struct axis {
    size_t factor;
    const char **levels; /* in the order of the cells, or ascending when they are numbers */
    double *numbers;     /* of the levels; NULL when they are none */
    size_t count;
};

/* The best and the second best of the variants in one context, by one headline. */
struct lead {
    size_t metric, cell; /* `cell` stands for the context */
    size_t best, second, best_level;
    double best_median, second_median;
    struct judge_row row; /* of the second to the best */
};

struct question {
    struct answers *a;
    const struct dataset *d;
    size_t metric;
    enum metric_better better;
    struct axis *axes;  /* one per factor */
    size_t variant;     /* the factor of rivals, DATASET_NONE for none */
    struct lead *leads; /* of all headlines: they are shown together and judged as one family */
    size_t lead_count, lead_capacity;
};

struct answer *answer_add(struct question *q, const char *kind, const char *where, bool certain,
                          const char *format, ...) __attribute__((format(printf, 5, 6)));
void answer_number(struct answer *answer, const char *name, double value);

/* "size=64 threads=2": the cell's values without one or two factors. */
char *where_without(struct question *q, size_t cell, size_t factor, size_t other);
/* Calls for one cell of each combination of the factors but these two. */
void each_context(struct question *q, size_t factor, size_t other,
                  void (*fn)(struct question *q, size_t cell, void *context), void *context);
/* The value in its unit. */
const char *value_text(struct question *q, double value);
/* Why a comparison shows nothing: too few rounds, or how many would do if the difference is as
 * large as it seems. */
const char *why_undecided(struct question *q, const struct comparison *c);
/* A place between the levels of a numeric factor: "4,710", "2.5". */
const char *level_text(struct question *q, double level);

/* Adds the leads of q->metric; judge_leads judges all that there are. */
void find_leads(struct question *q);
void judge_leads(struct question *q);
void answer_best(struct question *q);
void answer_crossovers(struct question *q);
void answer_saturation(struct question *q);
void answer_surprises(struct question *q);
void answer_constants(struct question *q);
void answer_efficiency(struct question *q, const char *work);
void answer_notes(struct question *q, const struct spec *spec);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Two experiments, or two values of a factor within one: what differs, by how much, how surely.
 *
 * Cells that differ in nothing else are compared metric by metric.  Within one experiment both ran
 * in the same rounds, so differences are taken within rounds; two experiments are compared as two
 * samples, or run by run of the same node where both ran on a cluster (nodes.h).  Of hundreds of
 * metrics some always look different: but for the headlines, a change counts only after Benjamini &
 * Hochberg's correction at 5 %.
 */
#ifndef ASSAY_ANALYSIS_COMPARE_H
#define ASSAY_ANALYSIS_COMPARE_H

#include "analysis/dataset.h"
#include "stats/comparison.h"
#include "stats/summary.h"
#include "stats/verdict.h"

#define COMPARE_RATE 0.05 /* of false discoveries */
#define COMPARE_NONE ((size_t)-1)

/* Two cells that are compared. */
struct compare_pair {
    size_t base_cell, new_cell;
    char *label; /* what both have in common: "size=64 threads=2"; "" for everything */
};

struct compare_row {
    size_t pair;
    size_t base_metric, new_metric;
    const char *name, *unit, *kind;
    enum metric_better better;
    struct summary base, new;
    struct comparison comparison;
    struct verdict verdict;
    double p_adjusted; /* NAN when it was not tested: nothing varies */
    bool tested;
    bool headline;
    bool changed;
    bool is_detail;     /* of one CPU or the like: only with everything */
    bool is_negligible; /* hardly seen on either side: not worth a test */
    size_t folded_into; /* the row that says the same, COMPARE_NONE for none */
    size_t folded_count;
};

struct compare {
    const struct dataset *base, *new; /* the same one for two values of a factor */
    bool within;                      /* one experiment: paired by rounds */
    char *base_name, *new_name;       /* "variant=send8", "3 (sort, 1a2b3c4)" */
    struct compare_pair *pairs;
    size_t pair_count, pair_capacity;
    struct compare_row *rows; /* headlines first, then by pair and metric */
    size_t row_count, row_capacity;
    size_t test_count, changed_count;
    size_t unmatched_base, unmatched_new; /* cells without a partner */
};

/* Two experiments, cell by cell of the same label. */
int compare_experiments(struct compare *c, const struct dataset *base, const struct dataset *new,
                        struct error *err);
/* Two values of factors within one: "variant=send" and "variant=sendmsg"; several with commas. */
int compare_levels(struct compare *c, const struct dataset *d, const char *base_levels,
                   const char *new_levels, struct error *err);
void compare_done(struct compare *c);

/* The row's change as a share of the base (0.1 = 10 % more); NAN where there is none to be told,
 * because the base is about zero. */
double compare_change(const struct compare_row *row);

#endif

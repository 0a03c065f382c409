/* SPDX-License-Identifier: MIT */
/*
 * What is compared with what: two experiments cell by cell, two values of a factor within one, or
 * every cell of one with its baseline.  Metric by metric each pair of cells is a row, and the judge
 * (judge.h) says what the rows show.
 */
#ifndef ASSAY_ANALYSIS_COMPARE_H
#define ASSAY_ANALYSIS_COMPARE_H

#include "analysis/judge.h"
#include "base/strings.h"

#define COMPARE_NONE ((size_t)-1)

/* Two cells that are compared. */
struct compare_pair {
    size_t base_cell, new_cell;
    char *label; /* what both have in common: "size=64 threads=2"; "" for everything */
};

struct compare_row {
    size_t pair;
    const struct store_metric *metric; /* of the base */
    struct judge_row judged;
    bool is_detail;     /* of one CPU or the like: only with everything */
    bool is_negligible; /* hardly seen on either side: not worth a test */
    size_t folded_into; /* the row that says the same, COMPARE_NONE for none */
    size_t folded_count;
};

struct compare {
    const struct dataset *base, *new; /* the same one for two values of a factor */
    bool within;                      /* one experiment */
    char *base_name, *new_name;       /* "variant=send8", "3 (sort, 1a2b3c4)" */
    struct compare_pair *pairs;
    size_t pair_count, pair_capacity;
    struct compare_row *rows; /* headlines first, then by pair and metric */
    size_t row_count, row_capacity;
    size_t *order; /* of the rows, by metric and cell of `new` */
    size_t test_count, changed_count;
    size_t unmatched_base, unmatched_new; /* cells without a partner */
};

/* Two experiments, cell by cell of the same label; one cell each is a pair under any labels. */
int compare_experiments(struct compare *c, const struct dataset *base, const struct dataset *new,
                        struct error *err);
/* Two values of factors within one: "variant=send" and "variant=sendmsg"; several with commas. */
int compare_levels(struct compare *c, const struct dataset *d, const char *base_levels,
                   const char *new_levels, struct error *err);
/* Every cell of one experiment with its baseline; no row where nothing has one. */
void compare_baselines(struct compare *c, const struct dataset *d);
void compare_done(struct compare *c);
/* The row of the metric and the cell (of `new`), NULL when they were not compared. */
const struct compare_row *compare_find(const struct compare *c, size_t metric, size_t cell);

/* Where this metric cannot tell cells from what they are compared with, but what they cost can (CPU
 * time, instructions): a line for each, "wall cannot tell new from old, but cpu can: …".  things:
 * as compare_put_suites has it. */
void compare_put_instead(struct strbuf *out, const struct compare *c, size_t metric,
                         const char *things);

/* Pairs of cells that differ in the same values, by one headline: "variant=new" at every size. */
struct compare_suite {
    char *key; /* the values by which they differ; "" for two experiments */
    const struct store_metric *metric;
    const struct compare_row **rows;
    size_t row_count, row_capacity;
    struct comparison comparison; /* of the only row, or the geometric mean */
    struct verdict verdict;
    bool is_mean;
    size_t mean_count; /* rows that entered the mean */
    bool is_told;      /* there is a comparison: not where no row has a ratio with an interval */
};

struct compare_suites {
    struct compare_suite *items; /* in the order of the rows: by metric first */
    size_t count, capacity;
};

void compare_suites_find(struct compare_suites *s, const struct compare *c);
void compare_suites_done(struct compare_suites *s);

/* Where several pairs of cells differ in the same values, a line for each headline: the geometric
 * mean of their ratios, and which of them moved.  things: what the values of the first of two
 * factors are ("benchmarks"), which are then named without their factor; NULL for any factors. */
void compare_put_suites(struct strbuf *out, const struct compare *c, const char *things);

/* Where each round has a memory layout of its own, a line for each headline: in how many of them
 * there is less, and in how many more. */
void compare_put_layouts(struct strbuf *out, const struct compare *c);

/* The row's change as a share of the base (0.1 = 10 % more); NAN where there is none to be told,
 * because the base is about zero. */
double compare_change(const struct compare_row *row);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The judge.  Values of two sides come in, with their rounds, nodes and what is known of the
 * metric; the comparison, the verdict and the words for it come out.  Every verb asks here: this
 * is the only place that pairs values, compares them, adjusts for many comparisons and words the
 * result, so that two reports of one pair cannot disagree.
 *
 * Values of one experiment are compared within rounds.  Two experiments are compared as two
 * samples, or run by run of the same node where both ran on a cluster (nodes.h).
 *
 * Rows that are shown together are a family.  Some of many always look different by chance, so
 * p-values are adjusted within the family, and intervals are made at the level that goes with the
 * call: a row that is called different has an interval without "no difference" in it, and the
 * reverse.  docs/METHOD.md has the methods and how often they hold.
 */
#ifndef ASSAY_ANALYSIS_JUDGE_H
#define ASSAY_ANALYSIS_JUDGE_H

#include "analysis/dataset.h"
#include "analysis/verdict.h"
#include "base/error.h"
#include "stats/comparison.h"
#include "stats/summary.h"
#include "stats/tails.h"

#define JUDGE_LEVEL 0.95
#define JUDGE_RATE 0.05 /* of families with a false alarm, and of false discoveries */

/* Two cells by one metric; both of one table, or each of its own. */
struct judge_sides {
    const struct dataset *base, *new;
    size_t base_metric, new_metric, base_cell, new_cell;
};

/* Where a value is itself a median of many samples, their mean may be a metric beside it:
 * "mean-time" of "time".  It has what those medians leave out, and so the tails of a headline are
 * looked for in it. */
#define JUDGE_MEAN_PREFIX "mean-"

/* What a headline shows besides its centre (stats/tails.h). */
struct judge_tails {
    bool looked;  /* there were enough values to look */
    bool beyond;  /* they differ by more than the centre does, also after the adjustment */
    bool differs; /* the same where the centre does not differ: all that there is to say */
    double p;
    enum tails_look strongest;
    struct comparison mean;
    struct comparison p95; /* too_few where the runs do not allow it */
    struct slow_runs slow;
};

/* What of two samples is compared: their centres, unless somebody asks for another. */
enum judge_by { JUDGE_MEDIAN, JUDGE_MEAN, JUDGE_P95 };

/* One row of a family. */
struct judge_row {
    /* Asked: */
    struct judge_sides sides;
    enum judge_by by;
    bool headline; /* what the experiment is about; the others are beside it */
    bool skip;     /* shown, but not worth a test */
    /* Says, when all but the verdict is there, that the row is to be skipped; or NULL. */
    bool (*is_negligible)(const struct judge_row *row);
    /* Found: */
    bool is_there; /* there was something to compare; else nothing of what follows holds */
    struct summary base, new;
    struct comparison comparison;
    struct verdict verdict;
    double p_adjusted; /* NAN when it was not tested */
    bool tested;
    bool changed; /* different, also after the adjustment: in the centre or in the tails */
    struct judge_tails tails;
};

/* Fills a row with what its own values say, as a family of one.  False when there is nothing to
 * compare: no values in common, or only bounds. */
bool judge_row(struct judge_row *row);
/* Adjusts rows that judge_row has filled and that are shown together. */
void judge_family(struct judge_row *const *rows, size_t count);
/* Both for rows that are shown together, with all processors where there are many values. */
void judge_rows(struct judge_row *const *rows, size_t count);

/* Two cells of one table alone; false as judge_row, and when a cell is DATASET_NONE. */
bool judge_cells(const struct dataset *d, size_t metric, size_t base, size_t new,
                 struct comparison *ret_comparison);

/* The centre of one cell alone, as the ratio to 1: for how well it is known. */
bool judge_centre(const struct dataset *d, size_t metric, size_t cell,
                  struct comparison *ret_comparison);

/* The same by another figure than the centre. */
bool judge_cells_by(const struct dataset *d, size_t metric, size_t base, size_t new,
                    enum judge_by by, struct comparison *ret_comparison);

/* Values that stand in no table. */
struct judge_values {
    const double *base, *new;
    size_t base_count, new_count; /* equal when paired */
    bool paired;                  /* value i of both is of the same round */
    bool adaptive;                /* how many rounds there are depended on the values */
    bool is_exact;                /* counts and sizes: values that no clock rounds */
    bool by_chance;               /* of these: what the machine does, too, so that few equal values
                                     may be luck */
    bool is_emulated;             /* counts of an emulator, which nearly repeat */
    bool wary; /* few rounds, and others used the machine: nothing vouches for the rounds' being
                  independent, so that the widest interval is made that they allow */
    /* What all rows of the same rounds show: how much a round resembles the one before it, as the
     * mean of so many series; fewer than 2 for none. */
    double family_lag1;
    size_t family_series;
};

int judge_values(const struct judge_values *values, double level, struct comparison *ret_comparison,
                 struct error *err);
void judge_words(const struct comparison *comparison, struct metric_facts facts, const char *unit,
                 struct verdict *ret_verdict);

/* The values of the rounds that both columns have, where both were measured on the same node; room
 * for as many as the shorter holds.  Returns how many. */
size_t judge_pair_rounds(const struct dataset_column *a, const struct dataset_column *b,
                         double *first, double *second);

#endif

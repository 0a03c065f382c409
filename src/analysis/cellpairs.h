/* SPDX-License-Identifier: MIT */
/*
 * What a person means by two words about the store: two experiments ("12", "15", a commit), two
 * values of a factor ("variant=send", "variant=sendmsg"; several with commas), or both
 * ("12 size=64", "15 size=64").  They stand for pairs of cells that differ in nothing else.
 */
#ifndef ASSAY_ANALYSIS_CELLPAIRS_H
#define ASSAY_ANALYSIS_CELLPAIRS_H

#include "analysis/dataset.h"

struct cell_pair {
    size_t cells[2]; /* in d[0] and d[1] */
    char *label;     /* what both have in common: "size=64"; "" for everything */
};

struct cell_pairs {
    struct dataset own[2];
    const struct dataset *d[2]; /* the same one twice for two values of a factor */
    struct cell_pair *items;
    size_t count, capacity;
    char *names[2];
    char *work; /* the metric that counts the work done; NULL for none */
    char *unit; /* what one of it is called; NULL for a run */
};

/* `in` names the experiment of values without one; NULL: the newest that has the factor. */
int cell_pairs_find(struct cell_pairs *p, struct store *store, const char *a, const char *b,
                    const char *in, struct error *err);
void cell_pairs_done(struct cell_pairs *p);

/* Whether the word has the form and the names of something in the store. */
bool cell_word_is_known(struct store *store, const char *word);

/* What one of a metric is called: its unit, or its name without the plural; the caller frees it. */
char *work_unit(const char *metric, const char *unit);

/* What a unit of work cost a cell in CPU time (nanoseconds), run by run; a run where no metric
 * counts the work.  When both are cells of one experiment the values are those of common rounds. */
struct cell_costs {
    double *values[2]; /* CPU time */
    double *wall[2];   /* elapsed */
    size_t counts[2];
    bool paired;
};
void cell_costs_find(struct cell_costs *c, const struct cell_pairs *p, size_t pair);
void cell_costs_done(struct cell_costs *c);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Sets of recordings to be compared: files, or what the store knows of profiled cells.
 *
 *   struct profile_pairs pairs;
 *   profile_pairs_find(&pairs, "old-*.data", "new-*.data", NULL, NULL, &err);
 *   for each pair:
 *       struct profile_loads loads = {0};
 *       profile_loads_read(&loads, &pairs.items[i], &err);
 *       diff_build(&diff, &loads.options, &err);
 */
#ifndef ASSAY_ANALYSIS_PROFILES_H
#define ASSAY_ANALYSIS_PROFILES_H

#include "profile/diff.h"
#include "store/store.h"

/* The recordings of one side, one per run. */
struct profile_set {
    char *name;
    char **paths;
    double *work; /* units of work that each run did */
    size_t count, capacity, work_capacity;
    double *measured; /* CPU time of a unit of work in runs without sampling; may be NULL */
    size_t measured_count;
};

struct profile_pair {
    struct profile_set sides[SIDE_COUNT];
    char *label;    /* of the cells, "" for files */
    bool paired;    /* measured values are of common rounds */
    char *work;     /* what a unit of work is called, NULL when it is a run */
    char *emulated; /* what results from emulated machines are to be called; NULL for others */
};

struct profile_pairs {
    struct profile_pair *items;
    size_t count, capacity;
};

/*
 * A word is a recording, several with commas, a pattern of names, a folder with *.data in it, or
 * what cellpairs.h describes.  db as store_place takes it; `in` as cell_pairs_find.
 */
int profile_pairs_find(struct profile_pairs *pairs, const char *a, const char *b, const char *in,
                       const char *db, struct error *err);
void profile_pairs_done(struct profile_pairs *pairs);

void profile_set_add(struct profile_set *set, const char *path, double work);
void profile_pair_done(struct profile_pair *pair);

/* Loaded recordings of a pair, ready for diff_build. */
struct profile_loads {
    const char *event;              /* in: which one, NULL for time on the CPU */
    struct symbols_options symbols; /* in */
    bool no_inlines;                /* in: code counts for the function it was inlined into */
    bool with_lines;                /* in: frames know their source lines */
    bool with_samples;              /* in: of each side's first, every sample by time as well */
    struct profile **profiles[SIDE_COUNT];
    struct diff_run *runs[SIDE_COUNT];
    size_t counts[SIDE_COUNT];
    struct diff_options options;
};

int profile_loads_read(struct profile_loads *l, const struct profile_pair *pair, struct error *err);
void profile_loads_done(struct profile_loads *l);

/* The documents in which the store keeps a cell's recordings: a line "WORK PATH" for each run. */
char *profile_document_kind(const char *cell_label);
int profile_document_read(struct store *store, int64_t experiment, const char *cell_label,
                          struct profile_set *set, struct error *err);

#endif

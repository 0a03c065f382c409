/* SPDX-License-Identifier: MIT */
/*
 * How a metric went from experiment to experiment: for each cell one history, whose points are the
 * medians of the cell's runs in each experiment.  Runs of one experiment resemble each other more
 * than runs of different days, so only their median counts as one value when change points are
 * looked for.
 */
#ifndef ASSAY_ANALYSIS_HISTORY_H
#define ASSAY_ANALYSIS_HISTORY_H

#include "fits/changepoint.h"
#include "store/store.h"

/* What is known of a change, beside where it is and how large. */
struct history_remark {
    char *note;    /* NULL: nobody accepted it */
    char *search;  /* what a search for the commit found, see history_search; NULL: none was made */
    bool is_told;  /* an alarm was given */
    int direction; /* 1: the new level is higher; -1: lower */
};

struct history_point {
    int64_t experiment;
    char *commit; /* "" when not known; may end in "-dirty" */
    char *subject;
    uint64_t started_at_ns;
    double median, q1, q3;
    size_t run_count;
};

struct history {
    char *name, *cell, *metric, *unit; /* name: of the experiments */
    char *branch, *machine;            /* "" when not known */
    bool quick;                        /* of the specs' quick sections */
    enum metric_better better;
    struct history_point *points; /* in order */
    size_t count, capacity;
    struct change_points changes;   /* index: of the first point of the new level */
    struct history_remark *remarks; /* of each change */
    size_t dropped;                 /* oldest points that are too many to be looked at */
};

/* What a search for the commit of a change found (`assay history --backfill`). */
struct history_search {
    char *verdict; /* "found", "no-change", "cannot-tell", "bad-end" */
    char *commit;  /* the one found, "OLDER..NEWER" where those between do not build; "" for none */
    char *subject; /* of the commit */
    char *reasons; /* in lines */
};

struct histories {
    struct history *items;
    size_t count, capacity;
};

struct history_options {
    const char *metric;
    const char *name;   /* of the experiments; NULL for all */
    const char *cell;   /* a part of the cell's label; NULL for all */
    const char *branch; /* NULL for all */
    double chance;      /* of a change in a history that has none: 0.05 */
    uint64_t seed;
    /* The order of the points: commits from the oldest on; without, by time.  Points of commits
     * that are not among them come by time, after the point that ran before them. */
    char *const *commits;
    size_t commit_count;
};

/* -ENOENT with the nearest names when there is no such metric. */
int histories_load(struct histories *h, struct store *store, const struct history_options *o,
                   struct error *err);
void histories_done(struct histories *h);

/* Accepts a change with a note, or notes that an alarm was given; false in *ret_added when that was
 * done before.  history_untell takes the second back. */
int history_accept(struct store *store, const struct history *one, size_t change, const char *note,
                   bool *ret_added, struct error *err);
int history_tell(struct store *store, const struct history *one, size_t change, bool *ret_added,
                 struct error *err);
int history_untell(struct store *store, const struct history *one, size_t change,
                   struct error *err);

/* Keeps what a search found, in the store and in the history. */
int history_search_keep(struct store *store, struct history *one, size_t change,
                        const struct history_search *search, struct error *err);
/* Reads a remark's text; false, with empty texts, where there is none. */
bool history_search_read(struct history_search *ret_search, const char *text);
void history_search_done(struct history_search *search);

#endif

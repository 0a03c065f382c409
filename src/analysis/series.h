/* SPDX-License-Identifier: MIT */
/*
 * Measured values by metric: for each metric, a row of values per contestant.  Made from rounds
 * (then value i of each contestant is of the same round) or read from files of other tools (then
 * the rows stand apart and may differ in length).
 */
#ifndef ASSAY_ANALYSIS_SERIES_H
#define ASSAY_ANALYSIS_SERIES_H

#include "run/rounds.h"
#include "stats/verdict.h"

enum series_kind {
    SERIES_TIME, /* nanoseconds */
    SERIES_BYTES,
    SERIES_COUNT, /* whole numbers */
    SERIES_VALUE, /* in a unit of its own */
};

enum series_source { SERIES_CLOCK, SERIES_USAGE, SERIES_EVENT, SERIES_PROGRAM };

struct series {
    char *name;
    char *unit; /* "ns", "bytes", "", or what the event or the program says */
    enum series_kind kind;
    enum metric_better better;
    enum series_source source;
    double **values; /* [contestant][index], NAN where a run has none */
    size_t *counts;  /* [contestant] */
    bool *is_bound;  /* [contestant]: the true values may be lower */
};

struct series_set {
    struct series *items;
    size_t count, capacity;
    size_t contestant_count;
    bool paired;      /* index i is the same round for all contestants */
    const char *only; /* the one metric that is wanted, NULL for all */
};

/* wall, user, sys and peak RSS, then the supported events (or what stands in for them where the
 * kernel refuses all), then what the programs printed.  With `only`, that metric alone. */
void series_from_rounds(struct series_set *set, const struct rounds *r,
                        const struct event_list *events, const char *only);
/* An empty series with room for `capacity` values of each contestant, all NAN. */
struct series *series_add(struct series_set *set, const char *name, const char *unit,
                          enum series_kind kind, size_t capacity);
const struct series *series_find(const struct series_set *set, const char *name);
void series_set_done(struct series_set *set);

/* Copies what both contestants have (paired) into base and other; the number of pairs. */
size_t series_pairs(const struct series *s, size_t base, size_t other, double *base_values,
                    double *other_values);
/* Copies what one contestant has; the number of values. */
size_t series_values(const struct series *s, size_t contestant, double *values);

#endif

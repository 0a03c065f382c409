/* SPDX-License-Identifier: MIT */
/*
 * What other benchmark printed_harnesses print, read into one form: names and times of one
 * iteration.  One small file for each format; none of them runs anything.  A text from outside may
 * hold anything: it is read or refused with words, and never trusted.
 */
#ifndef ASSAY_BENCH_PRINTED_PRINTED_H
#define ASSAY_BENCH_PRINTED_PRINTED_H

#include "base/error.h"
#include "base/strings.h"

/* One benchmark of a text.  Harnesses that print several measurements of one give all of them. */
struct printed_result {
    char *name;
    double *ns; /* of one iteration */
    size_t count, capacity;
    char *failed; /* why it has none; NULL for most */
};

struct printed_results {
    struct printed_result *items;
    size_t count, capacity;
};

struct printed_harness {
    const char *name;     /* "google-benchmark" */
    const char *title;    /* "Google Benchmark" */
    const char *marks[2]; /* bytes that a program built with it holds; NULL for none */
    /* The words that make it measure everything, and those for one benchmark, in which %s is its
     * name; both end with NULL.  `one` is NULL where it cannot choose. */
    const char *const *all, *const *one;
    const char *special; /* characters of a name that `one` needs a backslash before */
    /* Adds what the text has.  -ENODATA when it has no benchmark at all. */
    int (*parse)(struct printed_results *results, const char *text, size_t length,
                 struct error *err);
    bool is_python; /* a file that pytest runs; it writes JSON to a file */
};

/* All of them; ends with a name of NULL. */
extern const struct printed_harness printed_harnesses[];
/* NULL when there is none of that name. */
const struct printed_harness *printed_find(const char *name);
/* The one a mark of which is in the bytes; NULL for none. */
const struct printed_harness *printed_of_program(const void *bytes, size_t size);

void printed_results_done(struct printed_results *r);
/* The result of that name, new where there is none yet. */
struct printed_result *printed_results_get(struct printed_results *r, const char *name,
                                           size_t length);
/* A time in ns: finite and not negative, else it is refused. */
int printed_add(struct printed_result *result, double ns, struct error *err);
/* How many ns the unit has ("ns", "us", "µs", "ms", "s", "ps"); 0 when it is none. */
double printed_unit_ns(const char *unit, size_t length);

int printed_google_parse(struct printed_results *results, const char *text, size_t length,
                         struct error *err);
int printed_catch2_parse(struct printed_results *results, const char *text, size_t length,
                         struct error *err);
int printed_nanobench_parse(struct printed_results *results, const char *text, size_t length,
                            struct error *err);
int printed_go_parse(struct printed_results *results, const char *text, size_t length,
                     struct error *err);
int printed_pytest_parse(struct printed_results *results, const char *text, size_t length,
                         struct error *err);
int printed_criterion_parse(struct printed_results *results, const char *text, size_t length,
                            struct error *err);
int printed_divan_parse(struct printed_results *results, const char *text, size_t length,
                        struct error *err);

#endif

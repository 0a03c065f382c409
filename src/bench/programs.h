/* SPDX-License-Identifier: MIT */
/*
 * Programs with benchmarks of other harnesses: how each is recognised, which words make it measure
 * all or one of its benchmarks, and what of its output is the time of one iteration.  The output
 * itself is read by harness/, as `assay import` reads it.
 */
#ifndef ASSAY_BENCH_PROGRAMS_H
#define ASSAY_BENCH_PROGRAMS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* One benchmark of a program.  Harnesses that print several measurements of one give all of them.
 */
struct program_result {
    char *name;
    double *ns, *cpu_ns; /* of one iteration; NaN where the harness does not tell CPU time */
    size_t count;
    char *failed; /* why it has none; NULL for most */
};

struct program_results {
    struct program_result *items;
    size_t count, capacity;
};

struct program_harness {
    const char *name;     /* "google-benchmark" */
    const char *title;    /* "Google Benchmark" */
    const char *format;   /* of harness/, in which it prints */
    const char *marks[2]; /* bytes that a program built with it holds; NULL for none */
    /* The words that make it measure everything, and those for one benchmark, in which %s is its
     * name; both end with NULL.  `one` is NULL where it cannot choose. */
    const char *const *all, *const *one;
    const char *special; /* characters of a name that `one` needs a backslash before */
    bool is_json;        /* it may print other things around its JSON */
    bool is_python;      /* a file that pytest runs; it writes JSON to a file */
    const char *home;    /* the variable that names the directory for its files; NULL for none */
    const char *runner;  /* the program that runs the file, where it is not python3's module */
    /* How to call it where these words yield nothing: old versions refuse them.  NULL for none. */
    const struct program_harness *instead;
};

/* All of them; ends with a name of NULL. */
extern const struct program_harness program_harnesses[];
/* NULL when there is none of that name. */
const struct program_harness *program_harness_find(const char *name);
/* The one a mark of which is in the bytes; NULL for none. */
const struct program_harness *program_harness_of(const void *bytes, size_t size);

/* Reads what a program of the harness printed; `path` is the program, for messages. */
int program_results_read(struct program_results *results, const struct program_harness *h,
                         const char *text, size_t length, const char *path, struct error *err);
void program_results_done(struct program_results *r);

#endif

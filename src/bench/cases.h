/* SPDX-License-Identifier: MIT */
/* What is measured: each benchmark with each combination of its parameters, of one version or of
 * two that are matched by name. */
#ifndef ASSAY_BENCH_CASES_H
#define ASSAY_BENCH_CASES_H

#include "bench/worker.h"

struct bench_case {
    char *name;       /* "sort_ints" */
    char *parameters; /* "n=64, threads=2", or "" */
    char *label;      /* "sort_ints n=64 threads=2" */
    struct bench_call calls[2];
};

struct bench_cases {
    struct bench_case *items;
    size_t count, capacity;
    /* Of the benchmarks that were asked for, what only one version has; to be told. */
    char **only[2];
    size_t only_count[2], only_capacity[2];
    size_t all_count; /* before the filters */
};

/* Cases of one version or, with `new`, of both.  Filters are patterns as a shell has them, of a
 * benchmark's name or label or of "parameter=value"; with none, all are taken.  A case is taken
 * when some pattern of names fits, where there are any, and some pattern of each parameter named.
 */
int bench_cases_make(struct bench_cases *c, const struct bench_entries *base,
                     const struct bench_entries *new, const char *const *filters,
                     size_t filter_count, struct error *err);
void bench_cases_done(struct bench_cases *c);

#endif

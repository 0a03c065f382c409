/* SPDX-License-Identifier: MIT */
/*
 * What a program with assay.h says, line by line: its benchmarks, and the samples of a run.  The
 * other half is in include/assay.h.  A program may say anything: what is not understood is an error
 * of that program, never trouble here.
 */
#ifndef ASSAY_BENCH_PROTOCOL_H
#define ASSAY_BENCH_PROTOCOL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BENCH_PARAMETERS_MAX = 4,
    BENCH_VALUES_MAX = 32,
    BENCH_COUNTERS_MAX = 4,
    BENCH_ENTRIES_MAX = 10000,
};

struct bench_parameter {
    char *name;
    bool is_threads;
    int64_t values[64]; /* ranges are laid out */
    size_t count;
};

/* A benchmark as it is declared. */
struct bench_entry {
    char *name, *file;
    size_t index; /* under which the program knows it */
    uint64_t line;
    struct bench_parameter parameters[BENCH_PARAMETERS_MAX];
    size_t parameter_count;
};

struct bench_entries {
    struct bench_entry *items;
    size_t count, capacity;
};

/* Takes a line of the list ("b …", "p …"). */
int bench_entries_take(struct bench_entries *e, const char *line, struct error *err);
/* Puts them into the order of the source. */
void bench_entries_sort(struct bench_entries *e);
void bench_entries_done(struct bench_entries *e);

/* One timed batch. */
struct bench_sample {
    double wall_ns, cpu_ns; /* of the whole batch */
    uint64_t iterations;
    uint64_t minor_faults, major_faults, voluntary, involuntary;
    uint64_t pauses; /* the clock was read twice for each: ASSAY_LOOP_WITH */
    bool migrated;
    double counters[BENCH_COUNTERS_MAX];
    size_t counter_count;
};

/* "s …" */
int bench_sample_parse(const char *line, struct bench_sample *ret_sample, struct error *err);

/* "v VALUE NAME<tab>UNIT"; the caller frees both texts. */
int bench_figure_parse(const char *line, double *ret_value, char **ret_name, char **ret_unit,
                       struct error *err);
/* "c N LAW"; the caller frees the law. */
int bench_law_parse(const char *line, double *ret_n, char **ret_law, struct error *err);

#endif

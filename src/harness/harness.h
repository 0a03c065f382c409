/* SPDX-License-Identifier: MIT */
/*
 * What other benchmark tools wrote, as one model: benchmarks with parameters, each with metrics,
 * each with the values of its repetitions in their order.  A format is one file here and one line
 * in the table of harness.c; it adds benchmarks and values through the functions below and knows
 * nothing of stores or reports.
 *
 * Values stay as they were written, in the tool's own unit, so that what is kept is equal to the
 * bit. A figure that the tool computed from values that it did not write (a mean) is marked as a
 * summary.
 */
#ifndef ASSAY_HARNESS_HARNESS_H
#define ASSAY_HARNESS_HARNESS_H

#include "base/error.h"
#include "stats/metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct harness_metric {
    char *name, *unit;
    struct metric_facts facts;
    bool is_summary; /* the tool's own figure of many values that are not here */
    double *values;  /* by repetition; NAN where one has none */
    size_t count, capacity;
};

struct harness_param {
    char *name, *value;
};

struct harness_benchmark {
    char *name;
    char *command;      /* what was run, "" when not known */
    char *failure;      /* why it has no values, NULL for none */
    size_t failed_runs; /* have values, but ended with an error */
    struct harness_param *params;
    size_t param_count, param_capacity;
    struct harness_metric *metrics; /* the first is what the tool itself puts first */
    size_t metric_count, metric_capacity;
};

struct harness_results {
    const struct harness_format *format;
    char *version;           /* of the tool; "" when the file does not say */
    char *suite;             /* the program or package that was measured; "" when not known */
    char *machine;           /* host and processor, as far as the file says; "" else */
    char *commit;            /* "" when not known */
    char *branch;            /* the same */
    bool is_dirty;           /* there were changes that the commit does not have */
    bool is_paired;          /* repetition k of one benchmark and of another ran in one round */
    uint64_t measured_at_ns; /* since 1970; 0 when not known */
    struct harness_benchmark *benchmarks;
    size_t count, capacity;
    uint32_t *slots; /* the last benchmark of each name, by the name's hash */
    size_t slot_mask;
};

struct json_t;

struct harness_format {
    const char *name;  /* as --format takes it */
    const char *title; /* for people */
    /* One of these pairs; the first of a pair says whether it is this format at all. */
    bool (*is_json)(const struct json_t *document);
    int (*read_json)(struct harness_results *r, const struct json_t *document, struct error *err);
    bool (*is_text)(const char *text);
    int (*read_text)(struct harness_results *r, const char *text, struct error *err);
    bool (*is_directory)(const char *path);
    int (*read_directory)(struct harness_results *r, const char *path, struct error *err);
};

/* The table of formats; ends with a NULL name. */
extern const struct harness_format harness_formats[];

/* Reads a file, or the directory in which some tools keep results; "-" is standard input.  `format`
 * is a name of the table, or NULL to find out.  Errors name the file and the place. */
int harness_read(struct harness_results *ret_results, const char *path, const char *format,
                 struct error *err);
/* The same from memory; `path` is for messages. */
int harness_read_text(struct harness_results *ret_results, const char *text, size_t length,
                      const char *path, const char *format, struct error *err);
void harness_results_done(struct harness_results *r);

/* ---- for the formats ---- */

/* The benchmark of that name and no parameters yet, added when it is new. */
struct harness_benchmark *harness_benchmark(struct harness_results *r, const char *name);
/* Always a new one. */
struct harness_benchmark *harness_add(struct harness_results *r, const char *name);
void harness_param(struct harness_benchmark *b, const char *name, const char *value);
void harness_param_number(struct harness_benchmark *b, const char *name, double value);
/* Every member of a JSON object is a parameter. */
void harness_params(struct harness_benchmark *b, const struct json_t *object);
/* The metric of that name, added when it is new. */
struct harness_metric *harness_metric(struct harness_benchmark *b, const char *name,
                                      const char *unit, struct metric_facts facts);
void harness_put(struct harness_metric *m, double value);
/* How many repetitions it has so far. */
size_t harness_repetitions(const struct harness_benchmark *b);
/* The value of one repetition; those before it that are not known are NAN. */
void harness_put_at(struct harness_metric *m, size_t repetition, double value);
/* The metric of that name, if there is one, becomes the headline. */
void harness_headline(struct harness_benchmark *b, const char *name);
/* One figure that the tool computed. */
void harness_summary(struct harness_benchmark *b, const char *name, const char *unit,
                     struct metric_facts facts, double value);
void harness_set(char **text, const char *value); /* replaces a text; NULL is "" */

/* "2026-11-17T19:51:22+00:00", with or without fractions and zone, as time since 1970; 0 if it is
 * not one.  Without a zone it is taken as UTC. */
uint64_t harness_parse_time(const char *text);
/* Refuses a version whose first number is not among `majors`, which ends with -1. */
int harness_check_version(const char *tool, const char *version, const int *majors,
                          struct error *err);

/* A duration, and a rate of work: what one waits for. */
#define HARNESS_TIME ((struct metric_facts){.better = METRIC_LOWER, .is_speed = true})
#define HARNESS_RATE ((struct metric_facts){.better = METRIC_HIGHER, .is_speed = true})
/* A cost that is counted, one that is not, and a figure of unknown meaning. */
#define HARNESS_COUNT ((struct metric_facts){.better = METRIC_LOWER, .is_count = true})
#define HARNESS_COST ((struct metric_facts){.better = METRIC_LOWER})
#define HARNESS_PLAIN ((struct metric_facts){.better = METRIC_NEITHER})

#endif

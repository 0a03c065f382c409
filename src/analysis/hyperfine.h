/* SPDX-License-Identifier: MIT */
/* Reads the JSON that hyperfine --export-json (and assay ab --export-hyperfine) writes. */
#ifndef ASSAY_ANALYSIS_HYPERFINE_H
#define ASSAY_ANALYSIS_HYPERFINE_H

#include "analysis/dataset.h"

/* One result of a file, as a contestant without anything to execute, with its parameters. */
struct imported_result {
    char *name; /* the command, numbered where it comes more than once */
    char *command;
    char *parameters; /* "size=64, n=2", or "" */
    size_t failed_runs;
    double *wall_ns, *rss_bytes;
    size_t wall_count, rss_count; /* no memory where hyperfine did not measure it */
};

struct imported {
    struct imported_result *results;
    size_t count, capacity;
    bool paired; /* runs of the same number are of the same round */
};

/* The results of all files, in their order.  Values of different results are of the same rounds
 * only where one file says so itself; hyperfine runs one command after the other.  -EINVAL with the
 * file and the place when something is not as it should be; -ENOTSUP when assay was built without
 * jansson. */
int hyperfine_import(const char *const *paths, size_t path_count, struct imported *ret_imported,
                     struct error *err);
/* Puts the values into a table that has a cell for each result: wall, and peak-rss where every
 * result has it. */
void imported_fill(const struct imported *i, struct dataset *d);
void imported_done(struct imported *i);

#endif

/* SPDX-License-Identifier: MIT */
/* Reads the JSON that hyperfine --export-json (and assay ab --export-hyperfine) writes. */
#ifndef ASSAY_ANALYSIS_HYPERFINE_H
#define ASSAY_ANALYSIS_HYPERFINE_H

#include "analysis/series.h"

/* One result of a file, as a contestant without anything to execute, with its parameters. */
struct imported_result {
    char *name; /* the command, numbered where it comes more than once */
    char *command;
    char *parameters; /* "size=64, n=2", or "" */
    size_t failed_runs;
};

struct imported {
    struct imported_result *results;
    size_t count, capacity;
    struct series_set series; /* wall, and peak-rss where every result has it */
};

/* The results of all files, in their order.  Values of different results are of the same rounds
 * only where one file says so itself; hyperfine runs one command after the other.  -EINVAL with the
 * file and the place when something is not as it should be; -ENOTSUP when assay was built without
 * jansson. */
int hyperfine_import(const char *const *paths, size_t path_count, struct imported *ret_imported,
                     struct error *err);
void imported_done(struct imported *i);

#endif

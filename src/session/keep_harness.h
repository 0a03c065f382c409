/* SPDX-License-Identifier: MIT */
/* What another tool measured, put into the store as an experiment: `assay import`. */
#ifndef ASSAY_SESSION_KEEP_HARNESS_H
#define ASSAY_SESSION_KEEP_HARNESS_H

#include "harness/harness.h"
#include "store/store.h"

/* What the file does not say, or says otherwise; NULL (0) takes what it says. */
struct keep_harness_options {
    const char *name; /* of the experiment; else the file's suite, or the format's name */
    const char *commit, *branch, *machine;
    uint64_t measured_at_ns;
    const char *path; /* of the file, for the record */
};

struct keep_harness_tally {
    int64_t id;
    char name[256];
    size_t cells, runs, values;
    size_t failed;      /* benchmarks without values */
    size_t failed_runs; /* have values, but ended with an error */
};

/* All of it or nothing. */
int keep_harness(struct store *store, const struct harness_results *r,
                 const struct keep_harness_options *o, struct keep_harness_tally *ret_tally,
                 struct error *err);

#endif

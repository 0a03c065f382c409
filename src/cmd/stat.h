/* SPDX-License-Identifier: MIT */
/* What the files of `assay stat` share. */
#ifndef ASSAY_CMD_STAT_H
#define ASSAY_CMD_STAT_H

#include "base/fd.h"
#include "base/options.h"
#include "base/strings.h"

struct stat_options {
    struct option_list events, filters;
    struct option_list pids;
    unsigned detail;
    uint64_t repeat_count;
    bool all_cpus, per_thread, json, csv;
    const char *cpus, *cgroup, *output, *sim, *exact;
    uint64_t interval_ns, delay_ns, timeout_ns;
};

/* Writes the report where it was asked for. */
int stat_deliver(const struct strbuf *text, struct outfile *file, const char *path,
                 struct error *err);
/* Says that it failed; the exit code. */
int stat_fail(const struct error *err, int start_code);
/* --exact: the exit code. */
int stat_exact(const struct stat_options *o, char *const *argv, struct outfile *file,
               struct error *err);

#endif

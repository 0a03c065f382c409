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
    bool all_cpus, per_thread, per_cpu, per_core, topdown;
    const char *json, *csv; /* NULL: not given; "": where -o says, else standard output */
    const char *metrics, *separator;
    const char *cpus, *cgroup, *output, *sim, *exact;
    uint64_t interval_ns, delay_ns, timeout_ns;
};

/* The reports that were asked for, with the files they go to. */
struct stat_reports {
    struct strbuf text, data; /* for people; JSON or CSV */
    struct outfile file, data_file;
    const char *text_path; /* NULL: standard error */
    bool wants_text, wants_data;
};

/* Writes the reports where they were asked for. */
int stat_deliver(struct stat_reports *reports, struct error *err);
/* Says that it failed; the exit code. */
int stat_fail(const struct error *err, int start_code);
/* --exact: the exit code. */
int stat_exact(const struct stat_options *o, char *const *argv, struct stat_reports *reports,
               struct error *err);

#endif

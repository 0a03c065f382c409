/* SPDX-License-Identifier: MIT */
/* What the files of `assay bench` share. */
#ifndef ASSAY_CMD_BENCH_H
#define ASSAY_CMD_BENCH_H

#include "base/fd.h"
#include "base/options.h"
#include "bench/measure.h"
#include "report/bench/bench.h"

struct bench_options {
    struct option_list filters, names, links;
    const char *base, *build, *json, *html, *db, *save;
    bool list, show_output, all, quiet, sim, allocations, one_process;
    uint64_t time_ns, rounds, timeout_ns, seed, iterations, layouts;
    const char *cpu, *harness;
};

extern const struct option bench_option_table[];

/* The versions: one or two programs. */
struct bench_versions {
    struct bench_target targets[BENCH_SIDES_MAX];
    char *names[BENCH_SIDES_MAX];
    size_t count;
};

/* What is written besides the text; opened before anything is measured. */
struct bench_files {
    struct outfile json, html;
};
int bench_files_open(struct bench_files *f, const struct bench_options *o, struct error *err);
void bench_files_done(struct bench_files *f);

/* Tells the error, or that a signal ended it before anything was measured; returns the exit code.
 */
int bench_fail(struct error *err, int code);
/* --list */
int bench_print_list(const struct bench_options *o, const struct bench_cases *cases);
/* The error of filters that leave nothing. */
int bench_none_fits(const struct bench_cases *c, const struct bench_options *o, size_t versions,
                    struct error *err);
/* Judges, writes and keeps what was measured; returns the exit code. */
int bench_conclude(const struct bench_options *o, const struct bench_versions *v,
                   const struct bench_plan *plan, const struct bench_results *results,
                   time_t started, struct bench_files *files, struct error *err);
/* --iterations: becomes the program.  Returns only when it failed. */
int bench_run_once(const struct bench_options *o, const struct bench_target *t,
                   const struct bench_call *call, struct error *err);

/* --harness: NULL for programs with assay.h. */
struct program_harness;
int bench_find_harness(const struct bench_options *o, char *const *paths, size_t count,
                       const struct program_harness **ret, struct error *err);
/* Lists or measures programs of another harness; returns the exit code. */
int bench_run_foreign(const struct bench_options *o, const struct bench_versions *v,
                      const struct program_harness *h, struct bench_plan *plan, struct error *err);

#endif

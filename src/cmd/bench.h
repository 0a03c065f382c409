/* SPDX-License-Identifier: MIT */
/* What the files of `assay bench` share. */
#ifndef ASSAY_CMD_BENCH_H
#define ASSAY_CMD_BENCH_H

#include "base/fd.h"
#include "base/options.h"
#include "bench/measure.h"
#include "report/bench/bench.h"

struct bench_options {
    struct option_list filters, names;
    const char *base, *build, *json, *html, *db, *save;
    bool list, show_output, all, quiet;
    uint64_t time_ns, rounds, timeout_ns, seed, iterations;
    const char *cpu;
};

extern const struct option bench_option_table[];

/* The versions: one or two programs. */
struct bench_versions {
    struct bench_target targets[BENCH_SIDES_MAX];
    char *names[BENCH_SIDES_MAX];
    size_t count;
};

/* Writes what was found; returns 0 or a negative errno. */
int bench_report(const struct bench_options *o, struct bench_view *view, struct outfile *json,
                 struct outfile *html, struct error *err);
/* --save */
int bench_save(const struct bench_options *o, const struct dataset *d, struct error *err);
/* --iterations: becomes the program.  Returns only when it failed. */
int bench_run_once(const struct bench_options *o, const struct bench_target *t,
                   const struct bench_call *call, struct error *err);

#endif

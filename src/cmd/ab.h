/* SPDX-License-Identifier: MIT */
/* What the files of `assay ab` share: its options, and the contestants that they make. */
#ifndef ASSAY_CMD_AB_H
#define ASSAY_CMD_AB_H

#include "analysis/outcome.h"
#include "base/options.h"
#include "base/term.h"
#include "report/text/ab.h"
#include "run/rounds.h"
#include "spec/parameters.h"

struct ab_options {
    struct option_list names, lists, scans, setups, prepares, cleanups, events, imports;
    const char *step, *shell, *input, *output, *directory, *cpus, *precision, *metric, *reference,
        *ignore_failure;
    const char *json, *csv, *markdown, *html, *export_hyperfine, *export_google;
    bool no_shell, show_output, no_padding, duet, all;
    uint64_t rounds, min_rounds, max_rounds, time_ns, timeout_ns, warmup, seed;
};

/* Who runs: every command with every combination of the parameters. */
struct ab_plan {
    struct parameter_list parameters;
    struct contestant *contestants;
    struct participant *participants; /* the same for the report */
    size_t count;
    const char *shell; /* that runs them, NULL for none */
};

int ab_plan_make(struct ab_plan *plan, const struct ab_options *o, char *const *commands,
                 size_t command_count, struct error *err);
/* Where a reference never succeeded, the first command of its group that did takes its place in the
 * report. */
void ab_plan_replace_references(struct ab_plan *plan, const struct rounds *r);
void ab_plan_done(struct ab_plan *plan);

/* Participants of imported results; references as told. */
int ab_plan_import(struct ab_plan *plan, const struct ab_options *o, const char *const *names,
                   const char *const *commands, const char *const *parameters, size_t count,
                   struct error *err);

/* The whole result as one HTML file. */
void ab_put_html(struct strbuf *out, const struct ab_view *v);

/* What the callbacks of the rounds know. */
struct ab_watch {
    struct progress progress;
    const struct participant *participants;
    const char *metric; /* the headline */
    double precision;   /* 0 when none was asked for */
    uint64_t estimated_ns;
    char estimate[160];
    double rounds_needed; /* for the precision; 0 when unknown */
    size_t next_check;
    bool no_metric;             /* there is no metric of that name */
    uint64_t run_ns, ticked_ns; /* when the last run ended, and when that was last shown */
};

/* For rounds_spec, with a struct ab_watch as context. */
void ab_watch_tick(const struct rounds *r, const struct rounds_spec *spec, size_t contestant,
                   void *context);
void ab_watch_run(const struct rounds *r, const struct rounds_spec *spec, void *context);
bool ab_watch_is_precise(const struct rounds *r, const struct rounds_spec *spec, void *context);

#endif

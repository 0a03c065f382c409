/* SPDX-License-Identifier: MIT */
/* What the files of `assay ab` share: its options, and the contestants that they make. */
#ifndef ASSAY_CMD_AB_H
#define ASSAY_CMD_AB_H

#include "analysis/outcome.h"
#include "base/fd.h"
#include "base/options.h"
#include "base/term.h"
#include "bench/relink.h"
#include "exact/tool.h"
#include "report/text/ab.h"
#include "run/rounds.h"
#include "spec/parameters.h"

#include <regex.h>

struct ab_options {
    struct option_list names, lists, scans, setups, prepares, cleanups, events, imports,
        metric_regexes, concludes, links;
    const char *step, *shell, *input, *output, *directory, *cpus, *precision, *metric, *reference,
        *ignore_failure;
    const char *json, *csv, *markdown, *html, *export_hyperfine, *export_google;
    const char *export_csv, *export_asciidoc, *export_orgmode, *sort, *time_unit, *style;
    const char *db, *save, *against;
    struct dataset *before; /* what --against names; NULL for nothing */
    const char *exact;      /* NULL for none */
    bool sim, no_shell, show_output, no_padding, duet, all, verbose;
    uint64_t rounds, min_rounds, max_rounds, time_ns, timeout_ns, warmup, seed, copies, layouts;
};

extern const struct option ab_option_table[];
/* What no single option can tell is wrong. */
int ab_options_check(const struct ab_options *o, size_t command_count, struct error *err);
/* --style */
bool ab_has_colour(const struct ab_options *o);
bool ab_has_progress(const struct ab_options *o);
/* The participants in the order that --sort asks for, to be freed; NULL for the given one. */
size_t *ab_row_order(const struct ab_options *o, const struct outcome *outcome);

/* A result in one format, for standard output or a file. */
struct ab_product {
    const char *path; /* NULL: not wanted, "" or "-": standard output */
    const char *name;
    void (*report)(struct strbuf *out, const struct ab_view *v);
    struct outfile file;
};

enum { AB_PRODUCT_COUNT = 9 };

struct ab_products {
    struct ab_product items[AB_PRODUCT_COUNT];
    bool silent;    /* nobody wants the text */
    bool to_stdout; /* one of them takes the place of the text */
};

/* Opens what will be written, before hours of measuring. */
int ab_products_open(struct ab_products *all, const struct ab_options *o, struct error *err);
int ab_products_write(struct ab_products *all, const struct ab_view *v, struct error *err);
void ab_products_done(struct ab_products *all);

/* Who runs: every command with every combination of the parameters. */
struct ab_plan {
    struct parameter_list parameters;
    struct contestant *contestants;
    struct participant *participants; /* the same for the report */
    size_t count;
    const char *shell; /* that runs them, NULL for none */
};

/* Whether --reference is none of the commands, names and numbers, but one more command. */
bool ab_reference_is_command(const struct ab_options *o, char *const *commands, size_t count);
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

/* A figure in the commands' output: --metric-regex. */
struct ab_regex {
    char *name;
    regex_t regex;
    bool ready;
    size_t missed; /* runs in which nothing matched */
};

/* What is taken from runs beside what every run has, and the names of all. */
struct ab_metrics {
    const char *headline;
    struct ab_regex *regexes;
    size_t regex_count, regex_capacity;
    bool simulates;
    const char *only; /* the beginning of the names that are kept; NULL for all */
    char **names;     /* of the metrics that there are, by the first run of each command */
    size_t name_count, name_capacity;
    size_t result_count;
    bool headline_unseen;  /* no run has had it so far */
    bool headline_missing; /* the headline is none of them: the rounds have ended */
};

int ab_metrics_init(struct ab_metrics *m, const struct ab_options *o, struct error *err);
void ab_metrics_done(struct ab_metrics *m);
/* For rounds_spec, as on_result. */
bool ab_metrics_take(const struct rounds *r, const struct rounds_spec *spec,
                     struct run_result *result, size_t contestant, void *context);
/* Says which expressions did not match. */
void ab_metrics_notes(const struct ab_metrics *m, struct doubt_list *notes);
/* The error of a headline that is missing, with the nearest names. */
int ab_metrics_missing(const struct ab_metrics *m, const struct rounds *r,
                       const struct event_list *events, struct error *err);

/* Runs all commands a few times more under Valgrind, which counts their instructions.  The rounds
 * must be given to rounds_done in any case. */
int ab_simulate(const struct rounds_spec *like, struct rounds *ret_rounds,
                struct progress *progress, struct error *err);
void ab_add_simulated(struct dataset *d, const struct rounds *r);

/* --layouts: what no single option can tell is wrong; the programs of all layouts, where link
 * commands are given. */
int ab_layouts_check(const struct ab_options *o, size_t command_count, struct error *err);
int ab_layouts_link(struct relinked *l, const struct ab_options *o, const struct ab_plan *plan,
                    struct rounds_spec *spec, struct error *err);
/* Leaves one value for each layout: what rounds of the same layout say is not independent. */
void ab_layouts_fold(struct dataset *d, const struct rounds *rounds,
                     const struct rounds_spec *spec);
/* Of each participant against its reference, by the values of all rounds; count is 0 where there is
 * nothing to tell.  The caller frees it. */
struct layout_spread *ab_layouts_spread(const struct dataset *all, const struct outcome *outcome,
                                        const struct rounds *rounds,
                                        const struct rounds_spec *spec);

/* --exact: the commands run emulated.  ab_exact_open changes the rounds so that they are. */
struct ab_exact {
    struct exact_tool tool;
    const char *word;
    struct contestant *contestants;
    const struct contestant *plain; /* as they were given */
    size_t count;
};

int ab_exact_check(const struct ab_options *o, struct error *err);
int ab_exact_open(struct ab_exact *e, struct ab_options *o, struct rounds_spec *spec,
                  struct error *err);
/* Forgets what disturbed the runs: it changes no count. */
void ab_exact_settle(struct rounds *r);
/* Which functions account for differences: text behind the table. */
int ab_exact_explain(const struct ab_exact *e, const struct rounds_spec *like,
                     const struct rounds *rounds, struct strbuf *out, struct error *err);
void ab_exact_done(struct ab_exact *e);

/* --against: the experiment, loaded before anything is measured, and the comparison with it. */
int ab_against_load(const struct ab_options *o, const struct ab_plan *plan,
                    struct dataset *ret_before, struct error *err);
int ab_against_print(const struct ab_options *o, struct dataset *before, struct dataset *now,
                     struct error *err);
/* --save: whether there is anything to keep, whether that will be possible, and the keeping. */
bool ab_saves(const struct ab_options *o);
int ab_save_check(const struct ab_options *o, struct error *err);
int ab_save(const struct ab_options *o, const struct dataset *d, struct error *err);

/* What the callbacks of the rounds know. */
struct ab_watch {
    struct progress progress;
    const struct participant *participants;
    struct ab_metrics *metrics;
    const char *metric; /* the headline */
    double precision;   /* 0 when none was asked for */
    uint64_t estimated_ns;
    char estimate[160];
    double rounds_needed; /* for the precision; 0 when unknown */
    size_t next_check;
    uint64_t run_ns, ticked_ns; /* when the last run ended, and when that was last shown */
};

/* For rounds_spec, with a struct ab_watch as context. */
void ab_watch_tick(const struct rounds *r, const struct rounds_spec *spec, size_t contestant,
                   void *context);
void ab_watch_run(const struct rounds *r, const struct rounds_spec *spec, void *context);
bool ab_watch_is_precise(const struct rounds *r, const struct rounds_spec *spec, void *context);

#endif

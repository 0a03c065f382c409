/* SPDX-License-Identifier: MIT */
/*
 * The commit that changed a metric, in a git repository: the search of stats/bisection.h with real
 * builds and real runs.
 *
 *   bisect_start(&b, &settings, folder, &err);     or bisect_continue(&b, folder, &err)
 *   bisect_run(&b, &err);                          -EINTR: stopped, can be continued
 *   bisect_close(&b);
 *
 * All it has lies in one folder, by default assay-bisect in the git directory: a journal of what
 * was built and measured, from which a search that was stopped or killed is taken up (the search is
 * told all again, see stats/bisection.h), a worktree for each commit that was built, and the
 * builds' output.  A build or a round that was cut off is made again.
 *
 * The caller has called process_signals_catch.  A signal ends the build or the run in flight.
 */
#ifndef ASSAY_BISECT_BISECT_H
#define ASSAY_BISECT_BISECT_H

#include "analysis/outcome.h"
#include "bisect/bisection.h"

struct explain;

struct bisect_settings {
    char *good, *bad; /* as they were given */
    char *build;      /* "" for nothing to build */
    char *run;
    /* The benchmark that run measures, and the program that has it; "" for a command. */
    char *bench, *program;
    char *metric; /* "" until it is chosen, where none was given */
    char *events; /* to be counted; "" for none */
    char *cpus;   /* "" for assay's own */
    char *better; /* "lower", "higher", or "": by the metric's name and unit */
    char *output; /* where standard output goes, as output_parse takes it */
    char *exact;  /* what counts instructions exactly (exact/tool.h); "" for nothing */
    char *prefix; /* the folder within the repository where the commands run, "" for its top */
    uint64_t seed, timeout_ns, warmup;
    double error, min_change;
    uint64_t rounds_first, rounds_max, stride;
    uint64_t all, keep; /* 0 or 1; keep: worktrees stay when it has ended */
    uint64_t explain;   /* 0 or 1: the functions that account for a change are wanted */
};

struct bisect_commit {
    char *hash, *author, *subject;
    uint64_t failed_runs; /* that were tried again */
    char *kernel;         /* of the emulated machine that it ran in; NULL for none */
    bool kernel_is_kept;  /* in the journal */
    char *reasons;        /* why it changed the metric, in lines; NULL where that was not asked */
    bool is_merge;
};

/* All metrics of one confirmation: the cells are the commit before, and the commit. */
struct bisect_table {
    size_t step; /* of the search */
    uint32_t round_count;
    struct dataset data;
};

struct bisect {
    struct bisect_settings settings;
    char *folder;     /* of the journal and all else */
    char *repository; /* its top, or the git directory of a bare one */
    struct bisect_commit *commits;
    size_t commit_count, commit_capacity;
    struct bisection search;
    struct bisect_table *tables;
    size_t table_count, table_capacity;
    char *unit; /* of the metric; NULL until the first round */
    enum metric_better better;
    bool metric_chosen;    /* by assay */
    uint64_t run_count;    /* that were measured */
    uint64_t stolen_count; /* rounds that do not count: the host took time from them */
    size_t stolen_in_row;
    bool ended, continued; /* ended: there is nothing left to do */
    int journal_fd, lock_fd;
    bool warm; /* the step's commands have run in this process */
    size_t warm_step;
    struct event_list event_list;
    int *cpu_list;
    size_t cpu_count;
    struct strbuf notes; /* lines for the user: commits that were left out, and why */
    /* Called often; may be NULL. */
    void (*on_progress)(const struct bisect *b, const char *what, void *context);
    void *context;
};

/* The folder where a bisect lies when none is named; the caller frees it. */
int bisect_default_folder(char **ret_folder, struct error *err);

/* The settings' texts are copied; good and bad are resolved here, commits listed.  Refuses where an
 * unfinished search lies in the folder (-EBUSY). */
int bisect_start(struct bisect *b, const struct bisect_settings *settings, const char *folder,
                 struct error *err);
int bisect_continue(struct bisect *b, const char *folder, struct error *err);
/* Builds and measures until the search has ended. */
int bisect_run(struct bisect *b, struct error *err);
/* Makes the commands that are profiled in the place of the measured ones: of two programs with the
 * same benchmark, each in its folder.  The texts are the caller's. */
typedef int bisect_bench_texts(const char *bench, char *const programs[2], char *const folders[2],
                               char *ret_texts[2], struct error *err);
/* Profiles both sides of a change that was found; e is to be given to explain_done also when this
 * fails. */
int bisect_explain(struct bisect *b, const struct bisection_change *change,
                   bisect_bench_texts *texts, struct explain *e, struct error *err);
/* Keeps the reasons, in lines, in the journal and with the commit. */
int bisect_set_reasons(struct bisect *b, size_t commit, const char *text, struct error *err);
/* Takes worktrees and recordings away, unless they are to be kept. */
void bisect_finish(struct bisect *b);
/* Takes away all that a search left behind, the journal included. */
int bisect_abort(const char *folder, struct error *err);
/* Whether what is searched for is counted in emulated machines ('assay vm run' as the command). */
bool bisect_counts_in_machine(const struct bisect *b);
void bisect_close(struct bisect *b);

/* The table of a confirmation, NULL when there is none. */
const struct bisect_table *bisect_table(const struct bisect *b, size_t step);

#endif

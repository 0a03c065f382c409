/* SPDX-License-Identifier: MIT */
/*
 * An experiment being run: all cells in rounds, shuffled anew each time (the order follows from the
 * seed), every run kept at once.  What was stopped, killed or cut off is taken up where it was: a
 * run that is in the store is not made again.
 *
 *   session_open(&s, &options, &err);    reads, plans, builds; finds what there is to resume
 *   session_run(&s, &err);               runs what is missing
 *   session_close(&s);
 *
 * The caller has called process_signals_catch: a signal ends the session after the run in flight
 * was ended, and leaves an experiment that can be resumed.
 */
#ifndef ASSAY_SESSION_SESSION_H
#define ASSAY_SESSION_SESSION_H

#include "analysis/dataset.h"
#include "counters/event.h"
#include "monitors/monitors.h"
#include "run/cgroup.h"
#include "run/runner.h"
#include "session/build.h"
#include "session/cluster_files.h"
#include "session/steps.h"

struct session;
struct guests;

struct session_options {
    const char *spec_path;
    const char *spec_text; /* instead of the file, which then is only a name; NULL for the file */
    const struct spec_level *sides; /* of an added factor "side"; the first is the baseline */
    size_t side_count;
    const char *db; /* as store_place takes it */
    const char *cells;
    bool quick, fresh, dry_run;
    bool elsewhere;     /* only planned here; tasks on other nodes run it: see cluster.h */
    const char *task;   /* this is one of them: UUID/N/T of cluster_files.h; NULL for none */
    const char *visit;  /* an experiment whose cells are run again, without a word to the store */
    const char *resume; /* the experiment to take up; NULL: one of the same spec, if there is one */
    /* Instead of what the spec says; 0 or NULL for that. */
    uint64_t rounds, budget_ns, timeout_ns, seed;
    double precision;
    bool has_seed, no_precision;
    const char *cpus, *commit;
    const char *hosts, *launcher; /* as hosts_place takes them */
    const char *const *monitors;  /* besides the spec's */
    size_t monitor_count;
    bool has_nice;
    int nice;
    /* Called often; may be NULL. */
    void (*on_progress)(const struct session *s, void *context);
    void *context;
};

struct session_cell {
    int64_t id;
    bool kept;
    bool is_stale; /* of a visit: the program is no longer what was measured */
    char **argv;
    char **environment; /* added; ends with NULL */
    char *input, *command, *build_id;
    const char **build_folders;
    uint32_t *rounds; /* of its good runs, ascending */
    size_t count, capacity;
    uint64_t failed_count, wall_sum_ns, run_count;
    double half_width; /* of the interval that precision asks for; NAN when not known */
};

enum session_phase { SESSION_BUILD, SESSION_WARMUP, SESSION_ROUNDS, SESSION_EXTRA };

enum session_end { SESSION_DONE, SESSION_STOPPED, SESSION_FAILED };

struct session {
    const struct session_options *options;
    struct spec spec;
    struct matrix matrix;
    bool *kept;
    size_t kept_count;
    struct builds builds;
    struct session_cell *cells; /* as many as the matrix has */
    struct store *store;
    int64_t experiment;
    bool resumed;
    char *resume_note; /* why an earlier one was not resumed, or NULL */
    uint64_t seed;
    size_t run_count_before; /* that were there when it was resumed */
    struct steps steps;
    struct monitors monitors;
    struct monitors traces;    /* those that need a run of their own */
    bool watch_profile;        /* the same for perf-profile */
    struct run_result watched; /* of such a run */
    struct event_list events;
    struct guests *guests; /* the emulated machines; NULL for none */
    struct runner runner;
    bool runner_open, monitors_open, traces_open, traces_failed, steps_open;
    struct run_result result;
    int *cpus;
    size_t cpu_count;
    char *headline;         /* the metric that decides when it is precise enough */
    struct dataset *values; /* that metric in all good runs; cells as in the matrix */
    char *selection;
    struct task_plan plan;       /* of a task */
    char *stop_path;             /* of a task: it ends when there is such a file */
    char *node, *layout;         /* of a task; NULL else */
    bool uncounted;              /* a task that ends because the node lacks events */
    struct cgroup_stays cgroups; /* that assay went into for the spec's limits */
    /* Where it stands, for progress. */
    enum session_phase phase;
    const char *current; /* label or command */
    uint64_t round, position, started_ns;
    size_t runs_done, runs_planned; /* planned: a guess in extra rounds */
    uint64_t spent_ns;              /* of all sessions, without waiting between them */
    size_t disturbed_count, failed_count, retried_count;
    double widest;   /* half-width of the widest interval, NAN when not known */
    uint64_t eta_ns; /* how long it still takes; 0 when not known */
    enum session_end end;
    struct strbuf notes; /* lines for the user */
};

int session_open(struct session *s, const struct session_options *options, struct error *err);
/* s->end says how it ended; a failure of a command is an error with its words. */
int session_run(struct session *s, struct error *err);
void session_close(struct session *s);

/* How long a run takes, from an earlier experiment of the same name; 0 when there is none. */
uint64_t session_guess_run_ns(struct session *s);

#endif

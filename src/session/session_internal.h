/* SPDX-License-Identifier: MIT */
/* What the session's files share, and the rooms that run cells in ways of their own. */
#ifndef ASSAY_SESSION_SESSION_INTERNAL_H
#define ASSAY_SESSION_SESSION_INTERNAL_H

#include "analysis/dataset.h"
#include "counters/event.h"
#include "counters/simulated.h"
#include "exact/run.h"
#include "machine/machine.h"
#include "monitors/monitors.h"
#include "run/cgroup.h"
#include "run/failures.h"
#include "run/runner.h"
#include "run/straight.h"
#include "session/build.h"
#include "session/cluster_files.h"
#include "session/session.h"
#include "session/steps.h"

struct guests;

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
    struct contestant_state tries; /* one that keeps failing is not run any more */
    double half_width;             /* of the interval that precision asks for; NAN when not known */
    bool is_precise;               /* it needs no more rounds */
    struct straight straight;      /* whether its runs wait */
};

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
    struct monitors traces;  /* those that need a run of their own */
    bool watch_profile;      /* the same for perf-profile */
    bool simulates;          /* and for sim:instructions */
    struct exact_tool exact; /* what counts; only where exact_words is set */
    char **exact_words;      /* before each command */
    struct simulator simulator;
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
    struct strbuf notes;            /* lines for the user */
    struct metric_refusals refused; /* those that stand in the notes */
    bool metrics_truncated;
};

/* Tells whoever wants to know where it stands. */
void session_show_progress(const struct session *s);

/* Writes the experiment, or takes an earlier one up. */
int session_enter(struct session *s, struct error *err);

/* A task of a cluster: reads what is to be done and whether this node can (-ENOTSUP when not). */
int session_read_task(struct session *s, struct error *err);
/* -ENOTSUP when a cell needs what this machine has not. */
int session_check_needs(struct session *s, const struct machine *machine, struct error *err);
/* Events that the node is declared to lack: -ENOTSUP where the spec names them, else left out. */
int session_drop_events(struct session *s, struct error *err);
int session_enter_task(struct session *s, struct error *err);
int session_run_task(struct session *s, struct error *err);
/* The folders for its builds. */
int session_make_task_builds(struct session *s,
                             void (*on_build)(const char *, size_t, size_t, void *),
                             struct error *err);
/* What the store has of the experiment by now. */
int session_take_over(struct session *s, struct error *err);
/* Puts the cells of a round into the order that follows from the seed. */
void session_shuffle(const struct session *s, uint64_t round, size_t *cells, size_t count);

/* Runs one cell once.  `keep` puts it into the store; a warm-up is not kept. */
int session_run_cell(struct session *s, size_t cell, uint64_t round, uint64_t position, bool keep,
                     struct error *err);

/* Notes a good run's headline value. */
void session_note_value(struct session *s, size_t cell, uint32_t round, double value);
/* Notes a good run's CPU time, which may stand in for its wall time. */
void session_note_cpu(struct session *s, size_t cell, uint32_t round,
                      const struct run_result *result);
/* The empty table of those values. */
void session_make_values(struct session *s);
bool session_has_round(const struct session_cell *cell, uint64_t round);

/* Computes every cell's interval; sets s->widest. */
void session_measure_widths(struct session *s);
/* Whether there are extra rounds at all, by the spec and the options. */
bool session_wants_extra(const struct session *s);
/* The cells of the next extra round; returns how many, 0 when it is precise enough. */
size_t session_choose_extra(struct session *s, size_t *ret_cells);

/* Whether the cell differs from its baseline. */
bool session_cell_changed(const struct session *s, size_t cell);
/* How a cell is run once more. */
struct session_again {
    char *const *before;             /* words before its command, NULL for none */
    const char *program;             /* of those words; NULL for assay itself */
    void (*on_ready)(void *context); /* just before the start; may be NULL */
    void *context;
};
/* Runs a cell once more, outside of the rounds, on a runner of the caller's: nothing is kept.  A
 * failed command is an error.  The result has the metrics that the spec finds in the output as
 * well. */
int session_run_again(struct session *s, size_t cell, uint64_t round, struct runner *runner,
                      const struct session_again *again, struct run_result *result,
                      struct error *err);
/* Records profiles of the cells that the spec asks for, as far as they are missing; -EINTR when it
 * was interrupted, with what there is kept. */
int session_profile(struct session *s);
bool session_profiles_left(const struct session *s);
/* Whether the spec asks for the cell's, by what has been measured. */
bool session_profile_wanted(const struct session *s, size_t cell);
/* A task that records those of its cells, into files beside it that T.profiles lists. */
int session_profile_task(struct session *s, struct error *err);
/* "FOLDER/.assay/profiles/experiment-E-cell-C-run-R.data" in a folder that is made; the caller
 * frees it.  NULL, with errno, when it cannot be made. */
char *session_profile_path(const struct session *s, size_t cell, size_t run);
/* Keeps the lines "WORK PATH" as the cell's profiles. */
void session_keep_profiles(struct session *s, size_t cell, const struct strbuf *list);

/* Where values go that come from elsewhere than the measured run. */
typedef void session_value_fn(void *context, const char *name, const char *unit, double value);

/* Cells that run in emulated machines: see guests.h. */
int session_open_guests(struct session *s, struct error *err);
void session_close_guests(struct session *s);
/* How a cell is run there. */
struct guest_again {
    char *const *before;             /* words before its command, NULL for none */
    const struct event_list *events; /* to be counted instead of the spec's; NULL for those */
    size_t padding_bytes;
    bool is_startup; /* with no operations: what the command's start takes */
    bool is_watched; /* by the spec's monitors, which read files there */
};
/* Runs a cell's command in the machine of its kernel and counts; before it, where that can be told,
 * the same command with no operations (--ops 0). */
int session_measure_in_guest(struct session *s, size_t cell, const struct hole_values *values,
                             size_t padding_bytes, struct run_result *result, struct error *err);
/* Runs a cell's command in the machine of its kernel. */
int session_run_in_guest(struct session *s, size_t cell, const struct hole_values *values,
                         const struct guest_again *how, struct run_result *result,
                         struct error *err);
/* What the last run there counted. */
void session_give_counts(struct session *s, size_t cell, session_value_fn *put, void *context);
/* Whether a metric, which is a time, is one of an emulated machine: then it is noted and not kept.
 */
bool session_drops_time(const struct session *s, size_t cell, const char *name, const char *unit);
/* The same for a metric of any unit. */
bool session_drops_unit(const struct session *s, size_t cell, const char *name, const char *unit);
void session_note_left_out(struct session *s);
/* Whether what a command takes with no operations is subtracted from instructions for each. */
bool session_subtracts_startup(const struct session *s);
/* The machines, in the document that describes an experiment's environment. */
void session_put_guests(const struct session *s, struct json *j);
/* The metric that decides where the spec names none. */
const char *session_default_headline(const struct spec *spec);
/* Its CPU time. */
double session_cpu_ns(const struct run_result *result);

/* Monitors that need runs of their own. */
int session_open_watchers(struct session *s, struct error *err);
void session_close_watchers(struct session *s);
bool session_watches(const struct session *s);
/* Cells some runs of which failed, where that is not allowed. */
size_t session_failed_cells(const struct session *s);
/* The error that names them: all else is measured by then, and the notes have each failure's words.
 * Failures that the spec allows are results, but where there is nothing else, nothing was measured.
 */
int session_check_failures(const struct session *s, struct error *err);
/* Where the spec asks for exact counts: what counts them is looked for. */
int session_open_exact(struct session *s, struct error *err);
void session_close_exact(struct session *s);
/* The metric is not printed by the command but counted by a simulation. */
bool session_is_simulated(const struct spec_metric *m);
/* After a measured run: runs its cell again as often as the monitors need. */
void session_watch(struct session *s, size_t cell, uint64_t round, session_value_fn *put,
                   void *context);

/* Texts that are kept with an experiment. */
char *session_environment_json(const struct session *s);
/* *ret_class: what machines whose results may be compared have in common; the caller frees it. */
char *session_machine_json(char **ret_class);
/* "" outside of a repository; with "-dirty" when there are changes. */
char *session_git_commit(const char *folder);
char *session_git_subject(const char *folder, const char *commit);
/* The branch that is checked out, or that CI says it has checked out; "" when there is none. */
char *session_git_branch(const char *folder);

/* Priority and control group of all that is run. */
int session_apply_limits(struct session *s, struct error *err);
void session_lift_limits(struct session *s);

#endif

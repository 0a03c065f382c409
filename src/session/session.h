/* SPDX-License-Identifier: MIT */
/*
 * An experiment being run: all cells in rounds, shuffled anew each time (the order follows from the
 * seed), every run kept at once.  What was stopped, killed or cut off is taken up where it was: a
 * run that is in the store is not made again.
 *
 *   session_open(&s, &options, &err);    reads, plans, builds; finds what there is to resume
 *   session_run(s, &err);                runs what is missing
 *   session_close(s);
 *
 * The caller has called process_signals_catch: a signal ends the session after the run in flight
 * was ended, and leaves an experiment that can be resumed.
 */
#ifndef ASSAY_SESSION_SESSION_H
#define ASSAY_SESSION_SESSION_H

#include "analysis/judge.h"
#include "base/strings.h"
#include "exact/functions.h"
#include "spec/matrix.h"
#include "store/store.h"

struct session;

enum session_phase { SESSION_BUILD, SESSION_WARMUP, SESSION_ROUNDS, SESSION_EXTRA };

/* Where it stands. */
struct session_progress {
    enum session_phase phase;
    const char *current; /* label or command */
    uint64_t round;
    size_t runs_done, runs_planned; /* planned: a guess in extra rounds */
    double widest;                  /* half-width of the widest interval, NAN when not known */
    uint64_t eta_ns;                /* how long it still takes; 0 when not known */
};

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
    const char *headline;   /* the metric that is judged */
    const char *exact;      /* as the spec's */
    enum judge_by judge_by; /* what precision is asked of */
    bool cpu_stands_in; /* CPU time may be precise enough instead of wall time (run/straight.h) */
    /* Whether two cells that are precise enough are so in all respects; may be NULL. */
    bool (*may_stop)(const struct judge_sides *sides, const struct comparison *comparison,
                     void *context);
    bool has_seed, no_precision;
    const char *cpus, *commit;
    const char *output;           /* where standard output goes, as output_parse takes it */
    const char *hosts, *launcher; /* as hosts_place takes them */
    const char *const *monitors;  /* besides the spec's */
    size_t monitor_count;
    bool has_nice;
    int nice;
    /* Called often; may be NULL. */
    void (*on_progress)(const struct session_progress *progress, void *context);
    void *context; /* of both */
};

enum session_end { SESSION_DONE, SESSION_STOPPED, SESSION_FAILED };

/* What it is and how it ended. */
struct session_facts {
    struct store *store;
    int64_t experiment;
    bool resumed;
    const char *resume_note; /* why an earlier one was not resumed, or NULL */
    uint64_t seed;
    size_t cell_count;       /* that are run */
    size_t run_count_before; /* that were there when it was resumed */
    size_t failed_cells;     /* some runs of which failed, where that is not allowed */
    enum session_end end;
    const char *node; /* of a task; NULL else */
    bool uncounted;   /* a task that ends because the node lacks events */
};

/* *ret_session is there in any case: session_close is due also when this fails. */
int session_open(struct session **ret_session, const struct session_options *options,
                 struct error *err);
/* session_facts says how it ended; a failure of a command is an error with its words. */
int session_run(struct session *s, struct error *err);
void session_close(struct session *s);

struct session_facts session_facts(const struct session *s);
/* Exact counts by function, of one run more of the cell with this label.  -ENOTSUP where the
 * experiment does not count exactly. */
int session_exact_functions(struct session *s, const char *label, struct exact_functions *ret,
                            struct error *err);
struct session_progress session_progress(const struct session *s);
const struct spec *session_spec(const struct session *s);
const struct matrix *session_matrix(const struct session *s);
/* Whether the cell is among those that are run. */
bool session_keeps(const struct session *s, size_t cell);
/* Appends the lines for the user that came up since the last time; whether there are any. */
bool session_has_notes(const struct session *s);
void session_take_notes(struct session *s, struct strbuf *out);

/* How long a run takes, from an earlier experiment of the same name; 0 when there is none. */
uint64_t session_guess_run_ns(struct session *s);

#endif

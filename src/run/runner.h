/* SPDX-License-Identifier: MIT */
/*
 * Runs one command once and measures it: the clock, what wait4 tells, counted events, the figures
 * that the program prints, and what disturbed the run.
 *
 *   struct runner r;
 *   runner_open(&r, &events, &err);            events are opened once for all runs
 *   struct run_result result = {0};
 *   for (…)
 *       runner_run(&r, &spec, &result, &err);  the result's memory is used again
 *   run_result_done(&result);
 *   runner_done(&r);
 *
 * A runner belongs to the thread that opened it: events follow the commands that this thread
 * starts, and only them.  Two runners in two threads measure two commands at the same time (see
 * duet).  The caller has called process_signals_catch; a signal that comes then ends the command.
 *
 * The command runs in a process group of its own.  When its first process has ended, so has the
 * run; what remains of the group would disturb the next run, is ended and noted (left_behind),
 * unless the spec says otherwise.
 */
#ifndef ASSAY_RUN_RUNNER_H
#define ASSAY_RUN_RUNNER_H

#include "base/error.h"
#include "base/strings.h"
#include "counters/counters.h"
#include "counters/launcher.h"
#include "run/disturbance.h"
#include "run/metrics.h"
#include "run/output.h"

#include <sys/resource.h>

enum {
    RUN_PADDING_MAX = 4096,     /* bytes of environment that may be added to vary the layout */
    RUN_KEEP_BYTES = 64 * 1024, /* of each kept stream, its end, unless the spec says otherwise */
};

struct run_spec {
    char *const *argv;
    const char *program;            /* the file to execute; NULL: argv[0], looked up in PATH */
    char *const *environment_added; /* NAME=VALUE …, ends with NULL; may be NULL */
    const char *working_dir;        /* NULL for assay's own */
    const char *input_path;         /* standard input; NULL for /dev/null */
    enum run_output stdout_to, stderr_to;
    const char *output_path; /* for RUN_FILE */
    size_t keep_bytes;       /* of each kept stream; 0 for RUN_KEEP_BYTES */
    const int *cpus;         /* the CPUs it may use; NULL for assay's own */
    size_t cpu_count;
    uint64_t timeout_ns;  /* 0 for none */
    size_t padding_bytes; /* length of the variable that varies the layout, 0 for none */
    bool small_start;     /* by the launcher, where it can: then peak RSS is the command's own */
    bool leave_others;    /* what the command leaves behind goes on */
    bool beside_others;   /* assay has other children just now, which are not this run's */
    /* Called when all is ready, just before the start; may be NULL. */
    void (*on_ready)(void *context);
    void *context;
    /* Called ten times a second while a long run lasts; may be NULL. */
    void (*on_tick)(void *context);
    void *tick_context;
};

struct run_result {
    int start_code;    /* negative: the command could not be executed, as its exec said */
    uint64_t start_ns; /* by clock_now_ns */
    uint64_t wall_ns;  /* from just before the start to the end of the first process */
    int status;        /* as wait4 gives it */
    struct rusage usage;
    uint64_t rss_bytes_floor; /* a peak RSS that is not above this is assay's own: not known */
    int signal;               /* assay got this signal and ended the command; 0 for none */
    bool timed_out;
    bool not_preloaded;           /* the loader did not find what LD_PRELOAD names (RUN_KEEP) */
    bool left_behind;             /* processes of the command were still there at its end */
    struct counter_value *values; /* one per event, in the list's order */
    size_t value_count;
    struct metric_list metrics;
    struct disturbance disturbance;
    struct strbuf kept_stdout, kept_stderr; /* of RUN_KEEP; the end of what was written */
};

struct runner {
    const struct event_list *events;
    struct counters counters; /* items[i].why says which events this machine does not have */
    struct counters moves;    /* cpu-migrations, for the disturbances */
    struct event_list move_events;
    struct disturbance_meter meter;
    struct counter_value *last; /* totals of the events at the end of the last run */
    struct counter_value *now;
    uint64_t last_moves;
    struct launcher launcher;
    int null_fd, metrics_fd, stdout_fd, stderr_fd; /* the last three are in memory */
    int metrics_number;                            /* the descriptor's number in the command */
    char **environment;
    size_t environment_capacity;
    char metrics_variable[40];
    char padding_variable[RUN_PADDING_MAX + 16];
};

/* The list may be empty and must outlive the runner. */
int runner_open(struct runner *r, const struct event_list *events, struct error *err);
void runner_done(struct runner *r);
/* Opens the events and the files in memory anew: what still counts or writes is left alone. */
int runner_renew(struct runner *r, struct error *err);

/*
 * Runs.  Fails when the command could not be started (with the code of its exec: -ENOENT, -EACCES,
 * …; then nothing ran) or when measuring failed.  A command that ran and failed is no failure
 * here: see result->status, timed_out and signal, or run_failed.
 */
int runner_run(struct runner *r, const struct run_spec *spec, struct run_result *result,
               struct error *err);

/* The command did not end with exit code 0, or was ended. */
bool run_failed(const struct run_result *result);
/* Appends how the run ended: "exit code 3", "signal 11 (Segmentation fault)", "timed out". */
void run_describe_end(const struct run_result *result, struct strbuf *out);
/* An error when the run failed or was interrupted, which names the command. */
int run_check(const struct run_result *result, const char *command, struct error *err);

void run_result_done(struct run_result *result);

#endif

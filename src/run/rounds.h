/* SPDX-License-Identifier: MIT */
/*
 * Rounds: in each, every command runs once, in an order that is shuffled anew.  What drifts or
 * disturbs the machine hits all commands of a round alike, so that differences are taken within
 * rounds.  The environment's size changes from round to round: one lucky memory layout cannot
 * decide (Mytkowicz et al., "Producing Wrong Data Without Doing Anything Obviously Wrong!", 2009).
 */
#ifndef ASSAY_RUN_ROUNDS_H
#define ASSAY_RUN_ROUNDS_H

#include "run/command.h"
#include "run/failures.h"
#include "run/runner.h"

/* A command that takes part. */
struct contestant {
    struct command command;
    char *name;
    size_t group;        /* compared with the reference of the same group */
    bool is_reference;   /* one in each group */
    size_t combination;  /* of the parameters */
    size_t source_index; /* of the command as it was given, before parameters */
    char *setup, *prepare, *conclude, *cleanup; /* command lines for a shell, or NULL */
    const char *working_dir;                    /* NULL for that of the spec */
};

struct run_record {
    uint64_t start_ns; /* since the first round began */
    uint64_t wall_ns, user_ns, sys_ns;
    uint64_t rss_bytes_max;
    bool rss_is_bound; /* the peak was not above assay's own: "at most" */
    uint64_t minor_faults, major_faults, voluntary_switches, involuntary_switches;
    uint64_t blocks_read, blocks_written;
    int status;
    bool timed_out, left_behind;
    bool is_absent; /* nothing was run: it is out, or the round was stopped; nothing else is set */
    bool is_left_out; /* it failed and that was not allowed: its values do not count */
    size_t position;  /* in its round; in a duet the side */
    struct counter_value *values;
    struct metric *metrics;
    size_t metric_count;
    struct disturbance disturbance;
};

struct round {
    struct run_record *runs; /* one per contestant */
    size_t padding_bytes;
    size_t layout; /* with layouts: which of them */
    bool is_still; /* it had the addresses that all still rounds have */
};

enum rounds_end {
    ROUNDS_DONE,    /* as many as were asked for */
    ROUNDS_TIME,    /* the time was over */
    ROUNDS_PRECISE, /* the interval is as narrow as was asked for */
    ROUNDS_SIGNAL,  /* interrupted: the finished rounds stand */
    ROUNDS_FAILURE, /* a command failed */
};

struct rounds {
    size_t contestant_count, event_count;
    struct round *items;
    size_t count, capacity;
    char **why;      /* per event: not NULL when it is not supported, and why */
    bool *user_only; /* per event */
    bool *accounted; /* per event: counters/accounting.h */
    enum rounds_end end;
    int signal;
    struct rounds_failure failure;   /* that ended the rounds */
    struct contestant_state *states; /* one per contestant */
    uint64_t elapsed_ns;             /* of the measured rounds, with what is between the runs */
    size_t unfinished_runs;          /* of the round that was interrupted: not kept */
    bool is_partial;                 /* it was the first round, and what there is of it was kept */
    uint64_t stopped_ns;             /* how long the run lasted that a signal ended */
    size_t warmup_done;
    size_t failed_runs; /* measured ones that were allowed to */
    struct metric_refusals refused_metrics;
    size_t truncated_metrics; /* runs */
    int duet_cpus[2];
    bool duet_shares_core;
    int start_code;       /* negative: a command could not be started, as its exec said */
    bool cannot_be_still; /* addresses are drawn anew in still rounds, too */
    size_t last_started;  /* the contestant whose command was started last, or could not be */
};

struct rounds_spec {
    const struct contestant *contestants;
    size_t contestant_count;
    const struct event_list *events;
    uint64_t warmup_count;
    uint64_t rounds_min, rounds_max;   /* max 0 for none */
    uint64_t time_min_ns, time_max_ns; /* 0 for none */
    uint64_t seed;                     /* of the orders, and of what else is drawn */
    uint64_t round_first; /* how many rounds of this seed were made before: orders go on there */
    uint64_t timeout_ns;
    const char *input_path, *working_dir, *output_path;
    enum run_output stdout_to; /* stderr is kept unless all is shown */
    const int *cpus;
    size_t cpu_count;
    const char *hook_shell;
    bool duet; /* each group has two contestants */
    struct failure_codes ignored_failures;
    bool keep_going; /* a command that fails does not end the others */
    bool no_padding;
    /* Measure at least so many memory layouts; 0: nobody asks.  With layout_programs they take
     * turns, each in at least two rounds; else each is a round with addresses of its own, and as
     * many rounds are still: all of those have the same addresses. */
    size_t layout_count;
    /* The program that contestant i of layout k executes, at k * contestant_count + i, in the place
     * of the command's own; NULL: its own. */
    char *const *layout_programs;
    /* Called while a long run lasts, with the number of its contestant; may be NULL.  In a duet by
     * the thread of one side. */
    void (*on_tick)(const struct rounds *r, const struct rounds_spec *spec, size_t contestant,
                    void *context);
    /* Called with what a run gave before it is kept, warm-ups and failures included: may add
     * metrics; false ends the rounds.  May be NULL. */
    bool (*on_result)(const struct rounds *r, const struct rounds_spec *spec,
                      struct run_result *result, size_t contestant, void *context);
    /* Called after each run, warm-ups included; may be NULL. */
    void (*on_run)(const struct rounds *r, const struct rounds_spec *spec, void *context);
    /* Called after each round once the minimum is reached: true ends the rounds as precise. */
    bool (*is_precise)(const struct rounds *r, const struct rounds_spec *spec, void *context);
    void *context;
};

static inline bool run_counts(const struct run_record *run)
{
    return !run->is_absent && !run->is_left_out;
}

/* Runs.  r is filled as far as it went, also on failure, and must be given to rounds_done.  Leaves
 * no process behind but those that the hooks started. */
int rounds_run(const struct rounds_spec *spec, struct rounds *r, struct error *err);
void rounds_done(struct rounds *r);

#endif

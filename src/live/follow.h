/* SPDX-License-Identifier: MIT */
/*
 * A command that is started, or what runs already, followed by its tracepoints: opens the events,
 * starts the command, gives each record in the order of time, and waits for the end.
 *
 *   struct follow_spec spec = {.command = &command, .trace = {.events = "sched:sched_switch"}};
 *   struct follow f;
 *   r = follow_start(&f, &spec, &err);
 *   …                                   fields of f.trace are looked up here
 *   r = follow_run(&f, take, context, &err);
 *   … f.has_ended, f.status, f.trace.lost …
 *   follow_done(&f);
 *
 * SIGINT and SIGTERM reach the command, too, and end what is not a command.
 */
#ifndef ASSAY_LIVE_FOLLOW_H
#define ASSAY_LIVE_FOLLOW_H

#include "base/process.h"
#include "monitors/trace.h"

struct follow_spec {
    const struct process_spec *command; /* NULL for none */
    const pid_t *pids;                  /* processes that run already */
    size_t pid_count;
    bool whole_machine;
    uint64_t duration_ns; /* ends what is not a command; 0 for none */
    struct trace_spec trace;
    /* Called between records, at least every tenth of a second when not NULL. */
    void (*pause)(void *context);
};

struct follow {
    struct follow_spec spec;
    struct trace trace;
    struct process_held held;
    pid_t *tasks;
    size_t task_count, task_capacity;
    bool has_trace, is_released;
    bool exec_failed;
    bool has_ended; /* the command, with this status: */
    int status;
    int signal; /* that ended it, 0 for none */
    uint64_t start_ns, wall_ns;
};

int follow_start(struct follow *f, const struct follow_spec *spec, struct error *err);
int follow_run(struct follow *f, trace_fn *take, void *context, struct error *err);
void follow_done(struct follow *f);
/* The exit code of a verb that followed it: the command's own, or 0. */
int follow_exit_code(const struct follow *f);

#endif

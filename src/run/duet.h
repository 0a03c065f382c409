/* SPDX-License-Identifier: MIT */
/*
 * Two commands at the same time, each on a CPU of its own: what disturbs the machine meanwhile
 * disturbs both alike (Bulej et al., "Duet Benchmarking", ICPE 2020).  Each side has a thread, a
 * runner and a CPU; who runs on which side is the caller's to swap.
 */
#ifndef ASSAY_RUN_DUET_H
#define ASSAY_RUN_DUET_H

#include "run/runner.h"
#include "run/worker.h"

struct duet_side {
    struct worker worker;
    struct runner runner;
    bool worker_started, runner_opened;
    const struct run_spec *spec;
    struct run_result *result;
    struct duet *duet;
    int code;
    struct error err;
};

struct duet {
    const struct event_list *events;
    int cpus[2];
    struct duet_side sides[2];
    unsigned ready_count; /* sides that stand at the start; atomic */
    bool reopen;          /* something counted goes on: the next run begins with new events */
};

/* The two of the allowed CPUs that are most alike and share least; -ENODEV when there is but one.
 * *ret_share_core says that they are threads of one core. */
int duet_choose_cpus(int ret_cpus[2], bool *ret_share_core, struct error *err);

/* To be opened before any event is.  The duet must not move in memory. */
int duet_open(struct duet *d, const struct event_list *events, const int cpus[2],
              struct error *err);
/* Runs specs[side] on each side's CPU at the same time.  Fails as runner_run does. */
int duet_run(struct duet *d, const struct run_spec *const specs[2],
             struct run_result *const results[2], struct error *err);
void duet_done(struct duet *d);

#endif

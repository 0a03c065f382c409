/* SPDX-License-Identifier: MIT */
/*
 * What is done around runs: commands before and after, and servers that are started, awaited until
 * they are ready, and ended.  All of it is started by a thread of its own, so that nothing of it is
 * counted, and to be opened before any event is.
 */
#ifndef ASSAY_SESSION_STEPS_H
#define ASSAY_SESSION_STEPS_H

#include "run/keeper.h"
#include "run/worker.h"
#include "spec/holes.h"

#include <sys/types.h>

struct server {
    pid_t pid; /* 0: not running */
    int log_fd;
    const struct spec_step *step;
};

struct steps {
    const struct spec *spec;
    struct worker worker;
    struct keeper keeper; /* of the servers, should assay be killed */
    bool started;
    struct server *servers; /* one per setup step */
    size_t server_count;
};

/* s must not move in memory until steps_done, which ends what still runs. */
int steps_open(struct steps *s, const struct spec *spec, struct error *err);
void steps_done(struct steps *s);

/* Runs the setup steps of one kind: once for the experiment, or for this run. */
int steps_before(struct steps *s, const struct hole_values *values, bool once, struct error *err);
/* Ends that kind's servers and runs its teardown steps, all of them even when one fails. */
int steps_after(struct steps *s, const struct hole_values *values, bool once, struct error *err);
bool steps_running(const struct steps *s);
/* A server that should be running has ended: the words say which and what it said. */
int steps_check(struct steps *s, struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The commands around an experiment: setup, prepare, cleanup.  They are not measured, what they
 * start in the background goes on, and what they print is kept for the case that they fail.
 */
#ifndef ASSAY_RUN_HOOKS_H
#define ASSAY_RUN_HOOKS_H

#include "run/runner.h"
#include "run/worker.h"

struct hooks {
    const char *shell;       /* a command line, as for command_init */
    const char *working_dir; /* or NULL */
    struct worker worker;
    struct runner runner; /* without events; belongs to the worker */
    bool started, runner_opened;
    struct run_result result; /* of the last hook */
};

/* To be opened before any event is. */
int hooks_open(struct hooks *h, const char *shell, const char *working_dir, struct error *err);
/* Runs one; h->result says how it ended.  Fails when it could not be started. */
int hooks_run(struct hooks *h, const char *text, struct error *err);
/* Gives back the memory of what a server that a hook started has printed since. */
void hooks_trim(const struct hooks *h);
void hooks_done(struct hooks *h);

#endif

/* SPDX-License-Identifier: MIT */
/* `assay run --on slurm`, and the tasks that it submits. */
#ifndef ASSAY_CMD_RUN_ELSEWHERE_H
#define ASSAY_CMD_RUN_ELSEWHERE_H

#include "session/session.h"

#include <stdio.h>

struct elsewhere_options {
    const char *on, *partition, *constraint, *slurm_args, *together, *spool;
    bool exclusive;
    uint64_t throttle, tries;
};

/* Both return the exit code. */
int run_elsewhere(struct session_options *so, const struct elsewhere_options *o, bool quiet);
int run_task(struct session_options *so, const char *task);

/* What run.c does as well. */
void run_show_start(struct session *s);
/* Shows the notes that came up since the last time, or drops them. */
void run_show_notes(struct session *s, FILE *to);
int run_show_result(struct session *s, struct error *err);
/* Where the runs are when the store was out of reach; true when they still are there. */
bool run_tell_of_spool(const struct session *s);

#endif

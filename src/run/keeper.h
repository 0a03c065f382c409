/* SPDX-License-Identifier: MIT */
/*
 * A process that outlives assay for a moment: when assay is killed in a way that it cannot catch,
 * the keeper ends the servers that were running, so that the run that is resumed finds their ports
 * free.  It holds the other end of a pipe and learns of the death by its closing.
 */
#ifndef ASSAY_RUN_KEEPER_H
#define ASSAY_RUN_KEEPER_H

#include "base/error.h"

#include <sys/types.h>

struct keeper {
    pid_t pid; /* 0: none */
    int fd;
};

int keeper_start(struct keeper *k, struct error *err);
/* A process group that is to be ended, and one that has been. */
void keeper_add(struct keeper *k, pid_t group);
void keeper_forget(struct keeper *k, pid_t group);
/* Ends nothing but the keeper. */
void keeper_stop(struct keeper *k);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A thread that does one thing at a time for its owner.
 *
 * Events are inherited by whatever the thread that opened them starts, threads included.  Commands
 * that are not to be counted (setup, prepare), or to be counted apart (a duet), are therefore
 * started by a worker that was there before the events were opened.
 */
#ifndef ASSAY_RUN_WORKER_H
#define ASSAY_RUN_WORKER_H

#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>

struct worker {
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    void (*task)(void *context);
    void *context;
    bool busy, quit;
};

/* The worker must not move in memory until worker_stop. */
int worker_start(struct worker *w, struct error *err);
void worker_begin(struct worker *w, void (*task)(void *context), void *context);
/* Waits until the task is done. */
void worker_wait(struct worker *w);
void worker_stop(struct worker *w);

#endif

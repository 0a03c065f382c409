/* SPDX-License-Identifier: MIT */
/* The threads of one side: each opens, runs and closes the variant on its own link. */
#ifndef ASSAY_MOVE_WORKERS_H
#define ASSAY_MOVE_WORKERS_H

#include "side.h"
#include "trace.h"

#include <pthread.h>

struct workers;

struct worker {
    struct workers *all;
    struct link link;
    struct counts counts;
    pthread_t thread;
    pid_t tid;
    bool started, joined;
    int code;
    struct error err;
};

struct workers {
    const struct settings *settings;
    const struct variant *variant;
    bool sender;
    struct worker *list;
    size_t count;
    int event_fd;         /* readable when a worker ended */
    atomic_bool stop;     /* the loops look at it */
    atomic_bool expected; /* an end is no failure any more */
    atomic_uint opened, ended;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool go;
    struct trace trace;
    pid_t tids[THREADS_MAX];
};

int workers_init(struct workers *w, const struct settings *s, bool sender, struct error *err);
/* Starts the threads and returns when each has opened its link, or with the words of one that
 * could not.  The links' descriptors must be there. */
int workers_open(struct workers *w, struct error *err);
void workers_go(struct workers *w);
/* The failure of one that ended before it should; 0 when there is none. */
int workers_trouble(struct workers *w, struct error *err);
/* Waits for the ends of all. */
int workers_join(struct workers *w, int timeout_ms, struct error *err);
void workers_snapshot(struct workers *w, struct snapshot *ret);
/* Only after a successful join: a thread that hangs keeps its memory until the process ends. */
void workers_done(struct workers *w);

#endif

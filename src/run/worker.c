/* SPDX-License-Identifier: MIT */
/* A thread that does one thing at a time: see worker.h. */
#include "run/worker.h"

#include <stddef.h>

static void *work(void *argument)
{
    struct worker *w = argument;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->busy && !w->quit)
            pthread_cond_wait(&w->changed, &w->lock);
        if (w->quit)
            break;
        pthread_mutex_unlock(&w->lock);
        w->task(w->context);
        pthread_mutex_lock(&w->lock);
        w->busy = false;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int worker_start(struct worker *w, struct error *err)
{
    *w = (struct worker){.busy = false};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    int r = pthread_create(&w->thread, NULL, work, w);
    return r ? error_errno(err, -r, "starting a thread") : 0;
}

void worker_begin(struct worker *w, void (*task)(void *context), void *context)
{
    pthread_mutex_lock(&w->lock);
    w->task = task;
    w->context = context;
    w->busy = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void worker_wait(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->busy)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

void worker_stop(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->quit = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

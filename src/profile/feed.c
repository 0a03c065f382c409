/* SPDX-License-Identifier: MIT */
/* See feed.h. */
#include "profile/feed.h"
#include "base/memory.h"

#include <sched.h>
#include <signal.h>

/* A recording in which maps change as often as this gains nothing from a thread. */
enum { DRAINS_MIN = 1000, SAMPLES_PER_DRAIN = 64 };

static struct chain_batch *batch_of(struct feed *f, size_t number)
{
    return &f->batches[number % FEED_BATCHES];
}

static void *look_up(void *context)
{
    struct feed *f = context;
    pthread_mutex_lock(&f->lock);
    for (;;) {
        while (f->taken == f->given && !f->is_ending)
            pthread_cond_wait(&f->changed, &f->lock);
        if (f->taken == f->given)
            break;
        struct chain_batch *batch = batch_of(f, f->taken);
        pthread_mutex_unlock(&f->lock);
        chain_batch_take(f->builder, batch);
        pthread_mutex_lock(&f->lock);
        f->taken++;
        pthread_cond_signal(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static bool has_two_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 1;
}

/* Signals are for the thread that reads. */
static void start_thread(struct feed *f)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    f->has_thread = pthread_create(&f->thread, NULL, look_up, f) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void feed_start(struct feed *f, struct chain_builder *builder, bool may_thread)
{
    *f = (struct feed){.builder = builder};
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    for (size_t i = 0; i < FEED_BATCHES; i++)
        f->batches[i].samples = memory_alloc(CHAIN_BATCH * sizeof(struct chain_sample));
    if (may_thread && has_two_processors())
        start_thread(f);
}

/* Hands the batch that is being filled over. */
static void give(struct feed *f)
{
    if (!f->has_thread) {
        chain_batch_take(f->builder, batch_of(f, f->given));
        return;
    }
    pthread_mutex_lock(&f->lock);
    f->given++;
    pthread_cond_signal(&f->changed);
    while (f->given - f->taken == FEED_BATCHES) /* the next one to fill is still in work */
        pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static void wait_until_taken(struct feed *f)
{
    pthread_mutex_lock(&f->lock);
    while (f->taken != f->given)
        pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static void end_thread(struct feed *f)
{
    if (!f->has_thread)
        return;
    pthread_mutex_lock(&f->lock);
    f->is_ending = true;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    f->has_thread = false;
}

void feed_drain(struct feed *f)
{
    if (batch_of(f, f->given)->count)
        give(f);
    if (!f->has_thread)
        return;
    wait_until_taken(f);
    if (++f->drains > DRAINS_MIN && f->drains * SAMPLES_PER_DRAIN > f->samples)
        end_thread(f);
}

void feed_add(struct feed *f, const struct perfdata_record *record,
              const struct stack_sample *sample)
{
    if (f->has_thread && !chain_is_plain(record)) {
        feed_drain(f);
        end_thread(f); /* unwinding is the work, and needs the builder */
    }
    struct chain_batch *batch = batch_of(f, f->given);
    chain_batch_add(batch, f->builder, record, sample);
    f->samples++;
    if (batch->count == CHAIN_BATCH)
        give(f);
}

void feed_stop(struct feed *f)
{
    if (!f->builder)
        return;
    feed_drain(f);
    end_thread(f);
    for (size_t i = 0; i < FEED_BATCHES; i++) {
        free(f->batches[i].samples);
        free(f->batches[i].ips);
    }
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    *f = (struct feed){0};
}

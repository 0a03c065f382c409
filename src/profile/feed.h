/* SPDX-License-Identifier: MIT */
/*
 * Samples on their way to their stacks, in batches.  Where there are two processors, a thread looks
 * one batch up while the next one is read.  The thread alone touches the stacks, the address spaces
 * and the builder's caches, except between feed_drain and the next sample.
 */
#ifndef ASSAY_PROFILE_FEED_H
#define ASSAY_PROFILE_FEED_H

#include "profile/load.h"

#include <pthread.h>

#define FEED_BATCHES 4

struct feed {
    struct chain_builder *builder;
    struct chain_batch batches[FEED_BATCHES];
    size_t given, taken; /* batches so far; those between are waiting or in work */
    bool has_thread, is_ending;
    uint64_t samples, drains;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* With a thread of its own where there are two processors, unless that is forbidden. */
void feed_start(struct feed *f, struct chain_builder *builder, bool may_thread);
void feed_add(struct feed *f, const struct perfdata_record *record,
              const struct stack_sample *sample);
/* Returns when every sample has arrived: before maps change. */
void feed_drain(struct feed *f);
/* Drains it, and ends the thread. */
void feed_stop(struct feed *f);

#endif

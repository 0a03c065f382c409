/* SPDX-License-Identifier: MIT */
/* One lock for all threads; each updates a counter of its own under it. */
#include "scale.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread volatile unsigned long counter;

static int run(struct task *t, struct error *err)
{
    (void)err;
    task_start(t);
    do {
        pthread_mutex_lock(&mutex);
        counter = counter + 1;
        pthread_mutex_unlock(&mutex);
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(
    pthread_mutex5, .summary = "lock one mutex, update a thread-local counter", .calls = "futex?",
    .note = "as processes each task has its own copy of the lock; --threads lets them contend",
    .run = run);

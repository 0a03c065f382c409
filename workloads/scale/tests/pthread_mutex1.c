/* SPDX-License-Identifier: MIT */
/* One lock for all threads, with nothing to guard. */
#include "scale.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int run(struct task *t, struct error *err)
{
    (void)err;
    task_start(t);
    do {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(
    pthread_mutex1, .summary = "lock + unlock one mutex", .calls = "futex?",
    .note = "as processes each task has its own copy of the lock; --threads lets them contend",
    .run = run);

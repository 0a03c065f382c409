/* SPDX-License-Identifier: MIT */
/* A lock for each task. */
#include "scale.h"

#include <pthread.h>

static int run(struct task *t, struct error *err)
{
    (void)err;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    task_start(t);
    do {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(pthread_mutex2, .summary = "lock + unlock a private mutex", .calls = "", .run = run);

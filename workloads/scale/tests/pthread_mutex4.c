/* SPDX-License-Identifier: MIT */
/* One lock for all threads; what is updated under it stays on the CPU. */
#include "scale.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int run(struct task *t, struct error *err)
{
    (void)err;
    volatile unsigned long counter = 0;
    task_start(t);
    do {
        pthread_mutex_lock(&mutex);
        counter = counter + 1;
        pthread_mutex_unlock(&mutex);
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(
    pthread_mutex4, .summary = "lock one mutex, update a counter on the task's stack",
    .calls = "futex?",
    .note = "as processes each task has its own copy of the lock; --threads lets them contend",
    .run = run);

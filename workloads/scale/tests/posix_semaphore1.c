/* SPDX-License-Identifier: MIT */
/* A semaphore that nobody else wants: no system call at all. */
#include "scale.h"

#include <semaphore.h>

static int run(struct task *t, struct error *err)
{
    sem_t semaphore;
    if (sem_init(&semaphore, 0, 1) < 0)
        return task_failed(err, "sem_init");
    task_start(t);
    do {
        if (sem_wait(&semaphore) < 0 || sem_post(&semaphore) < 0)
            return task_failed(err, "semaphore");
    } while (task_count(t, 1));
    sem_destroy(&semaphore);
    return 0;
}

SCALE_TEST(posix_semaphore1, .summary = "wait + post a private POSIX semaphore", .calls = "",
           .run = run);

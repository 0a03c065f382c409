/* SPDX-License-Identifier: MIT */
/*
 * The seed's rule, on purpose: a node is freed as soon as it was taken out, while others may still
 * read it.  Built with AddressSanitizer in every build; it must not end well.
 */
#ifndef QUEUE_STEPS
#define QUEUE_STEPS
#endif
#include "../../../workloads/queue/ms.h"

#include <pthread.h>
#include <sched.h>

static struct ms *queue;

void queue_step(void)
{
    static __thread uint64_t seed;
    seed = (seed + (uint64_t)(uintptr_t)&seed) * 6364136223846793005ull + 1442695040888963407ull;
    if ((seed >> 40) % 8 == 0)
        sched_yield();
}

static void *work(void *argument)
{
    (void)argument;
    struct ms_thread *t = aligned_alloc(64, sizeof(*t));
    ms_join(queue, t);
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t value = i;
        ms_push(queue, t, &value, 8);
        ms_try_pop(queue, t, &value, 8);
    }
    ms_leave(queue, t);
    free(t);
    return NULL;
}

int main(void)
{
    pthread_t ids[4];
    queue = aligned_alloc(64, sizeof(*queue));
    nodes_init(&queue->nodes, NODES_MALLOC, 8, 0);
    ms_init(queue, RECLAIM_HAZARD, false, 1);
    queue->reclaim.kind = (enum reclaim_kind)3; /* no protection, no waiting */
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&ids[i], NULL, work, NULL);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(ids[i], NULL);
    ms_done(queue);
    free(queue);
    return 0;
}

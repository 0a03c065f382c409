/* SPDX-License-Identifier: MIT */
/* See parallel.h. */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct shared {
    void (*job)(void *context, size_t index, size_t who);
    void *context;
    size_t count;
    atomic_size_t next; /* relaxed: each value is taken once, results are read after the joins */
};

struct part {
    struct shared *shared;
    size_t who;
    pthread_t thread;
};

size_t parallel_width(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : count > PARALLEL_WIDTH_MAX ? PARALLEL_WIDTH_MAX : (size_t)count;
}

static void *work(void *argument)
{
    struct part *part = argument;
    struct shared *s = part->shared;
    for (;;) {
        size_t index = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
        if (index >= s->count)
            return NULL;
        s->job(s->context, index, part->who);
    }
}

void parallel_each(size_t count, size_t width, void (*job)(void *context, size_t index, size_t who),
                   void *context)
{
    struct shared shared = {.job = job, .context = context, .count = count};
    struct part parts[PARALLEL_WIDTH_MAX] = {{.shared = &shared}};
    size_t started = 1;
    width = width < PARALLEL_WIDTH_MAX ? width : PARALLEL_WIDTH_MAX;
    for (; started < width && started < count; started++) {
        parts[started] = (struct part){.shared = &shared, .who = started};
        if (pthread_create(&parts[started].thread, NULL, work, &parts[started]) != 0)
            break;
    }
    work(&parts[0]);
    for (size_t i = 1; i < started; i++)
        pthread_join(parts[i].thread, NULL);
}

/* SPDX-License-Identifier: MIT */
/* waits COUNT MS: a thread that sleeps COUNT times for MS milliseconds in `doze`, while the main
 * thread waits for it. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static long count, milliseconds;

__attribute__((noinline)) void doze(void);

void doze(void)
{
    struct timespec t = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
    nanosleep(&t, NULL);
    __asm__ volatile("" ::: "memory"); /* no tail call: doze stays on the stack */
}

static void *sleeper(void *unused)
{
    for (long i = 0; i < count; i++)
        doze();
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    count = argc > 1 ? atol(argv[1]) : 1;
    milliseconds = argc > 2 ? atol(argv[2]) : 10;
    pthread_create(&thread, NULL, sleeper, NULL);
    pthread_join(thread, NULL);
    return 0;
}

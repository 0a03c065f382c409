/* SPDX-License-Identifier: MIT */
/*
 * load FILE MILLISECONDS: a thread for each CPU, 30 calls deep, runs until it has used that much
 * CPU time; a child is forked now and then.  The CPU time of all of it, in nanoseconds, goes to
 * FILE, so that what a recorder used itself can be told from the load.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 30
#define THREADS_MAX 64

static uint64_t wanted_ns;

static uint64_t thread_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) static unsigned work(unsigned depth, unsigned seed)
{
    volatile unsigned sum = seed;
    if (depth)
        sum = work(depth - 1, seed + depth) + depth;
    else
        for (unsigned i = 0; i < 20000; i++)
            sum = sum * 1664525u + 1013904223u;
    return sum;
}

static void *spin(void *unused)
{
    unsigned sum = 1;
    while (thread_cpu_ns() < wanted_ns)
        sum = work(DEPTH, sum);
    return unused;
}

static void fork_some(void)
{
    for (unsigned i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0)
            execl("/bin/true", "true", (char *)NULL);
        waitpid(pid, NULL, 0);
    }
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    if (argc < 3)
        return 2;
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    if (count < 1 || count > THREADS_MAX)
        count = THREADS_MAX;
    wanted_ns = strtoull(argv[2], NULL, 10) * 1000000u;
    fork_some();
    for (long i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, spin, NULL);
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    FILE *file = fopen(argv[1], "w");
    if (!file)
        return 1;
    double total = 0;
    for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++) {
        struct rusage usage;
        getrusage(who, &usage);
        total += seconds(usage.ru_utime) + seconds(usage.ru_stime);
    }
    fprintf(file, "%.0f\n", total * 1e9);
    return fclose(file) ? 1 : 0;
}

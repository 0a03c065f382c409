/* SPDX-License-Identifier: MIT */
/*
 * What profiles are tried on: processes and threads that spend known parts of their time in known
 * functions.  family MODE MILLISECONDS:
 *   shares   six parts in `six`, three in `three`, one in `one`, called over `outer`
 *   threads  three threads with names of their own
 *   forks    children, one of which executes this program again under another name
 *   mayfly   children that are killed or exit while they run
 *   deep     recursion, forty calls deep
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static volatile unsigned long sink;

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

#define SPEND(name, factor)                               \
    NOINLINE static void name(double ms)                  \
    {                                                     \
        for (double end = cpu_ms() + ms; cpu_ms() < end;) \
            for (int i = 0; i < 20000; i++)               \
                sink = sink * factor + (unsigned long)i;  \
    }

SPEND(six, 31) /* another factor each, or compilers merge them */
SPEND(three, 37)
SPEND(one, 41)
SPEND(child_work, 43)
SPEND(short_work, 47)

NOINLINE static void outer(double ms)
{
    six(ms * 0.6);
    three(ms * 0.3);
    one(ms * 0.1);
    sink++;
}

NOINLINE static void shares(double ms)
{
    for (int i = 0; i < 10; i++)
        outer(ms / 10);
}

struct worker {
    const char *name;
    void (*work)(double ms);
    double ms;
};

static void *run_worker(void *argument)
{
    struct worker *w = argument;
    prctl(PR_SET_NAME, w->name);
    w->work(w->ms);
    return NULL;
}

static void run_threads(double ms)
{
    struct worker workers[] = {
        {"busy", six, ms * 0.6}, {"medium", three, ms * 0.3}, {"lazy", one, ms * 0.1}};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, run_worker, &workers[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

static void run_forks(const char *self, double ms)
{
    char text[32];
    snprintf(text, sizeof(text), "%g", ms / 2);
    if (fork() == 0) {
        child_work(ms / 4);
        _exit(0);
    }
    if (fork() == 0) {
        char *argv[] = {(char *)"second-name", (char *)"shares", text, NULL};
        execv(self, argv);
        _exit(127);
    }
    one(ms / 4);
    while (wait(NULL) > 0)
        ;
}

static void run_mayflies(double ms)
{
    for (double left = ms; left > 0; left -= 10) {
        pid_t pid = fork();
        if (pid == 0) {
            child_work(8);
            if ((long)left % 20 < 10)
                kill(getpid(), SIGKILL);
            _exit(3);
        }
        short_work(2);
        waitpid(pid, NULL, 0);
    }
}

NOINLINE static void deep(int left, double ms)
{
    if (left > 0)
        deep(left - 1, ms);
    else
        six(ms);
    sink++;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "shares";
    double ms = argc > 2 ? atof(argv[2]) : 500;
    if (strcmp(mode, "shares") == 0)
        shares(ms);
    else if (strcmp(mode, "threads") == 0)
        run_threads(ms);
    else if (strcmp(mode, "forks") == 0)
        run_forks("/proc/self/exe", ms);
    else if (strcmp(mode, "mayfly") == 0)
        run_mayflies(ms);
    else if (strcmp(mode, "deep") == 0)
        deep(40, ms);
    else
        return 2;
    return 0;
}

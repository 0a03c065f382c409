/* SPDX-License-Identifier: MIT */
/*
 * Pipelines of threads and processes with a planted cost, for predictions of what would be without
 * it: `pipelines CASE` has the cost, `pipelines CASE without` does not.  The cost is the function
 * planted(), or the sleep in planted_sleep().
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int without;

/* About a millisecond for each unit on a machine of 2020. */
static void burn(unsigned units)
{
    for (volatile unsigned long i = 0; i < units * 600000UL; i++)
        ;
}

__attribute__((noinline)) static void planted(unsigned units)
{
    if (!without)
        for (volatile unsigned long i = 0; i < units * 600000UL; i++)
            ;
}

__attribute__((noinline)) static void planted_sleep(unsigned units)
{
    struct timespec t = {.tv_nsec = units * 1000000L};
    if (!without)
        nanosleep(&t, NULL);
}

/* A queue of a few items between two threads. */
enum { ITEMS = 40, ROOM = 4 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int queued;

static void put(void)
{
    pthread_mutex_lock(&lock);
    while (queued == ROOM)
        pthread_cond_wait(&changed, &lock);
    queued++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void take(void)
{
    pthread_mutex_lock(&lock);
    while (queued == 0)
        pthread_cond_wait(&changed, &lock);
    queued--;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

/* Stages of the queue: the first makes, the second uses. */
static unsigned make_own, make_planted, use_own, use_planted;

static void *makes(void *unused)
{
    for (int i = 0; i < ITEMS; i++) {
        burn(make_own);
        planted(make_planted);
        put();
    }
    return unused;
}

static void two_stages(unsigned own1, unsigned planted1, unsigned own2, unsigned planted2)
{
    pthread_t maker;
    make_own = own1, make_planted = planted1, use_own = own2, use_planted = planted2;
    pthread_create(&maker, NULL, makes, NULL);
    for (int i = 0; i < ITEMS; i++) {
        take();
        burn(use_own);
        planted(use_planted);
    }
    pthread_join(maker, NULL);
}

/* Two processes with a pipe between. */
static void over_pipe(unsigned producer_planted, unsigned consumer_planted)
{
    int ends[2];
    char block[65536] = {0};
    if (pipe(ends) < 0)
        exit(1);
    if (fork() == 0) {
        for (int i = 0; i < ITEMS; i++) {
            burn(1);
            planted(producer_planted);
            if (write(ends[1], block, sizeof(block)) < 0)
                _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got = 1, all = 0; got > 0; all += got) {
        got = read(ends[0], block, sizeof(block));
        if (all / (ssize_t)sizeof(block) == (all + got) / (ssize_t)sizeof(block))
            continue;
        burn(1);
        planted(consumer_planted);
    }
    wait(NULL);
}

struct part {
    unsigned own, planted, sleep;
};

static void *works(void *context)
{
    const struct part *p = context;
    burn(p->own);
    planted(p->planted);
    if (p->sleep)
        planted_sleep(p->sleep);
    return NULL;
}

/* Joins two threads with their parts of the work. */
static void fork_join(struct part a, struct part b)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, works, &a);
    pthread_create(&threads[1], NULL, works, &b);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

static void *convoy(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        burn(1);
        planted(2);
        pthread_mutex_unlock(&lock);
        burn(1);
    }
    return unused;
}

static void *writes(void *unused)
{
    char name[] = "/tmp/assay-pipelines-XXXXXX", block[4096] = {0};
    int fd = mkstemp(name);
    unlink(name);
    for (int i = 0; i < 5; i++)
        if (write(fd, block, sizeof(block)) < 0 || fsync(fd) < 0)
            exit(1);
    close(fd);
    return unused;
}

static void io_behind_compute(void)
{
    pthread_t writer;
    pthread_create(&writer, NULL, writes, NULL);
    burn(60);
    planted(40);
    pthread_join(writer, NULL);
}

static void sleeps(void)
{
    for (int i = 0; i < 5; i++) {
        burn(8);
        planted_sleep(10);
    }
}

static void two_threads(void *(*f)(void *))
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, f, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    int number = argc > 1 ? atoi(argv[1]) : 0;
    without = argc > 2 && strcmp(argv[2], "without") == 0;
    switch (number) {
    case 1: /* the producer is the slow one */
        over_pipe(3, 0);
        return 0;
    case 2: /* the consumer is */
        over_pipe(0, 3);
        return 0;
    case 3: /* a straggler */
        fork_join((struct part){40, 60, 0}, (struct part){40, 0, 0});
        return 0;
    case 4: /* the other one: nobody waits for it */
        fork_join((struct part){100, 0, 0}, (struct part){20, 50, 0});
        return 0;
    case 5:
        two_threads(convoy);
        return 0;
    case 6: /* the first stage is the slow one, up to a point */
        two_stages(1, 3, 2, 0);
        return 0;
    case 7: /* the cost is in the quick stage */
        two_stages(4, 0, 1, 2);
        return 0;
    case 8:
        io_behind_compute();
        return 0;
    case 9:
        sleeps();
        return 0;
    case 10: /* a sleep beside work that takes longer */
        fork_join((struct part){120, 0, 0}, (struct part){20, 0, 50});
        return 0;
    default:
        fprintf(stderr, "usage: pipelines CASE [without]; CASE: 1 to 10\n");
        return 2;
    }
}

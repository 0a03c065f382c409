/* SPDX-License-Identifier: MIT */
/*
 * lively SECONDS: threads that are known by their names.  "burner" runs in `burn` and "caller" in
 * read(2) of /dev/zero; "dozer" sleeps 5 ms at a time, "piper" waits for bytes in a pipe that dozer
 * writes, and "sleeper" does nothing at all.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static int ends[2];
static volatile unsigned long turns;

__attribute__((noinline)) void burn(void);

void burn(void)
{
    for (int i = 0; i < 1000000; i++)
        turns++;
}

static void *burner(void *unused)
{
    prctl(PR_SET_NAME, "burner");
    for (;;)
        burn();
    return unused;
}

static void *caller(void *unused)
{
    static char room[1 << 20];
    int fd = open("/dev/zero", O_RDONLY);
    prctl(PR_SET_NAME, "caller");
    while (read(fd, room, sizeof(room)) > 0)
        ;
    return unused;
}

static void *dozer(void *unused)
{
    struct timespec pause_time = {.tv_nsec = 5000000};
    prctl(PR_SET_NAME, "dozer");
    while (write(ends[1], "x", 1) == 1)
        nanosleep(&pause_time, NULL);
    return unused;
}

static void *piper(void *unused)
{
    char byte;
    prctl(PR_SET_NAME, "piper");
    while (read(ends[0], &byte, 1) == 1)
        ;
    return unused;
}

static void *sleeper(void *unused)
{
    prctl(PR_SET_NAME, "sleeper");
    for (;;)
        pause();
    return unused;
}

int main(int argc, char **argv)
{
    static void *(*const all[])(void *) = {burner, caller, dozer, piper, sleeper};
    if (pipe(ends) < 0)
        return 1;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, all[i], NULL))
            return 1;
    }
    sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    return 0;
}

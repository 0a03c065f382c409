/* SPDX-License-Identifier: MIT */
/*
 * planted CAUSE OPS: does OPS operations and, in each, what makes it slower than `base` for a
 * reason that is known:
 *
 *   base     mixes numbers
 *   far      and fills much memory before       cache    and reads it, where no cache holds it
 *   syscall  and reads from the kernel          copy     and copies a buffer
 *   order    and branches as expected       disorder and branches as nobody can expect
 *   free     two threads, each with pauses      lock     the same, the pauses under one lock
 *
 * Reports the operations as the metric `ops`.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FAR_WORDS ((size_t)8 << 20) /* 64 MiB: beyond last-level caches of most machines */
#define COPY_BYTES ((size_t)64 << 10)
#define STEPS 256
#define PARTS 1024 /* more than a branch predictor remembers */

static uint64_t *far_memory;
static char *copy_from, *copy_to;
static char pattern[PARTS * STEPS];
static int zero_fd;
static long operations;
static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;

#define APART __attribute__((noinline))

APART uint64_t mix_numbers(uint64_t x);
APART uint64_t walk_far(uint64_t x);
APART uint64_t follow_pattern(const char *steps);
APART void ask_kernel(void);
APART void copy_again(void);
APART void hold_still(void);
APART void hold_locked(void);

uint64_t mix_numbers(uint64_t x)
{
    for (int i = 0; i < 600; i++)
        x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL + 1;
    return x;
}

uint64_t walk_far(uint64_t x)
{
    /* Each address depends on what was read before. */
    for (int i = 0; i < 24; i++)
        x = x * 0x9e3779b97f4a7c15ULL + far_memory[(x >> 20) % FAR_WORDS] + 1;
    return x;
}

/* As many instructions in any order of the steps. */
uint64_t follow_pattern(const char *steps)
{
    uint64_t taken = 0;
    for (int i = 0; i < STEPS; i++)
        if (steps[i])
            __asm__ volatile("nop" : "+r"(taken));
        else
            __asm__ volatile("nop; nop" : "+r"(taken));
    return taken;
}

static void make_pattern(int in_disorder)
{
    uint64_t x = 1;
    memset(pattern, 1, sizeof(pattern) / 2);
    for (size_t i = sizeof(pattern) - 1; in_disorder && i > 0; i--) {
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
        size_t other = (x >> 33) % (i + 1);
        char step = pattern[i];
        pattern[i] = pattern[other];
        pattern[other] = step;
    }
}

void ask_kernel(void)
{
    char bytes[256];
    for (int i = 0; i < 5; i++)
        if (pread(zero_fd, bytes, sizeof(bytes), 0) < 0)
            abort();
}

void copy_again(void)
{
    memcpy(copy_to, copy_from, COPY_BYTES);
    __asm__ volatile("" ::"r"(copy_to) : "memory");
}

void hold_still(void)
{
    struct timespec t = {.tv_nsec = 200 * 1000};
    nanosleep(&t, NULL);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

void hold_locked(void)
{
    pthread_mutex_lock(&the_lock);
    hold_still();
    pthread_mutex_unlock(&the_lock);
}

static void *pause_free(void *unused)
{
    for (long i = 0; i < operations; i++)
        hold_still();
    return unused;
}

static void *pause_locked(void *unused)
{
    for (long i = 0; i < operations; i++)
        hold_locked();
    return unused;
}

static void in_two_threads(void *(*work)(void *))
{
    pthread_t other;
    pthread_create(&other, NULL, work, NULL);
    work(NULL);
    pthread_join(other, NULL);
}

static void in_one_thread(const char *cause)
{
    int far = !strcmp(cause, "cache"), kernel = !strcmp(cause, "syscall");
    int copy = !strcmp(cause, "copy"), steps = !!strstr(cause, "order");
    uint64_t x = 1;
    for (long i = 0; i < operations; i++) {
        x = mix_numbers(x);
        if (far)
            x = walk_far(x);
        if (kernel)
            ask_kernel();
        if (copy)
            copy_again();
        if (steps)
            x += follow_pattern(pattern + i % PARTS * STEPS);
    }
    printf("%d\n", x == 0);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const char *cause = argv[1], *metrics = getenv("ASSAY_METRICS_FD");
    operations = atol(argv[2]);
    zero_fd = open("/dev/zero", O_RDONLY);
    far_memory = malloc(FAR_WORDS * sizeof(*far_memory));
    copy_from = malloc(COPY_BYTES);
    copy_to = malloc(COPY_BYTES);
    if (zero_fd < 0 || !far_memory || !copy_from || !copy_to)
        return 1;
    make_pattern(!strcmp(cause, "disorder"));
    memset(copy_from, 1, COPY_BYTES);
    memset(copy_to, 2, COPY_BYTES);
    if (!strcmp(cause, "free") || !strcmp(cause, "lock")) {
        in_two_threads(cause[0] == 'l' ? pause_locked : pause_free);
    } else {
        if (!strcmp(cause, "far") || !strcmp(cause, "cache"))
            memset(far_memory, 3, FAR_WORDS * sizeof(*far_memory));
        in_one_thread(cause);
    }
    if (metrics)
        dprintf(atoi(metrics), "assay.metric ops %ld op\n", operations);
    return 0;
}

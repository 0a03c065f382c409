/* SPDX-License-Identifier: MIT */
/*
 * What an operation takes in the kernel, counted without assay: eight of the tests of assay-scale,
 * written again around a counter of their own.  bench/kernel-tests compares.
 *
 *   ops TEST COUNT MAPPINGS        prints the kernel's instructions for each operation
 *
 * What an operation takes may depend on how many mappings the process has: it has that many more.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BIG_BYTES = 128 << 20, PAGE_BYTES = 4096 };

static int counter = -1;
static uint64_t count; /* of operations */

static void must(int good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static void start(void)
{
    must(ioctl(counter, PERF_EVENT_IOC_ENABLE, 0) == 0, "enable");
}

static void stop(void)
{
    must(ioctl(counter, PERF_EVENT_IOC_DISABLE, 0) == 0, "disable");
}

static void getppid1(void)
{
    start();
    for (uint64_t i = 0; i < count; i++)
        syscall(SYS_getppid);
    stop();
}

static void brk1(void)
{
    free(malloc(PAGE_BYTES)); /* there is a heap, which grows and shrinks */
    char *low = sbrk(0), *high = low + PAGE_BYTES;
    start();
    for (uint64_t i = 0; i < count; i += 2)
        must(brk(high) == 0 && brk(low) == 0, "brk");
    stop();
}

static char *map_big(void)
{
    void *memory =
        mmap(NULL, BIG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED, "mmap");
    return memory;
}

static void mmap1(void)
{
    start();
    for (uint64_t i = 0; i < count; i++)
        must(munmap(map_big(), BIG_BYTES) == 0, "munmap");
    stop();
}

static void page_fault1(void)
{
    start();
    for (uint64_t i = 0; i < count;) {
        char *memory = map_big();
        for (size_t at = 0; at < BIG_BYTES && i < count; at += PAGE_BYTES, i++)
            *(volatile char *)(memory + at) = 0;
        must(munmap(memory, BIG_BYTES) == 0, "munmap");
    }
    stop();
}

static void pipe1(void)
{
    int ends[2];
    char byte = 0;
    must(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    start();
    for (uint64_t i = 0; i < count; i++)
        must(write(ends[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1, "a byte");
    stop();
}

static void open1(void)
{
    char path[] = "/tmp/ops.XXXXXX";
    close(mkstemp(path));
    start();
    for (uint64_t i = 0; i < count; i++)
        must(close(open(path, O_RDWR)) == 0, "open");
    stop();
    unlink(path);
}

static void unlink1(void)
{
    char path[] = "/tmp/ops.XXXXXX";
    close(mkstemp(path));
    unlink(path);
    start();
    for (uint64_t i = 0; i < count; i++)
        must(close(open(path, O_RDWR | O_CREAT, 0600)) == 0 && unlink(path) == 0, "unlink");
    stop();
}

static void context_switch1(void)
{
    int to[2], from[2];
    char byte = 0;
    must(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0, "pipe2");
    pid_t partner = fork();
    if (partner == 0) {
        close(to[1]);
        while (read(to[0], &byte, 1) == 1 && write(from[1], &byte, 1) == 1)
            continue;
        _exit(0);
    }
    close(to[0]);
    start();
    for (uint64_t i = 0; i < count; i += 2)
        must(write(to[1], &byte, 1) == 1 && read(from[0], &byte, 1) == 1, "a byte");
    stop();
    close(to[1]);
    waitpid(partner, NULL, 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {{"getppid1", getppid1}, {"brk1", brk1},
             {"mmap1", mmap1},       {"page_fault1", page_fault1},
             {"pipe1", pipe1},       {"open1", open1},
             {"unlink1", unlink1},   {"context_switch1", context_switch1}};

/* None is merged with its neighbour: every second one may be read. */
static void map_more(unsigned long mappings)
{
    for (unsigned long i = 0; i < mappings; i++)
        must(mmap(NULL, PAGE_BYTES, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                  0) != MAP_FAILED,
             "mmap");
}

int main(int argc, char **argv)
{
    struct perf_event_attr attr = {.size = sizeof attr,
                                   .type = PERF_TYPE_HARDWARE,
                                   .config = PERF_COUNT_HW_INSTRUCTIONS,
                                   .disabled = 1,
                                   .inherit = 1,
                                   .exclude_user = 1};
    uint64_t value;
    count = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    if (count)
        map_more(strtoul(argv[3], NULL, 10));
    for (size_t i = 0; count && i < sizeof tests / sizeof tests[0]; i++) {
        if (strcmp(argv[1], tests[i].name) != 0)
            continue;
        counter = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        must(counter >= 0, "perf_event_open");
        tests[i].run();
        must(read(counter, &value, sizeof value) == (ssize_t)sizeof value, "read");
        printf("%.3f\n", (double)value / (double)count);
        return 0;
    }
    fprintf(stderr, "usage: ops TEST COUNT MAPPINGS\n");
    return 2;
}

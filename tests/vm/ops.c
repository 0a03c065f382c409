/* SPDX-License-Identifier: MIT */
/*
 * What an operation takes in the kernel, counted without assay: eight of the tests of assay-scale,
 * written again around a counter of their own.  bench/kernel-tests compares.
 *
 *   ops TEST COUNT                 prints the kernel's instructions for each operation
 *   ops -- COMMAND [ARGUMENT…]     prints the kernel's instructions of a command, from its exec on
 *
 * What an operation takes may depend on which mappings the process has; the second way counts those
 * of assay-scale in its own process.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
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

static void run_command(char **argv)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        must(freopen("/dev/null", "w", stdout) != NULL, "/dev/null");
        execv(argv[0], argv);
        _exit(127);
    }
    must(child > 0 && waitpid(child, &status, 0) == child && status == 0, argv[0]);
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
    bool is_command = argc > 2 && strcmp(argv[1], "--") == 0;
    void (*run)(void) = NULL;
    count = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    for (size_t i = 0; count && i < sizeof tests / sizeof tests[0]; i++)
        if (strcmp(argv[1], tests[i].name) == 0)
            run = tests[i].run;
    if (!is_command && !run) {
        fprintf(stderr, "usage: ops TEST COUNT, or ops -- COMMAND\n");
        return 2;
    }
    if (is_command)
        run_command(argv + 2); /* the first one finds its pages cold */
    attr.enable_on_exec = is_command;
    counter = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    must(counter >= 0, "perf_event_open");
    if (is_command)
        run_command(argv + 2);
    else
        run();
    must(read(counter, &value, sizeof value) == (ssize_t)sizeof value, "read");
    printf("%.3f\n", (double)value / (is_command ? 1 : (double)count));
    return 0;
}

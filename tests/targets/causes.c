/* SPDX-License-Identifier: MIT */
/*
 * Known causes for monitors to find:
 *
 *   causes calls N     exactly N getppid calls
 *   causes wakes N     a thread waits in eventfd_read exactly N times, each until it is woken
 *   causes locks N     a thread finds the lock of a file taken exactly N times, when it writes
 *
 * The last two report how long at least and at most these waits took, `low` and `high` in ms, by
 * the clock that the kernel's records have, too.  What is to happen is awaited, never timed: a
 * thread waits when /proc says so.  Exit code 77: this machine does not allow it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HOLD_NS = 5000000 };

static _Atomic long consumed;
static _Atomic pid_t waiter;
static _Atomic uint64_t high_ns;
static uint64_t low_ns;
static int counter_fd, file_fd;
static char *page;

static void give_up(const char *what)
{
    fprintf(stderr, "causes: %s: %s\n", what, strerror(errno));
    exit(77);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void pause_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* Waits until the thread is in the state and has left its CPU more often than before. */
static void await_state(char state, long *switches)
{
    for (;;) {
        char path[64], text[4096], found = 0;
        long count = 0;
        snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)waiter);
        int fd = waiter ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
        if (fd >= 0)
            close(fd);
        if (got > 0) {
            text[got] = '\0';
            const char *s = strstr(text, "\nState:"),
                       *v = strstr(text, "\nvoluntary_ctxt_switches:");
            if (!s || !v || sscanf(s, "\nState: %c", &found) != 1 ||
                sscanf(v, "\nvoluntary_ctxt_switches: %ld", &count) != 1)
                give_up(path);
        }
        if (found == state && count > *switches) {
            *switches = count;
            return;
        }
        pause_ns(500000);
    }
}

static void *reads(void *context)
{
    long count = *(long *)context;
    waiter = (pid_t)syscall(SYS_gettid);
    for (long i = 0; i < count; i++) {
        uint64_t value, from_ns = now_ns();
        if (read(counter_fd, &value, sizeof(value)) != sizeof(value))
            abort();
        high_ns += now_ns() - from_ns;
        consumed = i + 1;
    }
    return NULL;
}

static void wakes(long count)
{
    pthread_t thread;
    long switches = 0;
    counter_fd = eventfd(0, EFD_CLOEXEC);
    if (counter_fd < 0 || pthread_create(&thread, NULL, reads, &count) != 0)
        give_up("a thread");
    for (long i = 0; i < count; i++) {
        while (consumed != i)
            pause_ns(500000);
        await_state('S', &switches);
        uint64_t from_ns = now_ns(), one = 1;
        pause_ns(HOLD_NS);
        low_ns += now_ns() - from_ns;
        if (write(counter_fd, &one, sizeof(one)) != sizeof(one))
            abort();
    }
    pthread_join(thread, NULL);
}

/* Takes the file's lock and then faults on a page that nobody has filled in. */
static void *holds(void *context)
{
    (void)context;
    if (pwrite(file_fd, page, 1, 0) != 1)
        abort();
    return NULL;
}

static void *contends(void *context)
{
    (void)context;
    char byte = 1;
    waiter = (pid_t)syscall(SYS_gettid);
    uint64_t from_ns = now_ns();
    if (pwrite(file_fd, &byte, 1, 0) != 1)
        abort();
    high_ns += now_ns() - from_ns;
    return NULL;
}

static int watch_page(size_t size)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (fd < 0)
        give_up("userfaultfd");
    struct uffdio_api api = {.api = UFFD_API};
    page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {.range = {(uintptr_t)page, size},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (page == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) < 0 ||
        ioctl(fd, UFFDIO_REGISTER, &range) < 0)
        give_up("userfaultfd");
    return fd;
}

static void locks(long count)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    int fault_fd = watch_page(size);
    char *content = calloc(1, size);
    file_fd = memfd_create("contended", MFD_CLOEXEC);
    if (file_fd < 0 || !content)
        give_up("a file in memory");
    for (long i = 0; i < count; i++) {
        pthread_t holder, contender;
        struct uffd_msg message;
        long switches = 0;
        waiter = 0;
        madvise(page, size, MADV_DONTNEED);
        if (pthread_create(&holder, NULL, holds, NULL) != 0 ||
            poll(&(struct pollfd){.fd = fault_fd, .events = POLLIN}, 1, -1) != 1 ||
            read(fault_fd, &message, sizeof(message)) != sizeof(message) ||
            pthread_create(&contender, NULL, contends, NULL) != 0)
            give_up("a fault");
        await_state('D', &switches);
        uint64_t from_ns = now_ns();
        pause_ns(HOLD_NS);
        low_ns += now_ns() - from_ns;
        struct uffdio_copy copy = {.dst = (uintptr_t)page, .src = (uintptr_t)content, .len = size};
        if (ioctl(fault_fd, UFFDIO_COPY, &copy) < 0)
            abort();
        pthread_join(holder, NULL);
        pthread_join(contender, NULL);
    }
    free(content);
}

static void report(void)
{
    const char *number = getenv("ASSAY_METRICS_FD");
    if (number)
        dprintf(atoi(number), "assay.metric low %.9f ms\nassay.metric high %.9f ms\n",
                (double)low_ns / 1e6, (double)high_ns / 1e6);
}

int main(int argc, char **argv)
{
    long count = argc == 3 ? atol(argv[2]) : 0;
    if (argc == 3 && strcmp(argv[1], "calls") == 0) {
        for (long i = 0; i < count; i++)
            syscall(SYS_getppid);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "wakes") == 0)
        wakes(count);
    else if (argc == 3 && strcmp(argv[1], "locks") == 0)
        locks(count);
    else
        return 2;
    report();
    return 0;
}

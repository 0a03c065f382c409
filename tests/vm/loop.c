/* SPDX-License-Identifier: MIT */
/*
 * A program whose work is known to the instruction, to be counted in the emulated machine:
 *
 *   loop spin COUNT             COUNT turns of a loop of six instructions
 *   loop fork CHILDREN COUNT    the same in each of CHILDREN children, one after the other
 *   loop threads THREADS COUNT  the same in each of THREADS threads at once
 *   loop calls COUNT            COUNT turns of a loop with one system call (getppid)
 *   loop touch PAGES            one write to each of PAGES fresh pages
 *   loop beside COUNT CMD…      runs CMD, its word PID replaced by the number of a process that
 *                               sleeps for half a second and then spins COUNT turns
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREAD_COUNT_MAX = 64 };

/* Six instructions a turn, the turn's subs and b.ne included. */
static void spin(uint64_t count)
{
    if (count == 0)
        return;
    __asm__ volatile("1: nop\n nop\n nop\n nop\n subs %0, %0, #1\n b.ne 1b" : "+r"(count) : : "cc");
}

/* Four instructions a turn in user mode: mov, svc, subs, b.ne. */
static void calls(uint64_t count)
{
    register uint64_t turns __asm__("x19") = count;
    if (count == 0)
        return;
    __asm__ volatile("1: mov x8, %1\n svc #0\n subs %0, %0, #1\n b.ne 1b"
                     : "+r"(turns)
                     : "i"(SYS_getppid)
                     : "x0", "x8", "cc", "memory");
}

static int fork_each(uint64_t children, uint64_t count)
{
    for (uint64_t i = 0; i < children; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            spin(count);
            _exit(0);
        }
        int status;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            return 1;
    }
    return 0;
}

static void *spin_thread(void *count)
{
    spin(*(uint64_t *)count);
    return NULL;
}

static int threads(uint64_t thread_count, uint64_t count)
{
    pthread_t started[THREAD_COUNT_MAX];
    if (thread_count > THREAD_COUNT_MAX)
        return 1;
    for (uint64_t i = 0; i < thread_count; i++) {
        if (pthread_create(&started[i], NULL, spin_thread, &count) != 0)
            return 1;
    }
    for (uint64_t i = 0; i < thread_count; i++)
        pthread_join(started[i], NULL);
    return 0;
}

static int touch(uint64_t page_count)
{
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, page_count * page_size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || madvise(pages, page_count * page_size, MADV_NOHUGEPAGE) != 0)
        return 1;
    for (size_t i = 0; i < page_count; i++)
        *(volatile char *)(pages + i * page_size) = 1;
    return 0;
}

static int beside(uint64_t count, char **command)
{
    static char number[16];
    pid_t pid = fork();
    if (pid == 0) {
        usleep(500 * 1000);
        spin(count);
        _exit(0);
    }
    snprintf(number, sizeof number, "%d", (int)pid);
    for (char **word = command; *word; word++)
        *word = strcmp(*word, "PID") == 0 ? number : *word;
    execvp(command[0], command);
    return 127;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    uint64_t second = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    if (strcmp(what, "fork") == 0)
        return fork_each(first, second);
    if (strcmp(what, "threads") == 0)
        return threads(first, second);
    if (strcmp(what, "touch") == 0)
        return touch(first);
    if (strcmp(what, "beside") == 0 && argc > 3)
        return beside(first, argv + 3);
    if (strcmp(what, "spin") == 0) {
        spin(first);
    } else if (strcmp(what, "calls") == 0) {
        calls(first);
    } else {
        fprintf(stderr, "usage: loop spin|calls|touch COUNT, loop fork|threads HOW_MANY COUNT, "
                        "loop beside COUNT CMD\n");
        return 2;
    }
    return 0;
}

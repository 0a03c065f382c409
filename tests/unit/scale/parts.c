/* SPDX-License-Identifier: MIT */
/* Parts of assay-scale that need no tasks: announced calls, ticks of CPUs, the folder's keeper. */
#include "base/memory.h"
#include "base/strings.h"
#include "calls.h"
#include "cpus.h"
#include "folder.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned index_of(const char *name)
{
    for (unsigned i = 0; calls_name(i); i++)
        if (str_eq(calls_name(i), name))
            return i;
    CHECK(false);
    return 0;
}

TEST(announced_calls_are_understood)
{
    bool may_be;
    const char *announced = "read lseek/256 futex?";
    CHECK_INT(calls_announced(announced, index_of("read"), &may_be), 1);
    CHECK(!may_be);
    CHECK_INT(calls_announced(announced, index_of("lseek"), &may_be), 256);
    CHECK(!may_be);
    CHECK_INT(calls_announced(announced, index_of("futex"), &may_be), 0);
    CHECK(may_be);
    CHECK_INT(calls_announced(announced, index_of("write"), &may_be), 0);
    CHECK(!may_be);
    /* A name is not taken for the beginning of a longer one. */
    CHECK_INT(calls_announced("pread64", index_of("read"), &may_be), 0);
    CHECK_INT(calls_announced("getppid", index_of("getpid"), &may_be), 0);
    CHECK_INT(calls_announced("mmap/pages", index_of("mmap"), &may_be),
              128 * 1024 * 1024 / sysconf(_SC_PAGESIZE));
}

TEST(so_many_operations_that_all_cycles_are_whole)
{
    CHECK_INT(calls_whole_ops("getppid") >= 1000, 1);
    CHECK_INT(calls_whole_ops("read lseek/256") % 256, 0);
    CHECK_INT(calls_whole_ops("fallocate ftruncate/128") % 128, 0);
    CHECK_INT(calls_whole_ops("") >= 1000, 1);
    long pages = 128 * 1024 * 1024 / sysconf(_SC_PAGESIZE);
    CHECK_INT(calls_whole_ops("mmap/pages munmap/pages") % (uint64_t)pages, 0);
}

TEST(counts_match_only_what_was_announced)
{
    uint64_t counts[CALLS_MAX] = {0};
    struct error difference = {0};
    counts[index_of("read")] = 512;
    counts[index_of("lseek")] = 2;
    CHECK(calls_match("read lseek/256", counts, 512, &difference));
    CHECK(calls_match("read lseek/256 futex?", counts, 512, &difference));
    counts[index_of("futex")] = 99;
    CHECK(calls_match("read lseek/256 futex?", counts, 512, &difference));
    CHECK(!calls_match("read lseek/256", counts, 512, &difference));
    CHECK_CONTAINS(difference.message, "futex: 99 calls in 512 operations, not 0");
    counts[index_of("futex")] = 0;
    counts[index_of("lseek")] = 3;
    CHECK(!calls_match("read lseek/256", counts, 512, &difference));
    CHECK_CONTAINS(difference.message, "lseek: 3");
    counts[index_of("lseek")] = 2;
    counts[index_of("other")] = 1;
    CHECK(!calls_match("read lseek/256", counts, 512, &difference));
    CHECK_CONTAINS(difference.message, "other: 1");
}

TEST(ticks_are_those_of_the_cpus_asked_for)
{
    static const char stat[] = "cpu  100 0 0 200 0 0 0 7 0 0\n"
                               "cpu0 1 2 3 40 5 6 7 8 0 0\n"
                               "cpu1 10 0 0 30 0 0 0 0 0 0\n"
                               "cpu10 1000 0 0 1000 0 0 0 0 0 0\n"
                               "intr 5 5 5 5 5 5 5 5 5\n";
    struct cpu_ticks ticks;
    cpu_ticks_parse(stat, (const int[]){0}, 1, &ticks);
    CHECK_INT(ticks.all, 72);
    CHECK_INT(ticks.idle, 45);
    CHECK_INT(ticks.steal, 8);
    cpu_ticks_parse(stat, (const int[]){0, 1}, 2, &ticks);
    CHECK_INT(ticks.all, 112);
    CHECK_INT(ticks.idle, 75);
    cpu_ticks_parse("", (const int[]){0}, 1, &ticks);
    CHECK_INT(ticks.all, 0);
}

TEST(cpus_are_listed_once_each)
{
    struct cpus cpus;
    struct error err;
    CHECK_INT(cpus_init(&cpus, &err), 0);
    CHECK(cpus.count > 0);
    for (size_t i = 0; i < cpus.count; i++)
        for (size_t k = 0; k < i; k++)
            CHECK(cpus.numbers[i] != cpus.numbers[k]);
    cpus_done(&cpus);
}

static void put_file(const char *folder, const char *name)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/%s", folder, name);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    close(fd);
}

static void put_tree(const char *folder)
{
    CLEANUP(memory_freep) char *below = memory_printf("%s/below", folder);
    put_file(folder, "a");
    CHECK_INT(mkdir(below, 0700), 0);
    put_file(below, "b");
}

TEST(the_folder_goes_when_it_is_closed)
{
    struct folder f = {0};
    struct error err = {0};
    CHECK_INT(folder_open(&f, "/tmp", &err), 0);
    CLEANUP(memory_freep) char *path = memory_strdup(f.path);
    put_tree(path);
    CHECK_INT(folder_close(&f, &err), 0);
    CHECK_INT(access(path, F_OK), -1);
    CHECK_INT(folder_close(&f, &err), 0);
}

TEST(the_folder_goes_when_its_owner_is_killed)
{
    int ends[2];
    char path[512] = "";
    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct folder f = {0};
        if (folder_open(&f, "/tmp", NULL) < 0)
            _exit(1);
        put_tree(f.path);
        if (write(ends[1], f.path, strlen(f.path) + 1) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    CHECK(read(ends[0], path, sizeof(path) - 1) > 0);
    CHECK_INT(access(path, F_OK), 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 6000 && access(path, F_OK) == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    CHECK_INT(access(path, F_OK), -1);
    close(ends[0]);
    close(ends[1]);
}

TEST(the_folder_goes_when_the_keeper_was_killed)
{
    struct folder f = {0};
    struct error err = {0};
    CHECK_INT(folder_open(&f, "/tmp", &err), 0);
    CLEANUP(memory_freep) char *path = memory_strdup(f.path);
    put_tree(path);
    kill(f.keeper, SIGKILL);
    CHECK_INT(folder_close(&f, &err), 0);
    CHECK_INT(access(path, F_OK), -1);
}

TEST(a_folder_that_cannot_be_made_is_an_error)
{
    struct folder f = {0};
    struct error err = {0};
    CHECK(folder_open(&f, "/nowhere/at/all", &err) < 0);
    CHECK_CONTAINS(err.message, "--folder");
}

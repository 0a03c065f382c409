/* SPDX-License-Identifier: MIT */
/*
 * What a test of assay-scale is made of.
 *
 * A test is one file of tests/.  Its run() prepares what one task needs, calls task_start(), does
 * its operation over and over, and counts with task_count() until that says no:
 *
 *     static int run(struct task *t, struct error *err)
 *     {
 *         task_start(t);
 *         do
 *             getppid();
 *         while (task_count(t, 1));
 *         return 0;
 *     }
 *     SCALE_TEST(getppid1, .summary = "…", .calls = "getppid", .run = run);
 *
 * Every task runs it at the same time on a CPU of its own, as a process or as a thread.
 */
#ifndef SCALE_SCALE_H
#define SCALE_SCALE_H

#include "base/error.h"
#include "stage.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SCALE_MIB (1024 * 1024)
#define SCALE_BIG_BYTES (128 * SCALE_MIB) /* what the tests of memory map */
#define SCALE_BLOCK_BYTES 4096            /* what the tests of files read and write at once */
#define SCALE_FILE_BYTES SCALE_MIB        /* the files they do it in */

/* The parent of the tasks, before there are any. */
struct host {
    const char *folder; /* of this measurement alone; removed with all that is in it */
    unsigned task_count;
    bool threads;
};

struct task {
    unsigned index;
    const char *folder;
    bool threads;
    struct stage *stage;
    struct slot *slot;
    uint64_t done_ops;
    struct calls *calls; /* NULL unless system calls are counted */
};

struct scale_test {
    const char *name;
    const char *summary; /* one line, what one operation is */
    /* The system calls of one operation: "write read"; "lseek/256" is one in 256 operations,
     * "mmap/pages" one in as many as 128 MB have pages; a call that the C library may make or not,
     * or a lock makes when it is contended, ends in '?'.
     */
    const char *calls;
    const char *note;      /* a word on figures that are easily taken wrongly, or NULL */
    uint64_t memory_bytes; /* that each task touches */
    uint64_t disk_bytes;   /* that each task may fill */
    unsigned file_count;   /* that each task holds open; 0 for a few */
    /* Once, in the parent of the tasks; NULL when there is nothing to share. */
    int (*prepare)(const struct host *host, struct error *err);
    int (*run)(struct task *t, struct error *err);
};

/* Tests register themselves: the linker puts these pointers side by side. */
#define SCALE_TEST(id, ...)                                                \
    static const struct scale_test test_##id = {.name = #id, __VA_ARGS__}; \
    static const struct scale_test *const entry_##id                       \
        __attribute__((used, section("scale_tests"))) = &test_##id

/* Waits until every task is ready, then returns in all of them at once. */
void task_start(struct task *t);
/* Called by task_count for the last operation. */
void task_finish(struct task *t);

/* Counts operations; false when the task shall end.  Only the task writes `ops`; the measuring
 * process reads it, and writes `limit`, both without order: neither guards other memory. */
static inline bool task_count(struct task *t, uint64_t ops)
{
    t->done_ops += ops;
    atomic_store_explicit(&t->slot->ops, t->done_ops, memory_order_relaxed);
    if (__builtin_expect(t->done_ops < atomic_load_explicit(&t->slot->limit, memory_order_relaxed),
                         1))
        return true;
    task_finish(t);
    return false;
}

/* A new file of this task with so many zeros in it and without a name.  flags: O_DIRECT or 0. */
int task_own_file(const struct task *t, uint64_t bytes, int flags, struct error *err);
/* The same, but only as long as that, with nothing in it. */
int task_sparse_file(const struct task *t, uint64_t bytes, struct error *err);
/* The file that all tasks share, opened by this one; for tests whose prepare is the next. */
int task_shared_file(const struct task *t, int flags, struct error *err);
int scale_prepare_shared(const struct host *host, struct error *err);
int scale_prepare_shared_direct(const struct host *host, struct error *err);
/* A file that keeps its name: in the folder of all, or in one of the task's own. */
int task_named_file(const struct task *t, bool own_folder, char *path, size_t size,
                    struct error *err);

/* Where this task reads or writes when each has a place of its own in one file. */
static inline long task_offset(const struct task *t)
{
    return (long)t->index * SCALE_BLOCK_BYTES;
}

/* Loops that several tests share: they differ in what is mapped. */
int task_fault_pages(struct task *t, int map_flags, int fd, struct error *err);
int task_flush_pages(struct task *t, int map_flags, int fd, uint64_t bytes, struct error *err);

/* -1 as system calls give it, with the call's name. */
int task_failed(struct error *err, const char *call);

#endif

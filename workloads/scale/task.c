/* SPDX-License-Identifier: MIT */
/* What tests share: the start of all tasks at once, files, and loops over mapped memory. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "calls.h"
#include "scale.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct stage *stage_new(unsigned task_count, struct error *err)
{
    size_t size = sizeof(struct stage) + task_count * sizeof(struct slot);
    struct stage *s = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) {
        error_errno(err, -errno, "memory for %u tasks", task_count);
        return NULL;
    }
    s->size_bytes = size;
    s->task_count = task_count;
    return s;
}

void stage_free(struct stage *s)
{
    if (s)
        munmap(s, s->size_bytes);
}

void task_start(struct task *t)
{
    struct stage *s = t->stage;
    /* What the task prepared happens before go, as the measuring process waits for ready. */
    atomic_fetch_add_explicit(&s->ready, 1, memory_order_release);
    while (!atomic_load_explicit(&s->go, memory_order_acquire))
        syscall(SYS_futex, &s->go, FUTEX_WAIT, 0, NULL, NULL, 0);
    t->slot->start_ns = clock_now_ns();
    if (t->calls)
        calls_enable(t->calls);
}

void task_finish(struct task *t)
{
    if (t->calls)
        calls_disable(t->calls);
    t->slot->end_ns = clock_now_ns();
}

int task_failed(struct error *err, const char *call)
{
    return error_errno(err, errno ? -errno : -EIO, "%s", call);
}

/* Fills a file with zeros, block by block from memory that O_DIRECT accepts. */
static int fill(int fd, const char *path, uint64_t bytes, struct error *err)
{
    static const _Alignas(SCALE_BLOCK_BYTES) char block[SCALE_BLOCK_BYTES];
    for (uint64_t at = 0; at < bytes; at += sizeof(block))
        if (pwrite(fd, block, sizeof(block), (off_t)at) != (ssize_t)sizeof(block))
            return error_errno(err, errno ? -errno : -ENOSPC, "writing %s", path);
    return 0;
}

static int create(const char *path, uint64_t bytes, int flags, struct error *err)
{
    CLEANUP(fd_closep) int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | flags, 0600);
    if (fd < 0 && errno == EINVAL && (flags & O_DIRECT))
        return error_set(err, -EINVAL,
                         "%s: this file system does not support O_DIRECT; choose a directory on "
                         "another with --folder",
                         path);
    if (fd < 0)
        return error_errno(err, -errno, "creating %s", path);
    int code = fill(fd, path, bytes, err);
    if (code < 0)
        return code;
    int result = fd;
    fd = -1;
    return result;
}

int task_own_file(const struct task *t, uint64_t bytes, int flags, struct error *err)
{
    static _Atomic unsigned next; /* a task may want several */
    char path[512];
    snprintf(path, sizeof(path), "%s/own-%u-%u", t->folder, t->index, atomic_fetch_add(&next, 1));
    int fd = create(path, bytes, flags, err);
    unlink(path); /* where create failed there may be an empty one */
    return fd;
}

int task_sparse_file(const struct task *t, uint64_t bytes, struct error *err)
{
    int fd = task_own_file(t, 0, 0, err);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) < 0) {
        int code = task_failed(err, "ftruncate");
        close(fd);
        return code;
    }
    return fd;
}

static int prepare_shared(const struct host *host, int flags, struct error *err)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/shared", host->folder);
    uint64_t needed = (uint64_t)host->task_count * SCALE_BLOCK_BYTES;
    int fd = create(path, needed > SCALE_FILE_BYTES ? needed : SCALE_FILE_BYTES, flags, err);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}

int scale_prepare_shared(const struct host *host, struct error *err)
{
    return prepare_shared(host, 0, err);
}

int scale_prepare_shared_direct(const struct host *host, struct error *err)
{
    return prepare_shared(host, O_DIRECT, err);
}

int task_shared_file(const struct task *t, int flags, struct error *err)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/shared", t->folder);
    int fd = open(path, flags | O_CLOEXEC);
    return fd < 0 ? error_errno(err, -errno, "opening %s", path) : fd;
}

int task_named_file(const struct task *t, bool own_folder, char *path, size_t size,
                    struct error *err)
{
    if (own_folder) {
        snprintf(path, size, "%s/folder-%u", t->folder, t->index);
        if (mkdir(path, 0700) < 0)
            return error_errno(err, -errno, "creating the directory %s", path);
        snprintf(path, size, "%s/folder-%u/file", t->folder, t->index);
    } else {
        snprintf(path, size, "%s/file-%u", t->folder, t->index);
    }
    int fd = create(path, 0, 0, err);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}

int task_fault_pages(struct task *t, int map_flags, int fd, struct error *err)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *memory = NULL;
    size_t at = 0;
    task_start(t);
    do {
        if (!memory) {
            void *mapped = mmap(NULL, SCALE_BIG_BYTES, PROT_READ | PROT_WRITE, map_flags, fd, 0);
            if (mapped == MAP_FAILED)
                return task_failed(err, "mmap");
            memory = mapped;
        }
        memory[at] = 0;
        at += page_bytes;
        if (at >= SCALE_BIG_BYTES) {
            if (munmap((void *)memory, SCALE_BIG_BYTES) < 0)
                return task_failed(err, "munmap");
            memory = NULL;
            at = 0;
        }
    } while (task_count(t, 1));
    if (memory)
        munmap((void *)memory, SCALE_BIG_BYTES);
    return 0;
}

int task_flush_pages(struct task *t, int map_flags, int fd, uint64_t bytes, struct error *err)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, map_flags, fd, 0);
    if (memory == MAP_FAILED)
        return task_failed(err, "mmap");
    size_t at = 0;
    task_start(t);
    do {
        *(volatile char *)(memory + at) = 1;
        if (madvise(memory + at, page_bytes, MADV_DONTNEED) < 0)
            return task_failed(err, "madvise");
        at = at + page_bytes < bytes ? at + page_bytes : 0;
    } while (task_count(t, 1));
    munmap(memory, bytes);
    return 0;
}

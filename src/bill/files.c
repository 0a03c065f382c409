/* SPDX-License-Identifier: MIT */
/* Which files a command waits for: see files.h. */
#include "bill/files.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "profile/tasks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LOOK_EVERY_MS = 2,
    TASKS_MOST = 256,    /* that are looked at each time */
    SEEN_MOST = 1 << 18, /* of one run */
};

struct seen {
    uint64_t time_ns;
    uint32_t pid, tid, fd;
    uint32_t name;
};

struct files {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_running, must_stop;
    struct arena arena;
    struct names names;
    struct seen *seen; /* in the order of time */
    size_t count, capacity;
};

bool files_has_descriptor(int64_t call)
{
    switch (call) {
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_readv:
    case SYS_writev:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_syncfs:
    case SYS_sync_file_range:
    case SYS_fallocate:
    case SYS_ftruncate:
    case SYS_getdents64:
    case SYS_close:
    case SYS_fstat:
    case SYS_flock:
    case SYS_readahead:
        return true;
    default:
        return false;
    }
}

static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

void files_add(struct files *f, uint32_t pid, uint32_t tid, uint32_t fd, uint64_t time_ns,
               const char *name)
{
    if (f->count >= SEEN_MOST)
        return;
    uint32_t id = names_add(&f->names, &f->arena, name);
    ARRAY_PUSH(f->seen, f->count, f->capacity) = (struct seen){time_ns, pid, tid, fd, id};
}

/* "74 0x3 …": the number of the call and its arguments; "running" on a CPU. */
static void look_at_thread(struct files *f, uint32_t pid, const char *tid)
{
    char path[80], link[96], before[256], after[256], name[PATH_MAX];
    snprintf(path, sizeof(path), "/proc/%u/task/%.20s/syscall", pid, tid);
    if (!read_text(path, before, sizeof(before)))
        return;
    char *rest;
    long number = strtol(before, &rest, 10);
    unsigned long long fd = *rest == ' ' ? strtoull(rest + 1, NULL, 16) : ULLONG_MAX;
    if (rest == before || number < 0 || !files_has_descriptor(number) || fd > INT_MAX)
        return;
    uint64_t now_ns = clock_now_ns();
    snprintf(link, sizeof(link), "/proc/%u/fd/%llu", pid, fd);
    ssize_t length = readlink(link, name, sizeof(name) - 1);
    if (length <= 0 || name[0] != '/' || !read_text(path, after, sizeof(after)) ||
        !str_eq(before, after))
        return;
    name[length] = 0;
    files_add(f, pid, (uint32_t)strtoul(tid, NULL, 10), (uint32_t)fd, now_ns, name);
}

/* The process's threads, then what they started. */
static void look_at_process(struct files *f, uint32_t pid, bool is_own, unsigned *left)
{
    char path[80], children[4096];
    snprintf(path, sizeof(path), "/proc/%u/task", pid);
    DIR *tasks = opendir(path);
    const struct dirent *entry;
    while (tasks && *left && (entry = readdir(tasks))) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
            continue;
        --*left;
        if (!is_own)
            look_at_thread(f, pid, entry->d_name);
        snprintf(path, sizeof(path), "/proc/%u/task/%.20s/children", pid, entry->d_name);
        if (!read_text(path, children, sizeof(children)))
            continue;
        char *end;
        for (const char *at = children; *left; at = end) {
            unsigned long child = strtoul(at, &end, 10);
            if (end == at)
                break;
            look_at_process(f, (uint32_t)child, false, left);
        }
    }
    if (tasks)
        closedir(tasks);
}

static void *watch(void *context)
{
    struct files *f = context;
    pthread_mutex_lock(&f->lock);
    while (!f->must_stop) {
        unsigned left = TASKS_MOST;
        pthread_mutex_unlock(&f->lock);
        look_at_process(f, (uint32_t)getpid(), true, &left);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_EVERY_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_mutex_lock(&f->lock);
        if (!f->must_stop)
            pthread_cond_timedwait(&f->changed, &f->lock, &until);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

struct files *files_new(void)
{
    struct files *f = memory_zalloc(1, sizeof(*f));
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    names_init(&f->names);
    return f;
}

struct files *files_watch(void)
{
    struct files *f = files_new();
    f->is_running = pthread_create(&f->thread, NULL, watch, f) == 0;
    if (f->is_running)
        return f;
    files_free(f);
    return NULL;
}

void files_stop(struct files *f)
{
    if (!f || !f->is_running)
        return;
    pthread_mutex_lock(&f->lock);
    f->must_stop = true;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    f->is_running = false;
}

void files_free(struct files *f)
{
    if (!f)
        return;
    files_stop(f);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->changed);
    names_done(&f->names);
    arena_done(&f->arena);
    free(f->seen);
    free(f);
}

const char *files_name(const struct files *f, uint32_t pid, uint32_t tid, uint32_t fd,
                       uint64_t from_ns, uint64_t to_ns)
{
    uint32_t only = UINT32_MAX;
    bool differs = false;
    for (size_t i = 0; f && i < f->count; i++) {
        const struct seen *s = &f->seen[i];
        if (s->pid != pid || s->fd != fd)
            continue;
        if (s->tid == tid && s->time_ns >= from_ns && s->time_ns <= to_ns)
            return f->names.items[s->name];
        differs |= only != UINT32_MAX && only != s->name;
        only = s->name;
    }
    return only == UINT32_MAX || differs ? NULL : f->names.items[only];
}

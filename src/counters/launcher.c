/* SPDX-License-Identifier: MIT */
/* A small process that starts commands: see launcher.h. */
#include "counters/launcher.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Sanitizers keep memory of their own, which cannot be unmapped. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW true
#elif defined(__has_feature)
#define HAS_SHADOW (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define HAS_SHADOW false
#endif

enum {
    STACK_BYTES = 64 * 1024,
    TEXT_BYTES = 256 * 1024,
    WORDS_MAX = 4096,
    FDS_MAX = 8,
    CPU_BYTES_MAX = 1024,
    RANGES_MAX = 2048,
    SLACK_BYTES = 128 * 1024, /* that a command's start may add to the launcher's own memory */
};

enum { IDLE, ASKED, DONE };

struct range {
    uintptr_t start, end;
};

/* Lies at the same address on both sides, so that pointers into it are good on both.  The state is
 * a futex: what is written before it changes is read behind it. */
struct launch {
    uint32_t state;
    int code;
    pid_t pid;
    uint64_t start_ns;
    const char *program, *working_dir;
    char *argv[WORDS_MAX], *environment[WORDS_MAX];
    struct process_fd fds[FDS_MAX];
    size_t fd_count;
    pid_t group; /* 0: its own */
    pid_t parent;
    size_t cpu_bytes;
    char cpus[CPU_BYTES_MAX];
    struct range ranges[RANGES_MAX];
    size_t range_count;
    size_t text_used;
    char text[TEXT_BYTES];
    _Alignas(64) char stack[STACK_BYTES];
};

/* Through pointers, which are set when assay is loaded: names that are looked up at the first call
 * would be looked up in what the launcher has unmapped. */
static long (*volatile const system_call)(long number, ...) = syscall;
static int (*volatile const make_process)(int (*run)(void *), void *stack, int flags, void *context,
                                          ...) = clone;

static void change_state(struct launch *l, uint32_t state)
{
    __atomic_store_n(&l->state, state,
                     __ATOMIC_RELEASE); /* pairs with the load of the other side */
    system_call(SYS_futex, &l->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ---- the launcher's side: system calls, and nothing that was unmapped ---- */

static bool set_up(const struct launch *l)
{
    system_call(SYS_setpgid, 0, l->group);
    if (l->cpu_bytes && system_call(SYS_sched_setaffinity, 0, l->cpu_bytes, l->cpus) < 0)
        return false;
    for (size_t i = 0; i < l->fd_count; i++) {
        const struct process_fd *f = &l->fds[i];
        long r = f->fd == f->as ? system_call(SYS_fcntl, f->fd, F_SETFD, 0)
                                : system_call(SYS_dup3, f->fd, f->as, 0);
        if (r < 0)
            return false;
    }
    return !l->working_dir || system_call(SYS_chdir, l->working_dir) == 0;
}

/* The command to be, in the launcher's memory up to its exec. */
static int become_command(void *context)
{
    struct launch *l = context;
    if (set_up(l))
        system_call(SYS_execve, l->program, l->argv, l->environment);
    l->code = -errno;
    system_call(SYS_exit, 127);
    return 0;
}

static void forget_memory(const struct launch *l)
{
    for (size_t i = 0; i < l->range_count; i++)
        system_call(SYS_munmap, l->ranges[i].start, l->ranges[i].end - l->ranges[i].start);
    /* The peak becomes what is left; where that is not allowed, commands show a bit more. */
    long fd = system_call(SYS_openat, AT_FDCWD, "/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    system_call(SYS_write, fd, "5", 1);
    system_call(SYS_close, fd);
}

static _Noreturn void serve(struct launch *l)
{
    system_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    if (system_call(SYS_getppid) != l->parent) /* which was killed before that */
        system_call(SYS_exit_group, 1);
    system_call(SYS_setpgid, 0, 0); /* the terminal's signals are for assay */
    forget_memory(l);
    change_state(l, DONE);
    for (;;) {
        uint32_t state = __atomic_load_n(&l->state, __ATOMIC_ACQUIRE);
        if (state != ASKED) {
            system_call(SYS_futex, &l->state, FUTEX_WAIT, state, NULL, NULL, 0);
            continue;
        }
        struct timespec now;
        l->code = 0;
        system_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
        l->start_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
        l->pid = make_process(become_command, l->stack + STACK_BYTES,
                              CLONE_VM | CLONE_VFORK | CLONE_PARENT, l);
        if (l->pid < 0)
            l->code = -errno;
        change_state(l, DONE);
    }
}

/* ---- assay's side ---- */

static bool holds(const struct range *r, const void *address)
{
    return (uintptr_t)address >= r->start && (uintptr_t)address < r->end;
}

/* What the launcher lives in: its code, the C library, its stack and thread, what is shared. */
static bool is_needed(const struct range *r, const char *path, const char *own, const void *stack,
                      const struct launch *l)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    return *path == '[' ? !str_eq(path, "[heap]") || holds(r, &errno)
                        : str_eq(path, own) || str_has_prefix(name, "libc.") ||
                              str_has_prefix(name, "libc-") || str_has_prefix(name, "ld-") ||
                              holds(r, stack) || holds(r, &errno) || holds(r, l);
}

static bool list_ranges(struct launch *l)
{
    char own[512];
    ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
    FILE *maps = length > 0 ? fopen("/proc/self/maps", "re") : NULL;
    if (!maps)
        return false;
    own[length] = '\0';
    char line[1024];
    bool whole = true;
    uintptr_t kept_end = 0;
    while (fgets(line, sizeof(line), maps)) {
        unsigned long start, end;
        int at = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &start, &end, &at) < 2 || !at)
            continue;
        struct range r = {start, end};
        /* What has no name and follows something needed is its zeroed data. */
        if (is_needed(&r, line + at, own, &r, l) || (!line[at] && r.start == kept_end)) {
            kept_end = r.end;
            continue;
        }
        whole = whole && l->range_count < RANGES_MAX;
        if (whole)
            l->ranges[l->range_count++] = r;
    }
    fclose(maps);
    return whole;
}

/* Waits until the launcher has answered; false when it is dead. */
static bool await_done(struct launcher *l)
{
    const struct timespec patience = {.tv_sec = 1};
    for (;;) {
        uint32_t state = __atomic_load_n(&l->shared->state, __ATOMIC_ACQUIRE);
        if (state == DONE)
            return true;
        syscall(SYS_futex, &l->shared->state, FUTEX_WAIT, state, &patience, NULL, 0);
        if (__atomic_load_n(&l->shared->state, __ATOMIC_ACQUIRE) != DONE &&
            waitpid(l->pid, NULL, WNOHANG | __WALL) != 0) {
            l->pid = 0;
            return false;
        }
    }
}

uint64_t launcher_peak_bytes(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    const char *line = file_read(path, &text, NULL) == 0 ? strstr(text.data, "VmHWM:") : NULL;
    return line ? strtoull(line + strlen("VmHWM:"), NULL, 10) * 1024 : 0;
}

static bool make(struct launcher *l)
{
    if (HAS_SHADOW)
        return false;
    l->shared =
        mmap(NULL, sizeof(*l->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (l->shared == MAP_FAILED) {
        l->shared = NULL;
        return false;
    }
    if (!list_ranges(l->shared))
        return false;
    l->shared->parent = getpid();
    /* Without a signal at its end it is none of the children that are waited for. */
    long pid = syscall(SYS_clone, CLONE_FILES | CLONE_FS, NULL, NULL, NULL, NULL);
    if (pid == 0)
        serve(l->shared);
    l->pid = pid > 0 ? (pid_t)pid : 0;
    if (!l->pid || !await_done(l))
        return false;
    l->rss_bytes = launcher_peak_bytes(l->pid);
    if (l->rss_bytes)
        l->rss_bytes += SLACK_BYTES;
    return l->rss_bytes > 0;
}

bool launcher_ready(struct launcher *l)
{
    if (!l->pid && !l->failed && !make(l)) {
        launcher_done(l);
        l->failed = true;
    }
    return l->pid > 0;
}

static char *put_text(struct launch *l, const char *text)
{
    size_t size = strlen(text) + 1;
    if (size > TEXT_BYTES - l->text_used)
        return NULL;
    char *at = memcpy(l->text + l->text_used, text, size);
    l->text_used += size;
    return at;
}

static bool put_words(struct launch *l, char **to, char *const *words)
{
    size_t count = 0;
    for (; words[count]; count++)
        if (count + 1 >= WORDS_MAX || !(to[count] = put_text(l, words[count])))
            return false;
    to[count] = NULL;
    return true;
}

static bool put_request(struct launch *l, const struct process_spec *spec, const void *cpus,
                        size_t cpu_bytes)
{
    const int standard[] = {spec->stdin_fd, spec->stdout_fd, spec->stderr_fd};
    l->text_used = l->fd_count = 0;
    if (3 + spec->fd_count > FDS_MAX || cpu_bytes > CPU_BYTES_MAX)
        return false;
    for (int i = 0; i < 3; i++)
        if (standard[i] >= 0)
            l->fds[l->fd_count++] = (struct process_fd){standard[i], i};
    for (size_t i = 0; i < spec->fd_count; i++)
        l->fds[l->fd_count++] = spec->fds[i];
    l->group = spec->own_group ? 0 : getpgrp();
    l->cpu_bytes = cpu_bytes;
    if (cpu_bytes)
        memcpy(l->cpus, cpus, cpu_bytes);
    l->program = put_text(l, spec->program ? spec->program : spec->argv[0]);
    l->working_dir = spec->working_dir ? put_text(l, spec->working_dir) : NULL;
    return l->program && (l->working_dir || !spec->working_dir) &&
           put_words(l, l->argv, spec->argv) &&
           put_words(l, l->environment, spec->environment ? spec->environment : environ);
}

int launcher_spawn(struct launcher *l, const struct process_spec *spec, const void *cpus,
                   size_t cpu_bytes, pid_t *ret_pid, uint64_t *ret_start_ns)
{
    if (!put_request(l->shared, spec, cpus, cpu_bytes))
        return -E2BIG;
    change_state(l->shared, ASKED);
    if (!await_done(l))
        return -E2BIG;
    int code = l->shared->code;
    if (code < 0 && l->shared->pid > 0)
        waitpid(l->shared->pid, NULL, __WALL);
    if (code < 0)
        return code;
    *ret_pid = l->shared->pid;
    *ret_start_ns = l->shared->start_ns;
    return 0;
}

void launcher_done(struct launcher *l)
{
    if (l->pid) {
        kill(l->pid, SIGKILL);
        while (waitpid(l->pid, NULL, __WALL) < 0 && errno == EINTR)
            ;
    }
    if (l->shared)
        munmap(l->shared, sizeof(*l->shared));
    *l = (struct launcher){.failed = l->failed};
}

/* SPDX-License-Identifier: MIT */
/* See calls.h. */
#include "calls.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "scale.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OPS_MIN = 5120 };
#define PAGES_WORD "pages"

/* Newer architectures lack the old forms; tests announce these by the old name all the same. */
#ifdef SYS_poll
#define NUMBER_POLL SYS_poll
#else
#define NUMBER_POLL SYS_ppoll
#endif
#ifdef SYS_unlink
#define NUMBER_UNLINK SYS_unlink
#else
#define NUMBER_UNLINK SYS_unlinkat
#endif

static const struct {
    const char *name;
    long number;
} known[] = {
    {"other", -1}, /* all that are not below */
    {"brk", SYS_brk},
    {"close", SYS_close},
    {"dup", SYS_dup},
    {"fallocate", SYS_fallocate},
    {"fcntl", SYS_fcntl},
    {"ftruncate", SYS_ftruncate},
    {"futex", SYS_futex},
    {"getpid", SYS_getpid},
    {"getppid", SYS_getppid},
    {"gettid", SYS_gettid},
    {"lseek", SYS_lseek},
    {"madvise", SYS_madvise},
    {"mmap", SYS_mmap},
    {"munmap", SYS_munmap},
    {"openat", SYS_openat},
    {"poll", NUMBER_POLL},
    {"pread64", SYS_pread64},
    {"pwrite64", SYS_pwrite64},
    {"read", SYS_read},
    {"rt_sigprocmask", SYS_rt_sigprocmask},
    {"rt_sigreturn", SYS_rt_sigreturn},
    {"sched_yield", SYS_sched_yield},
    {"tgkill", SYS_tgkill},
    {"unlink", NUMBER_UNLINK},
    {"write", SYS_write},
};
static_assert(ARRAY_COUNT(known) <= CALLS_MAX, "room in the slots");

struct calls {
    int fds[CALLS_MAX]; /* [0]: all calls, and the leader of the group */
};

const char *calls_name(unsigned index)
{
    return index < ARRAY_COUNT(known) ? known[index].name : NULL;
}

static int tracepoint_id(uint64_t *ret_id, struct error *err)
{
    if (read_trace_event_id("raw_syscalls/sys_enter", ret_id))
        return 0;
    return error_set(err, -EACCES,
                     "the tracepoint raw_syscalls:sys_enter is not visible: counting system calls "
                     "needs root and a kernel with tracefs");
}

static int open_one(uint64_t id, int leader, const char *filter, struct error *err)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = id, .disabled = leader < 0};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return error_errno(err, -errno,
                           "no permission to count system calls (it needs root, CAP_PERFMON or a "
                           "lower kernel.perf_event_paranoid)");
    if (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0) {
        int code = error_errno(err, -errno, "the filter '%s' of a tracepoint", filter);
        close(fd);
        return code;
    }
    return fd;
}

int calls_open(struct calls **ret_calls, struct error *err)
{
    uint64_t id = 0;
    int code = tracepoint_id(&id, err);
    if (code < 0)
        return code;
    struct calls *c = memory_zalloc(1, sizeof(*c));
    for (size_t i = 0; i < CALLS_MAX; i++)
        c->fds[i] = -1;
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        char filter[32];
        snprintf(filter, sizeof(filter), "id %s %ld",
                 i ? "==" : "!=", i ? known[i].number : (long)SYS_ioctl);
        c->fds[i] = open_one(id, i ? c->fds[0] : -1, filter, err);
        if (c->fds[i] < 0) {
            code = c->fds[i];
            calls_close(c);
            return code;
        }
    }
    *ret_calls = c;
    return 0;
}

void calls_enable(struct calls *c)
{
    ioctl(c->fds[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
}

void calls_disable(struct calls *c)
{
    ioctl(c->fds[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
}

int calls_read(struct calls *c, uint64_t counts[CALLS_MAX], struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (read(c->fds[i], &counts[i], sizeof(counts[i])) != (ssize_t)sizeof(counts[i]))
            return error_errno(err, errno ? -errno : -EIO, "reading a counter");
    for (size_t i = 1; i < ARRAY_COUNT(known); i++)
        counts[0] -= counts[i];
    return 0;
}

void calls_close(struct calls *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < CALLS_MAX; i++)
        fd_closep(&c->fds[i]);
    free(c);
}

/* The next word of an announcement: its name's length and what stands behind it. */
static const char *next_word(const char **at, size_t *ret_length, unsigned *ret_every,
                             bool *ret_may_be)
{
    const char *word = *at + strspn(*at, " ");
    const long page_bytes = sysconf(_SC_PAGESIZE);
    if (!*word)
        return NULL;
    *ret_length = strcspn(word, " /?");
    const char *behind = word + *ret_length;
    *ret_every = *behind != '/'                           ? 1
                 : str_has_prefix(behind + 1, PAGES_WORD) ? (unsigned)(SCALE_BIG_BYTES / page_bytes)
                                                          : (unsigned)strtoul(behind + 1, NULL, 10);
    *ret_may_be = *behind == '?';
    *at = word + strcspn(word, " ");
    return word;
}

unsigned calls_announced(const char *announced, unsigned index, bool *ret_may_be)
{
    const char *word;
    size_t length;
    unsigned every;
    bool may_be;
    *ret_may_be = false;
    while ((word = next_word(&announced, &length, &every, &may_be)))
        if (strlen(known[index].name) == length && !strncmp(word, known[index].name, length)) {
            *ret_may_be = may_be;
            return may_be ? 0 : every;
        }
    return 0;
}

uint64_t calls_whole_ops(const char *announced)
{
    size_t length;
    unsigned every;
    bool may_be;
    uint64_t ops = OPS_MIN; /* a multiple of the smaller cycles: 2, 128, 256 */
    while (next_word(&announced, &length, &every, &may_be))
        if (ops % every)
            ops = 2ULL * every;
    return ops;
}

bool calls_match(const char *announced, const uint64_t counts[CALLS_MAX], uint64_t ops,
                 struct error *ret_difference)
{
    for (unsigned i = 0; i < ARRAY_COUNT(known); i++) {
        bool may_be;
        unsigned every = calls_announced(announced, i, &may_be);
        uint64_t expected = every ? ops / every : 0;
        if (may_be || counts[i] == expected)
            continue;
        error_set(ret_difference, -ENOMSG, "%s: %llu calls in %llu operations, not %llu",
                  known[i].name, (unsigned long long)counts[i], (unsigned long long)ops,
                  (unsigned long long)expected);
        return false;
    }
    return true;
}

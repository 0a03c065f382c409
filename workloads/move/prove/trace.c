/* SPDX-License-Identifier: MIT */
/* Counting system calls by perf_event, copies by BPF: see trace.h. */
#include "trace.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "copies_bpf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/syscall.h>

enum { ATTACH_MS = 1000 };

static bool attach_calls(struct trace *t)
{
    uint64_t id;
    if (!read_trace_event_id("raw_syscalls/sys_enter", &id))
        return false;
    struct perf_event_attr attr = {
        .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = id};
    for (size_t i = 0; i < t->tid_count; i++) {
        int fd = (int)syscall(SYS_perf_event_open, &attr, t->tids[i], -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd < 0)
            return false;
        t->call_fds[t->call_count++] = fd;
    }
    return true;
}

static void *attach(void *argument)
{
    struct trace *t = argument;
    struct error err;
    t->calls_attached = attach_calls(t);
    t->copies_attached = t->bpf && copies_bpf_start(t->bpf, &err) == 0;
    atomic_store(&t->attached, true);
    return NULL;
}

void trace_open(struct trace *t, const pid_t *tids, size_t count, bool with_copies)
{
    struct error err;
    *t = (struct trace){.tids = tids, .tid_count = count};
    t->call_fds = memory_zalloc(count, sizeof(int));
    if (with_copies && copies_bpf_open(&t->bpf, getpid(), false, &err) < 0)
        t->bpf = NULL;
}

void trace_start(struct trace *t)
{
    uint64_t deadline_ns = clock_now_ns() + ATTACH_MS * NS_PER_MS;
    if (t->started || !t->call_fds || pthread_create(&t->thread, NULL, attach, t) != 0)
        return;
    t->started = true;
    while (!atomic_load(&t->attached) && clock_now_ns() < deadline_ns)
        poll(NULL, 0, 1);
    if (!atomic_load(&t->attached))
        return;
    t->calls = t->calls_attached;
    t->copies = t->copies_attached;
}

struct trace_counts trace_read(const struct trace *t)
{
    struct trace_counts counts = {0};
    for (size_t i = 0; t->calls && i < t->call_count; i++) {
        uint64_t value = 0;
        if (read(t->call_fds[i], &value, sizeof(value)) == sizeof(value))
            counts.calls += value;
    }
    if (t->copies) {
        struct copies_bpf_counts copies = copies_bpf_read(t->bpf);
        counts.copied_bytes = copies.copied_bytes;
        counts.copy_calls = copies.copy_calls;
    }
    return counts;
}

void trace_close(struct trace *t)
{
    if (t->started)
        pthread_join(t->thread, NULL);
    for (size_t i = 0; i < t->call_count; i++)
        close(t->call_fds[i]);
    copies_bpf_close(t->bpf);
    free(t->call_fds);
    *t = (struct trace){0};
}

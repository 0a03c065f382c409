/* SPDX-License-Identifier: MIT */
/* Counting system calls by perf_event, copies by BPF: see trace.h. */
#include "trace.h"
#include "base/fd.h"
#include "base/memory.h"
#include "copies_bpf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

static bool tracepoint_id(uint64_t *ret_id)
{
    int64_t id;
    if (!file_read_i64("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id", &id) &&
        !file_read_i64("/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id", &id))
        return false;
    *ret_id = (uint64_t)id;
    return true;
}

static void open_calls(struct trace *t, const pid_t *tids, size_t count)
{
    uint64_t id;
    if (!tracepoint_id(&id)) {
        snprintf(t->calls_why, sizeof(t->calls_why),
                 "the tracing folder cannot be read (needs root)");
        return;
    }
    struct perf_event_attr attr = {
        .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = id, .disabled = 1};
    t->call_fds = memory_zalloc(count, sizeof(int));
    for (size_t i = 0; i < count; i++) {
        int fd = (int)syscall(SYS_perf_event_open, &attr, tids[i], -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd < 0) {
            snprintf(t->calls_why, sizeof(t->calls_why), "perf_event_open: %s", strerror(errno));
            return;
        }
        t->call_fds[t->call_count++] = fd;
    }
    t->calls = true;
}

void trace_open(struct trace *t, const pid_t *tids, size_t count)
{
    *t = (struct trace){0};
    open_calls(t, tids, count);
    struct error err = {0};
    if (copies_bpf_open(&t->bpf, getpid(), &err) < 0)
        snprintf(t->copies_why, sizeof(t->copies_why), "%.159s", err.message);
}

void trace_start(struct trace *t)
{
    struct error err = {0};
    for (size_t i = 0; t->calls && i < t->call_count; i++)
        ioctl(t->call_fds[i], PERF_EVENT_IOC_ENABLE, 0);
    t->copies = t->bpf && copies_bpf_start(t->bpf, &err) == 0;
    if (t->bpf && !t->copies)
        snprintf(t->copies_why, sizeof(t->copies_why), "%.159s", err.message);
}

void trace_stop(struct trace *t)
{
    for (size_t i = 0; t->calls && i < t->call_count; i++)
        ioctl(t->call_fds[i], PERF_EVENT_IOC_DISABLE, 0);
    if (t->copies)
        copies_bpf_stop(t->bpf);
}

struct trace_counts trace_read(const struct trace *t)
{
    struct trace_counts counts = {0};
    for (size_t i = 0; t->calls && i < t->call_count; i++) {
        uint64_t value = 0;
        if (read(t->call_fds[i], &value, sizeof(value)) == sizeof(value))
            counts.calls += value;
    }
    if (t->bpf) {
        struct copies_bpf_counts copies = copies_bpf_read(t->bpf);
        counts.copied_bytes = copies.copied_bytes;
        counts.copy_calls = copies.copy_calls;
        counts.sent_bytes = copies.sent_bytes;
    }
    return counts;
}

void trace_close(struct trace *t)
{
    trace_stop(t);
    copies_bpf_close(t->bpf);
    for (size_t i = 0; i < t->call_count; i++)
        close(t->call_fds[i]);
    free(t->call_fds);
    *t = (struct trace){0};
}

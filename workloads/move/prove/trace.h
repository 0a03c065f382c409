/* SPDX-License-Identifier: MIT */
/*
 * Counting from outside what the loops do: system calls by the raw_syscalls tracepoint, copied
 * bytes by a BPF program on the kernel's own tracepoints.  Where the kernel or the rights do not
 * allow it, the counts stay absent.
 *
 * A tracepoint that is switched on slows every system call of the machine, so nothing is attached
 * before trace_start.  Attaching and detaching wait for RCU grace periods, which loops that fill
 * every CPU can hold up for as long as they run: hence a thread of its own that attaches, a limit
 * to the waiting for it, and a trace_close for after the loops.
 */
#ifndef ASSAY_MOVE_TRACE_H
#define ASSAY_MOVE_TRACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct trace {
    const pid_t *tids;
    size_t tid_count;
    int *call_fds;
    size_t call_count;
    struct copies_bpf *bpf;
    bool calls, copies; /* what is counted */
    /* of the thread that attaches */
    pthread_t thread;
    bool started;
    bool calls_attached, copies_attached;
    atomic_bool attached;
};

struct trace_counts {
    uint64_t calls;                    /* system calls of the threads */
    uint64_t copied_bytes, copy_calls; /* skb to user, of this process */
};

/* Makes ready what can be made ready without disturbing anybody; the tids must stay. */
void trace_open(struct trace *t, const pid_t *tids, size_t count, bool with_copies);
/* Attaches, or gives up after some time: then nothing is counted. */
void trace_start(struct trace *t);
struct trace_counts trace_read(const struct trace *t);
/* When the loops have ended. */
void trace_close(struct trace *t);

#endif

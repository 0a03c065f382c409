/* SPDX-License-Identifier: MIT */
/*
 * Counting from outside what the loops do: system calls by the raw_syscalls tracepoint, copied
 * bytes by a BPF program on the kernel's own tracepoints.  Where the kernel or the rights do not
 * allow it, the counts stay absent, and `why` says what was missing.
 */
#ifndef ASSAY_MOVE_TRACE_H
#define ASSAY_MOVE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct trace {
    int *call_fds;
    size_t call_count;
    bool calls, copies;  /* what is counted */
    char calls_why[160]; /* why not */
    char copies_why[160];
    struct copies_bpf *bpf;
};

struct trace_counts {
    uint64_t calls;                    /* system calls of the threads */
    uint64_t copied_bytes, copy_calls; /* skb to user, of this process */
    uint64_t sent_bytes;               /* that went through sock_sendmsg */
};

/* Of the threads in tids and of this process; switched off. */
void trace_open(struct trace *t, const pid_t *tids, size_t count);
void trace_start(struct trace *t);
void trace_stop(struct trace *t);
struct trace_counts trace_read(const struct trace *t);
void trace_close(struct trace *t);

#endif

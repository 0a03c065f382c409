/* SPDX-License-Identifier: MIT */
/* Bytes that the kernel copied out of packets for one process, counted by BPF on tracepoints. */
#ifndef ASSAY_MOVE_COPIES_BPF_H
#define ASSAY_MOVE_COPIES_BPF_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct copies_bpf;

struct copies_bpf_counts {
    uint64_t copy_calls, copied_bytes; /* skb_copy_datagram_iovec: packet to user */
    uint64_t send_calls, sent_bytes;   /* sock_send_length: what the socket took */
};

/* Makes all ready; -EOPNOTSUPP, -EPERM, … with words when that cannot be.  Takes some 50 ms: the
 * kernel's type description is read. */
int copies_bpf_open(struct copies_bpf **ret, pid_t process, bool with_sends, struct error *err);
/* Counts from now on. */
int copies_bpf_start(struct copies_bpf *c, struct error *err);
struct copies_bpf_counts copies_bpf_read(const struct copies_bpf *c);
/* Waits for the kernel's grace period, which a busy machine may delay for as long as it is busy. */
void copies_bpf_close(struct copies_bpf *c);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * zerocopy-udp-sink: MSG_ZEROCOPY datagrams into a veth pair whose far end drops everything.
 *
 * A packet that is delivered on the same host is copied before anybody may keep it (the kernel
 * cannot let a slow reader pin another process' pages), and so zero-copy is never granted on
 * loopback.  One that is dropped at the traffic control hook of the far end was never delivered:
 * the pages went through the whole sending path by reference, as they would into a network card.
 * This is the one sink on a single host that shows what zero-copy costs when it is granted.
 * udp-sink sends the same datagrams into the same sink by a copying send(), to compare with.
 *
 * Everything is in a network namespace of its own, which goes away with the socket.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "settings.h"
#include "variants.h"
#include "veth.h"
#include "zerocopy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* BPF_TCX_INGRESS and TCX_DROP of Linux 6.6, under names of our own: some headers have them. */
enum { HOOK_INGRESS = 46, VERDICT_DROP = 2, DATAGRAM_BYTES_MAX = 65507, DISCARD_PORT = 9 };

static int bpf_call(enum bpf_cmd command, union bpf_attr *attr)
{
    long r = syscall(SYS_bpf, command, attr, sizeof(*attr));
    return r < 0 ? -errno : (int)r;
}

/* return VERDICT_DROP; */
static int load_drop(void)
{
    const struct bpf_insn code[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = VERDICT_DROP},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_SCHED_CLS,
                           .expected_attach_type = (enum bpf_attach_type)HOOK_INGRESS,
                           .insns = (uint64_t)(uintptr_t)code,
                           .insn_cnt = ARRAY_COUNT(code),
                           .license = (uint64_t)(uintptr_t) "Dual MIT/GPL"};
    return bpf_call(BPF_PROG_LOAD, &attr);
}

/* The program stays at the interface until that is gone. */
static int drop_all(unsigned interface, struct error *err)
{
    CLEANUP(fd_closep) int program_fd = load_drop();
    if (program_fd < 0)
        return error_errno(err, program_fd, "loading a BPF program that drops (it needs root)");
    union bpf_attr attr = {.target_fd = interface, /* which this field is for TCX */
                           .attach_bpf_fd = (uint32_t)program_fd,
                           .attach_type = HOOK_INGRESS};
    int r = bpf_call(BPF_PROG_ATTACH, &attr);
    return r < 0 ? error_errno(err, r, "attaching a BPF program that drops (it needs Linux 6.6)")
                 : 0;
}

static int connect_sink(struct link *l, struct error *err)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(DISCARD_PORT)};
    inet_pton(AF_INET, VETH_RECEIVER_ADDRESS, &to.sin_addr);
    l->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (l->fd < 0 || connect(l->fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        return error_errno(err, -errno, "zerocopy-udp-sink: a UDP socket");
    return 0;
}

/* Within the new namespace. */
static int make_sink(struct link *l, struct error *err)
{
    unsigned interface;
    int r = veth_create_sink(&interface, err);
    r = r ? r : drop_all(interface, err);
    return r ? r : connect_sink(l, err);
}

/* Of the calling thread only. */
static int enter_namespace(int *ret_old_fd, struct error *err)
{
    CLEANUP(fd_closep) int old_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (old_fd < 0)
        return error_errno(err, -errno, "/proc/thread-self/ns/net");
    if (unshare(CLONE_NEWNET) < 0)
        return error_errno(err, -errno, "a network namespace%s",
                           errno == EPERM ? " (needs root: CAP_SYS_ADMIN)" : "");
    *ret_old_fd = old_fd;
    old_fd = -1;
    return 0;
}

static int open_drain(struct link *l, struct error *err)
{
    if (l->message_bytes > DATAGRAM_BYTES_MAX)
        return error_set(err, -EINVAL, "--size %zu: a datagram holds %d bytes at most",
                         l->message_bytes, DATAGRAM_BYTES_MAX);
    CLEANUP(fd_closep) int old_fd = -1;
    int r = enter_namespace(&old_fd, err);
    if (r < 0)
        return error_wrap(err, r, "%s", l->settings->send->name);
    r = make_sink(l, err);
    if (setns(old_fd, CLONE_NEWNET) < 0 && r == 0)
        r = error_errno(err, -errno, "back into the old network namespace");
    if (r < 0)
        return error_wrap(err, r, "%s", l->settings->send->name);
    return 0;
}

static int open_zerocopy(struct link *l, struct error *err)
{
    int r = open_drain(l, err);
    return r ? r : zerocopy_open(l, SOURCE_ALIGNED, err);
}

static int open_copying(struct link *l, struct error *err)
{
    int r = open_drain(l, err);
    return r ? r : source_open(l, SOURCE_ALIGNED, 1, false, err);
}

static int run_copying(struct link *l, struct error *err)
{
    while (link_going(l)) {
        source_fill(l, 0);
        ssize_t r = send(l->fd, l->source.base, l->message_bytes, 0);
        if (__builtin_expect(r < 0 && errno != EINTR, 0))
            return link_failed(l, "send", -errno, err);
        link_count(l, r > 0, r > 0 ? (uint64_t)r : 0, 1);
    }
    return 0;
}

static int close_copying(struct link *l, struct error *err)
{
    (void)err;
    source_close(l);
    fd_closep(&l->fd);
    return 0;
}

static int close_zerocopy(struct link *l, struct error *err)
{
    int r = l->state ? zerocopy_close(l, err) : 0;
    fd_closep(&l->fd);
    return r;
}

const struct variant variant_zerocopy_udp_sink = {
    .name = "zerocopy-udp-sink",
    .summary = "MSG_ZEROCOPY datagrams into a veth pair that drops them: truly granted",
    .role = ROLE_ALONE,
    .transports = TRANSPORT_NONE,
    .claim = {COPIES_NONE, COPIES_NONE, "the pages go down to the device; nobody receives them"},
    .open = open_zerocopy,
    .run = zerocopy_run,
    .close = close_zerocopy,
};

const struct variant variant_udp_sink = {
    .name = "udp-sink",
    .summary = "datagrams by send() into the same sink, to compare with",
    .role = ROLE_ALONE,
    .transports = TRANSPORT_NONE,
    .claim = {COPIES_ONE, COPIES_NONE, "user to kernel in send(); nobody receives"},
    .open = open_copying,
    .run = run_copying,
    .close = close_copying,
};

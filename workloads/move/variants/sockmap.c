/* SPDX-License-Identifier: MIT */
/*
 * sockmap: a BPF program that runs in the sender's send() puts the data straight into the
 * receiver's queue, past all of TCP below the socket: no segments, no acknowledgements, no loopback
 * device.
 *
 * Both sockets must be in one map.  The receiver tells its process and descriptor in shared memory,
 * and the sender fetches a copy of that socket (pidfd_getfd) and adds both, before the first
 * message.  Only then may the receiver start: a recv() that already waits would wait for TCP's
 * queue, where nothing comes any more.  The program is one call long and written as instructions.
 *
 * Nothing limits what is under way, since the receiver's window is TCP's too.  So the receiver
 * tells in shared memory what it took, and the sender stays within a window of its own.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "settings.h"
#include "variants.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/futex.h>
#include <stdalign.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { KEY_SENDER, KEY_RECEIVER, KEYS };

#define WINDOW_BYTES (2UL << 20)
#define LOOK_MS 50
#define RECEIVE_BYTES (128UL << 10)

/* In l->shared. */
struct meeting {
    _Atomic int32_t pid, fd; /* the receiver's; fd is published last, plus one: 0 is not yet */
    _Atomic uint32_t is_joined;
    _Atomic uint32_t sender_sleeps; /* futex: 1 while it waits for the window */
    alignas(128) _Atomic uint64_t taken_bytes;
};

struct sockmap {
    int map_fd, program_fd;
    uint64_t sent_bytes, taken_bytes; /* the latter as last seen */
};

static size_t meeting_bytes(const struct settings *s)
{
    (void)s;
    return sizeof(struct meeting);
}

static int bpf_call(enum bpf_cmd command, union bpf_attr *attr)
{
    long r = syscall(SYS_bpf, command, attr, sizeof(*attr));
    return r < 0 ? -errno : (int)r;
}

/* return bpf_msg_redirect_map(msg, map, KEY_RECEIVER, BPF_F_INGRESS); */
static int load_program(int map_fd)
{
    const struct bpf_insn code[] = {
        {.code = BPF_LD | BPF_DW,
         .dst_reg = BPF_REG_2,
         .src_reg = BPF_PSEUDO_MAP_FD,
         .imm = map_fd},
        {0}, /* the second half of the 64-bit constant */
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = KEY_RECEIVER},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_4, .imm = BPF_F_INGRESS},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_msg_redirect_map},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_SK_MSG,
                           .expected_attach_type = BPF_SK_MSG_VERDICT,
                           .insns = (uint64_t)(uintptr_t)code,
                           .insn_cnt = ARRAY_COUNT(code),
                           .license = (uint64_t)(uintptr_t) "Dual MIT/GPL"};
    return bpf_call(BPF_PROG_LOAD, &attr);
}

static int refused(const char *step, int code, struct error *err)
{
    if (code == -EPERM)
        return error_set(err, code,
                         "sockmap: %s: BPF for sockets needs root (CAP_BPF, CAP_NET_ADMIN)", step);
    return error_errno(err, code, "sockmap: %s (it needs CONFIG_BPF_STREAM_PARSER)", step);
}

static int make_map(struct sockmap *s, struct error *err)
{
    union bpf_attr map = {
        .map_type = BPF_MAP_TYPE_SOCKMAP, .key_size = 4, .value_size = 4, .max_entries = KEYS};
    s->map_fd = bpf_call(BPF_MAP_CREATE, &map);
    if (s->map_fd < 0)
        return refused("creating the map", s->map_fd, err);
    s->program_fd = load_program(s->map_fd);
    if (s->program_fd < 0)
        return refused("loading the program", s->program_fd, err);
    union bpf_attr attach = {.target_fd = (uint32_t)s->map_fd,
                             .attach_bpf_fd = (uint32_t)s->program_fd,
                             .attach_type = BPF_SK_MSG_VERDICT};
    int r = bpf_call(BPF_PROG_ATTACH, &attach);
    return r < 0 ? refused("attaching the program", r, err) : 0;
}

static int add_socket(const struct sockmap *s, uint32_t key, int fd, struct error *err)
{
    uint32_t value = (uint32_t)fd;
    union bpf_attr attr = {.map_fd = (uint32_t)s->map_fd,
                           .key = (uint64_t)(uintptr_t)&key,
                           .value = (uint64_t)(uintptr_t)&value};
    int r = bpf_call(BPF_MAP_UPDATE_ELEM, &attr);
    return r < 0 ? refused(key == KEY_SENDER ? "adding the sender's socket"
                                             : "adding the receiver's socket",
                           r, err)
                 : 0;
}

/* A descriptor of the receiver's socket in this process. */
static int fetch_socket(const struct meeting *m, struct error *err)
{
    for (uint64_t end_ns = clock_now_ns() + 10 * NS_PER_S; !atomic_load(&m->fd);) {
        if (clock_now_ns() > end_ns)
            return error_set(err, -ETIMEDOUT, "sockmap: the receiver did not report its socket");
        usleep(1000);
    }
    int pid = atomic_load(&m->pid), fd = atomic_load(&m->fd) - 1;
    CLEANUP(fd_closep) int process_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process_fd < 0)
        return error_errno(err, -errno, "sockmap: the receiver's process");
    int copy = (int)syscall(SYS_pidfd_getfd, process_fd, fd, 0);
    return copy < 0 ? error_errno(err, -errno, "sockmap: the receiver's socket") : copy;
}

static int join(struct link *l, struct sockmap *s, struct error *err)
{
    CLEANUP(fd_closep) int other_fd = fetch_socket(l->shared, err);
    if (other_fd < 0)
        return other_fd;
    int r = add_socket(s, KEY_RECEIVER, other_fd, err);
    r = r ? r : add_socket(s, KEY_SENDER, l->fd, err);
    if (r == 0)
        atomic_store(&((struct meeting *)l->shared)->is_joined, 1);
    return r;
}

static void futex(_Atomic uint32_t *word, int operation, uint32_t value, uint64_t limit_ms)
{
    struct timespec limit = timespec_from_ns(limit_ms * NS_PER_MS);
    syscall(SYS_futex, word, operation, value, operation == FUTEX_WAIT ? &limit : NULL, NULL, 0);
}

static bool has_window(const struct meeting *m, struct sockmap *s)
{
    if (s->sent_bytes - s->taken_bytes >= WINDOW_BYTES)
        s->taken_bytes = atomic_load(&m->taken_bytes);
    return s->sent_bytes - s->taken_bytes < WINDOW_BYTES;
}

/* True when there is room for another message; false after a while without. */
static bool await_window(struct link *l, struct sockmap *s)
{
    struct meeting *m = l->shared;
    if (has_window(m, s))
        return true;
    atomic_store(&m->sender_sleeps, 1); /* partner: the look at it in took() */
    if (!has_window(m, s)) {
        count_add(&l->counts->waits, 1);
        futex(&m->sender_sleeps, FUTEX_WAIT, 1, LOOK_MS);
    }
    atomic_store(&m->sender_sleeps, 0);
    return has_window(m, s);
}

/* Wakes the sender when half of the window is free. */
static void took(struct meeting *m, uint64_t *told_bytes, uint64_t bytes)
{
    if (bytes - *told_bytes < WINDOW_BYTES / 2)
        return;
    *told_bytes = bytes;
    atomic_store(&m->taken_bytes, bytes); /* partner: the look at it in await_window() */
    if (atomic_load(&m->sender_sleeps) && atomic_exchange(&m->sender_sleeps, 0))
        futex(&m->sender_sleeps, FUTEX_WAKE, 1, 0);
}

static int open_sockmap(struct link *l, struct error *err)
{
    if (!l->shared)
        return error_set(err, -EINVAL, "sockmap needs both processes on one host");
    int r = source_open(l, SOURCE_PACKED, 1, false, err);
    if (r < 0)
        return r;
    struct sockmap *s = memory_zalloc(1, sizeof(*s));
    s->map_fd = s->program_fd = -1;
    l->state = s;
    return make_map(s, err);
}

static int run_sockmap(struct link *l, struct error *err)
{
    struct sockmap *s = l->state;
    int code = join(l, s, err);
    if (code)
        return code;
    while (link_going(l)) {
        if (!await_window(l, s))
            continue;
        source_fill(l, 0);
        size_t done = 0;
        uint64_t calls = 0;
        while (done < l->message_bytes) {
            ssize_t r = send(l->fd, l->source.base + done, l->message_bytes - done, MSG_NOSIGNAL);
            calls++;
            if (__builtin_expect(r < 0, 0)) {
                if (errno == EINTR || errno == EAGAIN)
                    continue;
                return link_failed(l, "send", -errno, err);
            }
            done += (size_t)r;
        }
        s->sent_bytes += l->message_bytes;
        link_count(l, 1, l->message_bytes, calls);
    }
    return 0;
}

static int close_sockmap(struct link *l, struct error *err)
{
    (void)err;
    struct sockmap *s = l->state;
    if (s) {
        fd_closep(&s->program_fd);
        fd_closep(&s->map_fd);
    }
    free(s);
    l->state = NULL;
    source_close(l);
    return 0;
}

static int open_sockmap_receive(struct link *l, struct error *err)
{
    struct meeting *m = l->shared;
    if (!m)
        return error_set(err, -EINVAL, "sockmap-receive is the receive side of sockmap only");
    l->state = memory_zalloc(1, RECEIVE_BYTES);
    atomic_store(&m->pid, (int32_t)getpid());
    atomic_store(&m->fd, l->fd + 1);
    return 0;
}

static int run_sockmap_receive(struct link *l, struct error *err)
{
    struct meeting *m = l->shared;
    while (!atomic_load(&m->is_joined)) {
        if (atomic_load_explicit(l->stop, memory_order_relaxed))
            return 0;
        usleep(1000);
    }
    uint64_t told_bytes = 0;
    while (link_wants(l)) {
        ssize_t r = recv(l->fd, l->state, RECEIVE_BYTES, 0);
        if (__builtin_expect(r <= 0, 0)) {
            if (r == 0)
                return 0;
            if (errno == EINTR)
                continue;
            return link_failed(l, "recv", -errno, err);
        }
        int code = link_seen(l, l->state, (size_t)r, err);
        if (code)
            return code;
        link_count(l, 0, (uint64_t)r, 1);
        took(m, &told_bytes, count_read(&l->counts->bytes));
    }
    return 0;
}

static int close_sockmap_receive(struct link *l, struct error *err)
{
    (void)err;
    free(l->state);
    l->state = NULL;
    return 0;
}

const struct variant variant_sockmap = {
    .name = "sockmap",
    .summary = "send() that a BPF program redirects into the receiver's queue, past TCP",
    .role = ROLE_SEND,
    .transports = TRANSPORT_TCP,
    .claim = {COPIES_ONE, COPIES_ONE, "user to kernel in send(); no TCP in between"},
    .partner = "sockmap-receive",
    .shared_bytes = meeting_bytes,
    .open = open_sockmap,
    .run = run_sockmap,
    .close = close_sockmap,
};

const struct variant variant_sockmap_receive = {
    .name = "sockmap-receive",
    .summary = "the receive side of sockmap: recv() of up to 128 KiB",
    .role = ROLE_RECEIVE,
    .transports = TRANSPORT_TCP,
    .claim = {COPIES_NOT_MY_SIDE, COPIES_ONE, "kernel to user in recv()"},
    .untraced = true,
    .open = open_sockmap_receive,
    .run = run_sockmap_receive,
    .close = close_sockmap_receive,
};

/* SPDX-License-Identifier: MIT */
/*
 * Two programs on BTF tracepoints, written as instructions since they are a dozen each:
 *
 *   if (current process == mine) { map[0] += 1; map[1] += (int)ctx[argument]; }
 *
 * on skb_copy_datagram_iovec(skb, len), which every copying receive passes (TCP, UDP and stream
 * sockets of AF_UNIX), and on sock_send_length(sk, ret, flags).  No tracepoint counts the bytes
 * that a send copies: for those see prove.c.
 */
#include "copies_bpf.h"
#include "base/memory.h"
#include "config.h"

#include <errno.h>

#if HAVE_LIBBPF
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hook {
    int map_fd, program_fd, link_fd;
};

struct copies_bpf {
    struct hook receive, send;
};

/* The value's two numbers are added to atomically: threads run on several CPUs. */
static int load(int map_fd, pid_t process, int btf_id, int argument)
{
    const struct bpf_insn code[] = {
        /* r6 = ctx[argument]; */
        {.code = BPF_LDX | BPF_MEM | BPF_DW,
         .dst_reg = BPF_REG_6,
         .src_reg = BPF_REG_1,
         .off = (short)(8 * argument)},
        /* if (get_current_pid_tgid() >> 32 != process) goto out; */
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_pid_tgid},
        {.code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = BPF_REG_0, .imm = 32},
        {.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_0, .imm = process, .off = 14},
        /* r6 = (int)r6; if (r6 < 1) goto out; */
        {.code = BPF_ALU64 | BPF_LSH | BPF_K, .dst_reg = BPF_REG_6, .imm = 32},
        {.code = BPF_ALU64 | BPF_ARSH | BPF_K, .dst_reg = BPF_REG_6, .imm = 32},
        {.code = BPF_JMP | BPF_JSLT | BPF_K, .dst_reg = BPF_REG_6, .imm = 1, .off = 11},
        /* r0 = map_lookup(map, &(uint32_t){0}); if (!r0) goto out; */
        {.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .off = -4},
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10},
        {.code = BPF_ALU64 | BPF_ADD, .dst_reg = BPF_REG_2, .imm = -4},
        {.code = BPF_LD | BPF_DW,
         .dst_reg = BPF_REG_1,
         .src_reg = BPF_PSEUDO_MAP_FD,
         .imm = map_fd},
        {0}, /* the second half of the 64-bit constant */
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem},
        {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0, .off = 4},
        /* r0[0] += 1; r0[1] += r6; */
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = 1},
        {.code = BPF_STX | BPF_ATOMIC | BPF_DW,
         .dst_reg = BPF_REG_0,
         .src_reg = BPF_REG_1,
         .imm = BPF_ADD},
        {.code = BPF_STX | BPF_ATOMIC | BPF_DW,
         .dst_reg = BPF_REG_0,
         .src_reg = BPF_REG_6,
         .off = 8,
         .imm = BPF_ADD},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1},
        /* out: return 0; */
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_RAW_TP,
                .attach_btf_id = (__u32)btf_id);
    return bpf_prog_load(BPF_PROG_TYPE_TRACING, "move_copies", "Dual MIT/GPL", code,
                         ARRAY_COUNT(code), &options);
}

static int quiet(enum libbpf_print_level level, const char *format, va_list arguments)
{
    (void)level, (void)format, (void)arguments;
    return 0;
}

static void hook_close(struct hook *h)
{
    if (h->link_fd >= 0)
        close(h->link_fd);
    if (h->program_fd >= 0)
        close(h->program_fd);
    if (h->map_fd >= 0)
        close(h->map_fd);
}

static int hook_open(struct hook *h, const struct btf *btf, pid_t process, const char *tracepoint,
                     int argument, struct error *err)
{
    char type[64];
    snprintf(type, sizeof(type), "btf_trace_%s", tracepoint);
    int id = btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF);
    if (id < 0)
        return error_errno(err, id, "BPF: the kernel has no tracepoint %s", tracepoint);
    h->map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "move_copies", 4, 16, 1, NULL);
    if (h->map_fd < 0)
        return error_errno(err, -errno, "BPF: creating a map");
    h->program_fd = load(h->map_fd, process, id, argument);
    if (h->program_fd < 0)
        return error_errno(err, -errno, "BPF: loading a program for %s", tracepoint);
    return 0;
}

static int hook_start(struct hook *h, struct error *err)
{
    h->link_fd = bpf_raw_tracepoint_open(NULL, h->program_fd);
    return h->link_fd < 0 ? error_errno(err, -errno, "BPF: attaching to a tracepoint") : 0;
}

int copies_bpf_open(struct copies_bpf **ret, pid_t process, bool with_sends, struct error *err)
{
    libbpf_set_print(quiet);
    struct btf *btf = btf__load_vmlinux_btf();
    if (!btf)
        return error_errno(err, -errno, "BPF: reading the kernel's types");
    struct copies_bpf *c = memory_zalloc(1, sizeof(*c));
    c->receive = c->send = (struct hook){-1, -1, -1};
    int r = hook_open(&c->receive, btf, process, "skb_copy_datagram_iovec", 1, err);
    if (r == 0 && with_sends)
        r = hook_open(&c->send, btf, process, "sock_send_length", 1, err);
    btf__free(btf);
    if (r < 0) {
        copies_bpf_close(c);
        return r;
    }
    *ret = c;
    return 0;
}

int copies_bpf_start(struct copies_bpf *c, struct error *err)
{
    int r = hook_start(&c->receive, err);
    return r < 0 || c->send.program_fd < 0 ? r : hook_start(&c->send, err);
}

static void hook_read(const struct hook *h, uint64_t *ret_calls, uint64_t *ret_bytes)
{
    uint32_t key = 0;
    uint64_t value[2] = {0};
    if (bpf_map_lookup_elem(h->map_fd, &key, value) < 0)
        return;
    *ret_calls = value[0];
    *ret_bytes = value[1];
}

struct copies_bpf_counts copies_bpf_read(const struct copies_bpf *c)
{
    struct copies_bpf_counts counts = {0};
    hook_read(&c->receive, &counts.copy_calls, &counts.copied_bytes);
    hook_read(&c->send, &counts.send_calls, &counts.sent_bytes);
    return counts;
}

void copies_bpf_close(struct copies_bpf *c)
{
    if (!c)
        return;
    hook_close(&c->receive);
    hook_close(&c->send);
    free(c);
}

#else

int copies_bpf_open(struct copies_bpf **ret, pid_t process, bool with_sends, struct error *err)
{
    (void)ret, (void)process, (void)with_sends;
    return error_set(err, -EOPNOTSUPP, "built without libbpf");
}

int copies_bpf_start(struct copies_bpf *c, struct error *err)
{
    (void)c;
    return error_set(err, -EOPNOTSUPP, "built without libbpf");
}

struct copies_bpf_counts copies_bpf_read(const struct copies_bpf *c)
{
    (void)c;
    return (struct copies_bpf_counts){0};
}

void copies_bpf_close(struct copies_bpf *c)
{
    (void)c;
}

#endif

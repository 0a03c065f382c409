/* SPDX-License-Identifier: MIT */
/*
 * Broadcast in the kernel (after Electrode, NSDI 2023): a prepare for all peers leaves this process
 * once, addressed to the sender itself, and a program at the device's egress (TCX, Linux 6.6) makes
 * a copy for each peer.  The sender saves a pass through socket and IP layers for each peer but
 * one.
 *
 * Only where all replicas share one address on the loopback device: there a copy differs in its
 * port alone.  The program is a few dozen instructions, written here for these ports; no compiler
 * and no maps.  It is gone when its descriptor is closed, however the process ends.
 */
#include "io_tc.h"

#include <assert.h>
#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TCX_EGRESS 47 /* BPF_TCX_EGRESS: newer than the headers of Debian 12 */
#define TC_NEXT (-1)
#define TC_PASS 0
#define INSTRUCTIONS_MAX 256
/* Of a frame with Ethernet, IPv4 without options, UDP. */
#define AT_TYPE 12
#define AT_IP 14
#define AT_PROTOCOL 23
#define AT_DESTINATION 30
#define AT_PORTS 34
#define AT_DESTINATION_PORT 36
#define AT_CHECKSUM 40
#define FRAME_LEAST 42

struct program {
    struct bpf_insn code[INSTRUCTIONS_MAX];
    int count;
    int jumps[16], jump_count; /* to the end, where the packet goes on as it is */
};

static void emit(struct program *p, int code, int to, int from, int offset, int number)
{
    assert(p->count < INSTRUCTIONS_MAX);
    p->code[p->count++] = (struct bpf_insn){.code = (__u8)code,
                                            .dst_reg = (__u8)(to & 15),
                                            .src_reg = (__u8)(from & 15),
                                            .off = (__s16)offset,
                                            .imm = number};
}

static void move(struct program *p, int to, int from)
{
    emit(p, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

static void set(struct program *p, int to, int number)
{
    emit(p, BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, number);
}

/* Leaves the packet alone unless the field holds this. */
static void require(struct program *p, int size, int at, uint32_t number)
{
    emit(p, BPF_LDX | BPF_MEM | size, BPF_REG_5, BPF_REG_2, at, 0);
    p->jumps[p->jump_count++] = p->count;
    emit(p, BPF_JMP32 | BPF_JNE | BPF_K, BPF_REG_5, 0, 0, (int)number);
}

static void store16(struct program *p, int at, uint16_t value)
{
    emit(p, BPF_ST | BPF_MEM | BPF_H, BPF_REG_10, 0, -8, value);
    move(p, BPF_REG_1, BPF_REG_6);
    set(p, BPF_REG_2, at);
    move(p, BPF_REG_3, BPF_REG_10);
    emit(p, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_3, 0, 0, -8);
    set(p, BPF_REG_4, sizeof(value));
    set(p, BPF_REG_5, 0);
    emit(p, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_skb_store_bytes);
}

static void write_program(struct program *p, const struct sockaddr_in *own,
                          const struct sockaddr_in *peers, uint32_t count, unsigned device)
{
    uint32_t port = own->sin_port;
    move(p, BPF_REG_6, BPF_REG_1);
    emit(p, BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_6, offsetof(struct __sk_buff, data), 0);
    emit(p, BPF_LDX | BPF_MEM | BPF_W, BPF_REG_3, BPF_REG_6, offsetof(struct __sk_buff, data_end),
         0);
    move(p, BPF_REG_4, BPF_REG_2);
    emit(p, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_4, 0, 0, FRAME_LEAST);
    p->jumps[p->jump_count++] = p->count;
    emit(p, BPF_JMP | BPF_JGT | BPF_X, BPF_REG_4, BPF_REG_3, 0, 0);
    require(p, BPF_H, AT_TYPE, htons(0x0800));
    require(p, BPF_B, AT_IP, 0x45);
    require(p, BPF_B, AT_PROTOCOL, IPPROTO_UDP);
    require(p, BPF_W, AT_DESTINATION, own->sin_addr.s_addr);
    require(p, BPF_W, AT_PORTS, port | port << 16); /* from itself to itself */
    store16(p, AT_CHECKSUM, 0);                     /* none: it never leaves the machine */
    for (uint32_t i = 0; i < count; i++) {
        store16(p, AT_DESTINATION_PORT, peers[i].sin_port);
        if (i + 1 == count)
            break; /* the packet itself is the last copy */
        move(p, BPF_REG_1, BPF_REG_6);
        set(p, BPF_REG_2, (int)device);
        /* To the egress once more, where its new port lets it pass: a packet that came back as if
         * from outside would lose its route, and be dropped for its source on 127.0.0.0/8. */
        set(p, BPF_REG_3, 0);
        emit(p, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_clone_redirect);
    }
    set(p, BPF_REG_0, TC_PASS);
    emit(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    for (int i = 0; i < p->jump_count; i++)
        p->code[p->jumps[i]].off = (__s16)(p->count - p->jumps[i] - 1);
    set(p, BPF_REG_0, TC_NEXT);
    emit(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static int bpf(int command, union bpf_attr *attr)
{
    int result = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
    return result < 0 ? -errno : result;
}

static int check(const struct sockaddr_in *own, const struct sockaddr_in *peers, uint32_t count,
                 struct error *err)
{
    if (count < 2)
        return error_set(err, -EINVAL, "there is nobody to spare a packet for");
    for (uint32_t i = 0; i < count; i++)
        if (peers[i].sin_addr.s_addr != own->sin_addr.s_addr || !vr_address_is_loopback(own))
            return error_set(err, -EOPNOTSUPP,
                             "the replicas do not share one loopback address, and only ports are "
                             "rewritten");
    return 0;
}

int vr_tc_open(struct vr_tc *tc, const struct sockaddr_in *own, const struct sockaddr_in *peers,
               uint32_t count, struct error *err)
{
    struct program p = {0};
    union bpf_attr attr = {0};
    *tc = (struct vr_tc){.program_fd = -1, .link_fd = -1, .own = *own};
    int result = check(own, peers, count, err);
    if (result)
        return result;
    unsigned device = if_nametoindex("lo");
    if (!device)
        return error_errno(err, -errno, "the loopback device");
    write_program(&p, own, peers, count, device);
    attr.prog_type = BPF_PROG_TYPE_SCHED_CLS;
    attr.insns = (uintptr_t)p.code;
    attr.insn_cnt = (__u32)p.count;
    attr.license = (uintptr_t) "MIT";
    snprintf(attr.prog_name, sizeof(attr.prog_name), "vr_broadcast");
    tc->program_fd = bpf(BPF_PROG_LOAD, &attr);
    if (tc->program_fd < 0)
        return error_errno(err, tc->program_fd, "loading the program (it takes root)");
    memset(&attr, 0, sizeof(attr));
    attr.link_create.prog_fd = (__u32)tc->program_fd;
    attr.link_create.target_ifindex = device;
    attr.link_create.attach_type = TCX_EGRESS;
    tc->link_fd = bpf(BPF_LINK_CREATE, &attr);
    if (tc->link_fd < 0) {
        result = error_errno(err, tc->link_fd, "attaching it at the egress of lo (Linux 6.6)");
        vr_tc_close(tc);
        return result;
    }
    tc->count = count;
    memcpy(tc->peers, peers, count * sizeof(*peers));
    return 0;
}

void vr_tc_close(struct vr_tc *tc)
{
    if (tc->link_fd > 0)
        close(tc->link_fd);
    if (tc->program_fd > 0)
        close(tc->program_fd);
    *tc = (struct vr_tc){.program_fd = -1, .link_fd = -1};
}

bool vr_tc_covers(const struct vr_tc *tc, const struct sockaddr_in *to, uint32_t count)
{
    if (count == 0 || count != tc->count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (to[i].sin_port != tc->peers[i].sin_port ||
            to[i].sin_addr.s_addr != tc->peers[i].sin_addr.s_addr)
            return false;
    return true;
}

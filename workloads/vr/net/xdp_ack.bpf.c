/* SPDX-License-Identifier: MIT */
/*
 * At the device of a backup: a prepare that is just the next one of the present view is put where
 * the replica will find it, and answered at once by turning the packet round.  Everything else,
 * and everything while the gate is closed, goes on to the replica's socket.  See io_xdp.h.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "xdp_shared.h"

#define HEADER 64 /* bytes of a packet's header, and of an entry's head (wire.h) */
#define PAYLOAD_AT (sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr))
#define PAYLOAD_LEAST (2 * HEADER + 32)
#define WORDS (VR_XDP_BYTES / 8)

#define MAGIC_AND_VERSION 0x055256
#define TYPE_PREPARE 3
#define TYPE_PREPARE_OK 4

/* wire.h's struct vr_header in words. */
enum { AT_TYPE, AT_CHECKSUM, AT_BODY_CHECKSUM, AT_CLUSTER, AT_VIEW, AT_OP, AT_COMMIT, AT_PARENT };
/* wire.h's struct vr_entry in words, behind the header. */
enum { ENTRY_OP = 8, ENTRY_VIEW, ENTRY_PARENT, ENTRY_BODY, ENTRY_SIZE, ENTRY_CHECKSUM };

struct vr_xdp_area area;

struct scratch {
    __u64 words[WORDS];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct scratch);
} scratches SEC(".maps");

struct sum {
    __u64 a, b, c, d;
    struct scratch *from;
    __u32 at;
};

static __always_inline __u64 rotate(__u64 word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static __always_inline void mix(struct sum *s)
{
    s->a += s->b;
    s->b = rotate(s->b, 13) ^ s->a;
    s->a = rotate(s->a, 32);
    s->c += s->d;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a += s->d;
    s->d = rotate(s->d, 21) ^ s->a;
    s->c += s->b;
    s->b = rotate(s->b, 17) ^ s->c;
    s->c = rotate(s->c, 32);
}

static __always_inline void absorb(struct sum *s, __u64 word)
{
    s->d ^= word;
    mix(s);
    if (area.gate.two_rounds)
        mix(s);
    s->a ^= word;
}

static long absorb_next(__u32 index, void *context)
{
    struct sum *s = context;
    __u32 at = s->at + index;
    if (at >= WORDS)
        return 1;
    absorb(s, s->from->words[at]);
    return 0;
}

/* hash.c's vr_hash_keyed of count words. */
static __always_inline __u64 sum_of(struct scratch *from, __u32 at, __u32 count, __u64 first_key)
{
    struct sum s = {first_key ^ 0x736f6d6570736575,
                    area.gate.key[1] ^ 0x646f72616e646f6d,
                    first_key ^ 0x6c7967656e657261,
                    area.gate.key[1] ^ 0x7465646279746573,
                    from,
                    at};
    bpf_loop(count, absorb_next, &s, 0);
    absorb(&s, (__u64)count * 8 << 56);
    s.c ^= 0xff;
    mix(&s);
    mix(&s);
    mix(&s);
    if (area.gate.two_rounds)
        mix(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

/* Whether every byte is as the primary sealed it. */
static __always_inline int is_whole(struct scratch *p, __u32 payload)
{
    __u64 checksum = p->words[AT_CHECKSUM];
    p->words[AT_CHECKSUM] = 0;
    if (sum_of(p, 0, 8, area.gate.key[0]) != checksum)
        return 0;
    __u64 key = area.gate.body_key;
    __u64 body = sum_of(p, 8, 8, key) * 3 + sum_of(p, 16, (payload - 2 * HEADER) / 8, key);
    return body == p->words[AT_BODY_CHECKSUM];
}

/* Whether it is the prepare that is next, from who leads this view. */
static __always_inline int is_next(const struct scratch *p, __u32 payload, __u64 op)
{
    const struct vr_xdp_gate *g = &area.gate;
    __u64 type = p->words[AT_TYPE], body = payload - 2 * HEADER;
    __u64 wanted = MAGIC_AND_VERSION | (__u64)TYPE_PREPARE << 24 | (__u64)g->primary << 40 |
                   (__u64)g->epoch << 48; /* and no flags */
    return type == wanted && p->words[AT_OP] == op && op <= g->last_op &&
           p->words[AT_VIEW] == g->view &&
           p->words[AT_CLUSTER] == (g->cluster | (__u64)(payload - HEADER) << 32) &&
           p->words[ENTRY_OP] == op && p->words[ENTRY_VIEW] == g->view &&
           p->words[ENTRY_PARENT] == g->parent && g->parent &&
           (__u32)p->words[ENTRY_SIZE] == body && body <= g->body_max;
}

/* View and epoch stay the packet's, which were the gate's when the promise was made: by now the
 * gate may have been opened for another view. */
static __always_inline void seal_answer(struct scratch *p, __u64 op)
{
    const struct vr_xdp_gate *g = &area.gate;
    p->words[AT_TYPE] = MAGIC_AND_VERSION | (__u64)TYPE_PREPARE_OK << 24 | (__u64)g->own << 40 |
                        (p->words[AT_TYPE] & 0xffffULL << 48);
    p->words[AT_CHECKSUM] = 0;
    p->words[AT_BODY_CHECKSUM] = 0;
    p->words[AT_CLUSTER] = g->cluster;
    p->words[AT_OP] = op;
    p->words[AT_COMMIT] = g->commit;
    p->words[AT_PARENT] = 0;
    p->words[AT_CHECKSUM] = sum_of(p, 0, 8, area.gate.key[0]);
}

/* The same way back.  UDP goes without a checksum: the packet has its own. */
static __always_inline int turn_round(struct xdp_md *ctx, struct scratch *answer, __u32 payload)
{
    if (bpf_xdp_adjust_tail(ctx, (int)HEADER - (int)payload))
        return XDP_DROP;
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct ethhdr *eth = data;
    struct iphdr *ip = data + sizeof(*eth);
    struct udphdr *udp = data + sizeof(*eth) + sizeof(*ip);
    if (data + PAYLOAD_AT + HEADER > end)
        return XDP_DROP;
    unsigned char address[ETH_ALEN];
    __builtin_memcpy(address, eth->h_dest, ETH_ALEN);
    __builtin_memcpy(eth->h_dest, eth->h_source, ETH_ALEN);
    __builtin_memcpy(eth->h_source, address, ETH_ALEN);
    ip->saddr = area.gate.own_address;
    ip->daddr = area.gate.primary_address;
    ip->tot_len = bpf_htons(sizeof(*ip) + sizeof(*udp) + HEADER);
    ip->ttl = 64;
    ip->check = 0;
    __u32 sum = 0;
    __u16 *half = (__u16 *)ip;
#pragma unroll
    for (unsigned i = 0; i < sizeof(*ip) / 2; i++)
        sum += half[i];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    ip->check = (__u16)~sum;
    udp->source = area.gate.own_port;
    udp->dest = area.gate.primary_port;
    udp->len = bpf_htons(sizeof(*udp) + HEADER);
    udp->check = 0;
    return bpf_xdp_store_bytes(ctx, PAYLOAD_AT, answer->words, HEADER) ? XDP_DROP : XDP_TX;
}

/* The bytes behind UDP's header if this packet is between the two; 0: it is not. */
static __always_inline __u32 payload_of(struct xdp_md *ctx)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct ethhdr *eth = data;
    struct iphdr *ip = data + sizeof(*eth);
    struct udphdr *udp = data + sizeof(*eth) + sizeof(*ip);
    const struct vr_xdp_gate *g = &area.gate;
    if (data + PAYLOAD_AT > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->version != 4 ||
        ip->ihl != 5 || ip->protocol != IPPROTO_UDP || ip->frag_off & bpf_htons(0x3fff) ||
        ip->daddr != g->own_address || udp->dest != g->own_port ||
        ip->saddr != g->primary_address || udp->source != g->primary_port)
        return 0;
    __u32 size = bpf_ntohs(udp->len);
    if (size < sizeof(*udp) + PAYLOAD_LEAST || size % 8 ||
        data + PAYLOAD_AT - sizeof(*udp) + size > end)
        return 0;
    return size - sizeof(*udp);
}

SEC("xdp") int vr_ack(struct xdp_md *ctx)
{
    __u32 zero = 0, payload;
    if (*(volatile __u64 *)&area.gate.word == 0)
        return XDP_PASS;
    /* Read with a full barrier: what is read behind it is not older than the word. */
    __u64 word = __sync_fetch_and_add(&area.gate.word, 0), op = word & VR_XDP_OP_MASK;
    payload = payload_of(ctx);
    if (word == 0 || payload < PAYLOAD_LEAST || payload > VR_XDP_BYTES)
        return XDP_PASS;
    struct scratch *p = bpf_map_lookup_elem(&scratches, &zero);
    if (!p || bpf_xdp_load_bytes(ctx, PAYLOAD_AT, p->words, payload) || !is_next(p, payload, op) ||
        !is_whole(p, payload))
        return XDP_PASS;
    /* From here on it is promised, or the gate has been closed or passed by another. */
    if (__sync_val_compare_and_swap(&area.gate.word, word, word + 1) != word)
        return XDP_PASS;
    struct vr_xdp_slot *slot = &area.slots[op & (VR_XDP_SLOTS - 1)];
    int failed = bpf_xdp_load_bytes(ctx, PAYLOAD_AT, slot->bytes, payload) != 0;
    slot->size = failed ? 0 : payload;
    /* Behind one that is not there nothing is promised either. */
    *(volatile __u64 *)&area.gate.parent = failed ? 0 : p->words[ENTRY_CHECKSUM];
    __sync_lock_test_and_set(&slot->ready, word); /* a full barrier: bytes and size before it */
    if (failed)
        return XDP_PASS; /* nothing was promised after all; the replica sees that it is empty */
    __sync_fetch_and_add(&area.gate.acknowledged, 1);
    seal_answer(p, op);
    return turn_round(ctx, p, payload);
}

char _license[] SEC("license") = "Dual MIT/GPL";

/* SPDX-License-Identifier: MIT */
/*
 * At the egress of the sender's device: a packet that is addressed to the group leaves once for
 * each peer.  A copy goes out by the same device and comes here again, as what it then is.
 *
 * Where peers are other hosts, a copy has the address of its peer and still the group's port when
 * it comes here the second time: it gets the right port, and the kernel's neighbour table gives it
 * the hardware address of its next hop (bpf_redirect_neigh).  The third time it is an ordinary
 * packet.  The group has a multicast address, so that the first pass needs no neighbour that might
 * be dead.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tc_shared.h"

#define NEXT (-1) /* TCX_NEXT: none of this program's business */
#define PASS 0    /* TCX_PASS */
#define DROP 2    /* TCX_DROP */

struct frame {
    struct ethhdr ethernet;
    struct iphdr ip;
    struct udphdr udp;
} __attribute__((packed));

#define AT_ADDRESS offsetof(struct frame, ip.daddr)
#define AT_ADDRESS_CHECK offsetof(struct frame, ip.check)
#define AT_PORT offsetof(struct frame, udp.dest)
#define AT_CHECK offsetof(struct frame, udp.check)
#define FRAGMENT 0x3fff /* more to come, or not the first */

const volatile struct vr_tc_plan plan;

/* A checksum of 0 is none, and stays none. */
static __always_inline void set_port(struct __sk_buff *skb, __u16 from, __u16 to)
{
    bpf_l4_csum_replace(skb, AT_CHECK, from, to, BPF_F_MARK_MANGLED_0 | sizeof(to));
    bpf_skb_store_bytes(skb, AT_PORT, &to, sizeof(to), 0);
}

static __always_inline void set_address(struct __sk_buff *skb, __u32 from, __u32 to)
{
    bpf_l3_csum_replace(skb, AT_ADDRESS_CHECK, from, to, sizeof(to));
    bpf_l4_csum_replace(skb, AT_CHECK, from, to,
                        BPF_F_PSEUDO_HDR | BPF_F_MARK_MANGLED_0 | sizeof(to));
    bpf_skb_store_bytes(skb, AT_ADDRESS, &to, sizeof(to), 0);
}

/* On one address: the packet itself is the last copy. */
static __always_inline int copy_ports(struct __sk_buff *skb)
{
    __u16 port = plan.group.port;
    for (__u32 i = 0; i < VR_TC_PEERS && i < plan.count; i++) {
        set_port(skb, port, plan.peers[i].port);
        port = plan.peers[i].port;
        /* Not back as if from outside: it would lose its route, and be dropped for its source. */
        if (i + 1 < plan.count)
            bpf_clone_redirect(skb, plan.device, 0);
    }
    return PASS;
}

static __always_inline int finish_copy(struct __sk_buff *skb, __u16 port)
{
    set_port(skb, plan.group.port, port);
    return (int)bpf_redirect_neigh(plan.device, NULL, 0, 0);
}

/* To hosts; here, too, the packet itself is the last copy. */
static __always_inline int copy_hosts(struct __sk_buff *skb)
{
    static const __u8 somebody[ETH_ALEN] = {2}; /* not a group, which is never redirected */
    __u32 address = plan.group.address, last = plan.count - 1;
    bpf_skb_store_bytes(skb, 0, somebody, sizeof(somebody), 0);
    for (__u32 i = 0; i < VR_TC_PEERS && i <= last; i++) {
        set_address(skb, address, plan.peers[i].address);
        address = plan.peers[i].address;
        if (i == last)
            return finish_copy(skb, plan.peers[i].port);
        bpf_clone_redirect(skb, plan.device, 0);
    }
    return DROP;
}

static __always_inline int finish_for(struct __sk_buff *skb, __u32 address)
{
    for (__u32 i = 0; i < VR_TC_PEERS && i < plan.count; i++)
        if (plan.peers[i].address == address)
            return finish_copy(skb, plan.peers[i].port);
    return NEXT;
}

SEC("tc")
int vr_broadcast(struct __sk_buff *skb)
{
    const struct frame *f = (void *)(long)skb->data;
    if ((void *)(f + 1) > (void *)(long)skb->data_end ||
        f->ethernet.h_proto != bpf_htons(ETH_P_IP) || f->ip.ihl != 5 || f->ip.version != 4 ||
        f->ip.protocol != IPPROTO_UDP || f->ip.frag_off & bpf_htons(FRAGMENT) ||
        f->ip.saddr != plan.own.address || f->udp.source != plan.own.port ||
        f->udp.dest != plan.group.port)
        return NEXT;
    if (f->ip.daddr == plan.group.address)
        return plan.one_address ? copy_ports(skb) : copy_hosts(skb);
    return plan.one_address ? NEXT : finish_for(skb, f->ip.daddr);
}

char licence[] SEC("license") = "MIT";

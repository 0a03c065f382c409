/* SPDX-License-Identifier: MIT */
#include "vr/net/io_tc.h"
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#if HAVE_VR_XDP

#include "vr/net/tc_shared.h"

#include "tc_broadcast.skel.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define HOOK_EGRESS 47           /* BPF_TCX_EGRESS of Linux 6.6, which not all headers have */
#define GROUP_ADDRESS 0xefff5652 /* 239.255.86.82, of those for private use */
#define GROUP_PORT 9             /* discard */
#define GROUP_HOPS 64
#define HEADERS_BYTES 28 /* IPv4 without options, UDP */

/* The address from which this machine would send to the peer. */
static uint32_t source_for(const union vr_address *peer)
{
    union vr_address from = {0};
    socklen_t size = sizeof(from);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    bool found = connect(fd, &peer->any, vr_address_size(peer)) == 0 &&
                 getsockname(fd, &from.any, &size) == 0;
    close(fd);
    return found ? from.v4.sin_addr.s_addr : 0;
}

static int check_hosts(const union vr_address *own, const union vr_address *peers, uint32_t count,
                       struct error *err)
{
    char text[VR_ADDRESS_TEXT_MAX];
    for (uint32_t i = 0; i < count; i++) {
        if (source_for(&peers[i]) != own->v4.sin_addr.s_addr)
            return error_set(err, -EOPNOTSUPP, "the route to %s does not use this replica's device",
                             vr_address_format(&peers[i], text));
        for (uint32_t j = 0; j <= i; j++)
            if ((j < i ? peers[j] : *own).v4.sin_addr.s_addr == peers[i].v4.sin_addr.s_addr)
                return error_set(err, -EOPNOTSUPP, "%s is not the only replica on its host",
                                 vr_address_format(&peers[i], text));
    }
    return 0;
}

/* The program reads Ethernet, and knows nothing of datagrams that the kernel must cut. */
static int check_device(int socket, const char *device, size_t datagram_bytes, struct error *err)
{
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
    if (ioctl(socket, SIOCGIFHWADDR, &request) || (request.ifr_hwaddr.sa_family != ARPHRD_ETHER &&
                                                   request.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK))
        return error_set(err, -EOPNOTSUPP, "%s is not an Ethernet device", device);
    if (ioctl(socket, SIOCGIFMTU, &request) ||
        (size_t)request.ifr_mtu < datagram_bytes + HEADERS_BYTES)
        return error_set(err, -EMSGSIZE,
                         "the MTU of %s is %d bytes, less than a datagram of %zu with its headers; "
                         "make 'datagram' smaller",
                         device, request.ifr_mtu, datagram_bytes);
    return 0;
}

/* Where the socket sends what is meant for the group. */
static int prepare_socket(int socket, const union vr_address *own, struct error *err)
{
    struct ip_mreqn by = {.imr_address = own->v4.sin_addr};
    int hops = GROUP_HOPS, loop = 0;
    if (setsockopt(socket, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof(by)) ||
        setsockopt(socket, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof(hops)) ||
        setsockopt(socket, IPPROTO_IP, IP_MULTICAST_LOOP, &loop, sizeof(loop)))
        return error_errno(err, -errno, "sending to a group");
    return 0;
}

static struct vr_tc_place place(const union vr_address *address)
{
    return (struct vr_tc_place){address->v4.sin_addr.s_addr, address->v4.sin_port, 0};
}

static int load(struct vr_tc *tc, const union vr_address *own, unsigned device, bool one_address,
                struct error *err)
{
    libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
    tc->program = tc_broadcast__open();
    if (!tc->program)
        return error_errno(err, -errno, "opening the program");
    struct vr_tc_plan plan = {.own = place(own),
                              .group = place(&tc->group),
                              .count = tc->count,
                              .device = device,
                              .one_address = one_address};
    for (uint32_t i = 0; i < tc->count; i++)
        plan.peers[i] = place(&tc->peers[i]);
    memcpy(&tc->program->rodata->plan, &plan, sizeof(plan));
    int result = tc_broadcast__load(tc->program);
    return result ? error_errno(err, result, "loading the program (it needs root)") : 0;
}

/* libbpf 1.1 has no words for TCX. */
static int attach(struct vr_tc *tc, unsigned device, struct error *err)
{
    union bpf_attr attr = {0};
    attr.link_create.prog_fd = (__u32)bpf_program__fd(tc->program->progs.vr_broadcast);
    attr.link_create.target_ifindex = device;
    attr.link_create.attach_type = HOOK_EGRESS;
    tc->link_fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
    if (tc->link_fd >= 0)
        return 0;
    return error_errno(err, -errno, "attaching it at the egress of %s (Linux 6.6)", tc->device);
}

static int be_silent(enum libbpf_print_level level, const char *format, va_list words)
{
    (void)level, (void)format, (void)words;
    return 0;
}

int vr_tc_open(struct vr_tc *tc, int socket, const union vr_address *own,
               const union vr_address *peers, uint32_t count, size_t datagram_bytes,
               struct error *err)
{
    bool one_address = vr_address_is_loopback(own);
    *tc = (struct vr_tc){.link_fd = -1, .group = *own};
    if (count < 2 || count > VR_TC_PEERS)
        return error_set(err, -EINVAL, "there are no packets to save");
    if (own->any.sa_family != AF_INET)
        return error_set(err, -EAFNOSUPPORT, "it copies IPv4 packets only");
    for (uint32_t i = 0; i < count; i++)
        one_address = one_address && peers[i].v4.sin_addr.s_addr == own->v4.sin_addr.s_addr;
    unsigned device = vr_device_of(own, tc->device);
    if (!device)
        return error_set(err, -ENODEV, "no device has this replica's address");
    int result = check_device(socket, tc->device, datagram_bytes, err);
    if (!result && !one_address) {
        tc->group.v4.sin_addr.s_addr = htonl(GROUP_ADDRESS);
        tc->group.v4.sin_port = htons(GROUP_PORT);
        result = check_hosts(own, peers, count, err);
        if (!result)
            result = prepare_socket(socket, own, err);
    }
    if (result)
        return result;
    tc->count = count;
    memcpy(tc->peers, peers, count * sizeof(*peers));
    libbpf_set_print(be_silent);
    result = load(tc, own, device, one_address, err);
    if (!result)
        result = attach(tc, device, err);
    if (result)
        vr_tc_close(tc);
    return result;
}

void vr_tc_close(struct vr_tc *tc)
{
    if (tc->program && tc->link_fd >= 0)
        close(tc->link_fd);
    tc_broadcast__destroy(tc->program);
    *tc = (struct vr_tc){.link_fd = -1};
}

#else

int vr_tc_open(struct vr_tc *tc, int socket, const union vr_address *own,
               const union vr_address *peers, uint32_t count, size_t datagram_bytes,
               struct error *err)
{
    (void)socket, (void)own, (void)peers, (void)count, (void)datagram_bytes;
    *tc = (struct vr_tc){.link_fd = -1};
    return error_set(err, -EOPNOTSUPP, "built without clang, bpftool or libbpf");
}

void vr_tc_close(struct vr_tc *tc)
{
    *tc = (struct vr_tc){.link_fd = -1};
}

#endif

bool vr_tc_covers(const struct vr_tc *tc, const union vr_address *to, uint32_t count)
{
    if (count == 0 || count != tc->count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!vr_address_same(&to[i], &tc->peers[i]))
            return false;
    return true;
}

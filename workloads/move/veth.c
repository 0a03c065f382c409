/* SPDX-License-Identifier: MIT */
/* Network namespaces and a veth pair by rtnetlink: see veth.h. */
#include "veth.h"
#include "base/fd.h"
#include "base/memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#define SENDER_NAME "move0"
#define RECEIVER_NAME "move1"

struct request {
    struct nlmsghdr head;
    char body[1024];
};

static void *put(struct request *q, const void *bytes, size_t length)
{
    void *at = (char *)q + NLMSG_ALIGN(q->head.nlmsg_len);
    memcpy(at, bytes, length);
    q->head.nlmsg_len = NLMSG_ALIGN(q->head.nlmsg_len) + (uint32_t)length;
    return at;
}

static struct rtattr *attribute(struct request *q, unsigned short type, const void *bytes,
                                size_t length)
{
    struct rtattr head = {.rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(length)};
    struct rtattr *at = put(q, &head, sizeof(head));
    if (length)
        put(q, bytes, length);
    return at;
}

static void nest_end(struct request *q, struct rtattr *nest)
{
    nest->rta_len = (unsigned short)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len) - (char *)nest);
}

static struct request request(unsigned short type, unsigned short flags)
{
    return (struct request){
        .head = {.nlmsg_len = NLMSG_HDRLEN,
                 .nlmsg_type = type,
                 .nlmsg_flags = (unsigned short)(NLM_F_REQUEST | NLM_F_ACK | flags),
                 .nlmsg_seq = 1}};
}

/* Sends the request and returns what the kernel says to it. */
static int talk(struct request *q)
{
    CLEANUP(fd_closep) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0 || send(fd, q, q->head.nlmsg_len, 0) < 0)
        return -errno;
    char answer[4096];
    ssize_t got = recv(fd, answer, sizeof(answer), 0);
    if (got < (ssize_t)(NLMSG_HDRLEN + sizeof(struct nlmsgerr)))
        return got < 0 ? -errno : -EPROTO;
    const struct nlmsghdr *head = (const struct nlmsghdr *)answer;
    return head->nlmsg_type == NLMSG_ERROR ? ((const struct nlmsgerr *)NLMSG_DATA(head))->error
                                           : -EPROTO;
}

static int set_up(const char *name, const char *address)
{
    int index = (int)if_nametoindex(name);
    struct in_addr ip;
    if (!index)
        return -errno;
    struct request q = request(RTM_NEWLINK, 0);
    struct ifinfomsg info = {.ifi_index = index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    put(&q, &info, sizeof(info));
    int r = talk(&q);
    if (r < 0 || !address)
        return r;
    inet_pton(AF_INET, address, &ip);
    q = request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
    struct ifaddrmsg a = {.ifa_family = AF_INET, .ifa_prefixlen = 24, .ifa_index = (unsigned)index};
    put(&q, &a, sizeof(a));
    attribute(&q, IFA_LOCAL, &ip, sizeof(ip));
    attribute(&q, IFA_ADDRESS, &ip, sizeof(ip));
    return talk(&q);
}

int veth_enter(struct error *err)
{
    if (unshare(CLONE_NEWNET) == 0)
        return set_up("lo", NULL) < 0 ? error_set(err, -EIO, "no loopback in the new namespace")
                                      : 0;
    if (errno == EPERM)
        return error_set(err, -EPERM,
                         "--transport veth creates network namespaces, which needs root "
                         "(CAP_SYS_ADMIN); tcp does not");
    return error_errno(err, -errno, "a network namespace for --transport veth");
}

/* The pair itself; the far end goes into the namespace of the process, or stays here (0). */
static int make_pair(uint32_t far_pid, uint32_t mtu)
{
    struct request q = request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    struct ifinfomsg info = {0};
    put(&q, &info, sizeof(info));
    attribute(&q, IFLA_IFNAME, SENDER_NAME, sizeof(SENDER_NAME));
    if (mtu)
        attribute(&q, IFLA_MTU, &mtu, sizeof(mtu));
    struct rtattr *link = attribute(&q, IFLA_LINKINFO, NULL, 0);
    attribute(&q, IFLA_INFO_KIND, "veth", 5);
    struct rtattr *data = attribute(&q, IFLA_INFO_DATA, NULL, 0);
    struct rtattr *peer = attribute(&q, VETH_INFO_PEER, NULL, 0);
    put(&q, &info, sizeof(info));
    attribute(&q, IFLA_IFNAME, RECEIVER_NAME, sizeof(RECEIVER_NAME));
    if (mtu)
        attribute(&q, IFLA_MTU, &mtu, sizeof(mtu));
    if (far_pid)
        attribute(&q, IFLA_NET_NS_PID, &far_pid, sizeof(far_pid));
    nest_end(&q, peer);
    nest_end(&q, data);
    nest_end(&q, link);
    return talk(&q);
}

int veth_create(int receiver_pid, struct error *err)
{
    int r = make_pair((uint32_t)receiver_pid, 0);
    r = r ? r : set_up(SENDER_NAME, VETH_SENDER_ADDRESS);
    return r < 0 ? error_errno(err, r, "a veth pair between the namespaces") : 0;
}

/* Says where the receiver's address is, so that nobody has to answer for it. */
static int add_neighbour(void)
{
    static const unsigned char hardware[6] = {2, 0, 0, 0, 0, 2};
    struct in_addr ip;
    struct ndmsg n = {.ndm_family = AF_INET,
                      .ndm_ifindex = (int)if_nametoindex(SENDER_NAME),
                      .ndm_state = NUD_PERMANENT};
    inet_pton(AF_INET, VETH_RECEIVER_ADDRESS, &ip);
    struct request q = request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
    put(&q, &n, sizeof(n));
    attribute(&q, NDA_DST, &ip, sizeof(ip));
    attribute(&q, NDA_LLADDR, hardware, sizeof(hardware));
    return talk(&q);
}

int veth_create_sink(unsigned *ret_far_index, struct error *err)
{
    int r = make_pair(0, VETH_SINK_MTU);
    r = r ? r : set_up(SENDER_NAME, VETH_SENDER_ADDRESS);
    r = r ? r : set_up(RECEIVER_NAME, NULL);
    r = r ? r : add_neighbour();
    if (r < 0)
        return error_errno(err, r, "a veth pair to send into");
    *ret_far_index = if_nametoindex(RECEIVER_NAME);
    return 0;
}

int veth_join(struct error *err)
{
    int r = set_up(RECEIVER_NAME, VETH_RECEIVER_ADDRESS);
    return r < 0 ? error_errno(err, r, "the receiver's end of the veth pair") : 0;
}

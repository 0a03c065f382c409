/* SPDX-License-Identifier: MIT */
/* What all ways of moving packets share: the queue of datagrams, sockets, addresses. */
#include "vr/net/io.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "config.h"
#include "vr/net/io_ways.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/socket.h>

const struct vr_io_way *const vr_io_ways[] = {
    &vr_io_epoll,
    &vr_io_spin,
#if HAVE_LIBURING
    &vr_io_uring,
    &vr_io_uring_spin,
    &vr_io_uring_tc,
    &vr_io_uring_xdp,
    &vr_io_uring_eventfd,
    &vr_io_uring_eventfd_unread,
#endif
    NULL,
};

const struct vr_io_way *vr_io_find(const char *name, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf names = {0};
    for (size_t i = 0; vr_io_ways[i]; i++) {
        if (str_eq(name, vr_io_ways[i]->name))
            return vr_io_ways[i];
        strbuf_printf(&names, "%s%s", i ? ", " : "", vr_io_ways[i]->name);
    }
    if (!HAVE_LIBURING && str_has_prefix(name, "uring"))
        error_set(err, -EOPNOTSUPP, "assay-vr was built without liburing and has no transport '%s'",
                  name);
    else
        error_set(err, -EINVAL, "there is no transport '%s'; available: %s", name,
                  strbuf_text(&names));
    return NULL;
}

int vr_io_open(struct vr_io *io, const struct vr_io_way *way, int *sockets, uint32_t socket_count,
               size_t datagram_bytes, bool with_disk, struct vr_io_handler handler,
               struct error *err)
{
    *io = (struct vr_io){.way = way,
                         .handler = handler,
                         .sockets = sockets,
                         .socket_count = socket_count,
                         .datagram_bytes = datagram_bytes,
                         .with_disk = with_disk};
    io->outs = memory_zalloc(VR_IO_OUT_MAX, sizeof(*io->outs));
    io->arena = memory_alloc(VR_IO_ARENA_BYTES);
    int result = way->open(io, err);
    if (result) {
        free(io->outs);
        free(io->arena);
        *io = (struct vr_io){0};
        return error_wrap(err, result, "transport %s", way->name);
    }
    return 0;
}

void vr_io_close(struct vr_io *io)
{
    if (!io->way)
        return;
    io->way->close(io);
    free(io->outs);
    free(io->arena);
    *io = (struct vr_io){0};
}

void vr_io_send(struct vr_io *io, uint32_t socket, const struct sockaddr_in *to, uint32_t count,
                const void *bytes, size_t size)
{
    if (io->out_count + count > VR_IO_OUT_MAX || io->arena_used + size > VR_IO_ARENA_BYTES)
        vr_io_flush(io);
    unsigned char *place = io->arena + io->arena_used;
    memcpy(place, bytes, size);
    io->arena_used += (size + 63) / 64 * 64;
    for (uint32_t i = 0; i < count; i++) {
        struct vr_io_out *out = &io->outs[io->out_count++];
        *out = (struct vr_io_out){.socket = socket, .size = (uint32_t)size, .bytes = place};
        if (to)
            out->to = to[i];
    }
    io->counters.sent += count;
}

int vr_io_turn(struct vr_io *io, uint64_t deadline_ns, struct error *err)
{
    io->counters.waits++;
    int result = io->way->wait(io, deadline_ns, err);
    return !result && io->receive_error
               ? error_errno(err, io->receive_error,
                             "receiving with %s (it needs Linux 6.0; epoll works everywhere)",
                             io->way->name)
               : result;
}

int vr_socket_open(const struct sockaddr_in *address, struct error *err)
{
    char text[VR_ADDRESS_TEXT_MAX];
    CLEANUP(fd_closep)
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_errno(err, -errno, "opening a UDP socket");
    /* As much as is allowed: a burst of all clients must find room. */
    int bytes = 4 << 20;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    if (bind(fd, (const struct sockaddr *)address, sizeof(*address)))
        return error_errno(err, -errno, "binding %s", vr_address_format(address, text));
    int result = fd;
    fd = -1;
    return result;
}

int vr_address_parse(const char *text, struct sockaddr_in *ret_address, struct error *err)
{
    char host[INET_ADDRSTRLEN];
    const char *colon = strrchr(text, ':');
    uint64_t port = 0;
    struct in_addr address;
    if (!colon || (size_t)(colon - text) >= sizeof(host))
        return error_set(err, -EINVAL, "'%s' is not an address; write e.g. 127.0.0.1:4701", text);
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    if (inet_pton(AF_INET, host, &address) != 1)
        return error_set(err, -EINVAL, "'%s' is not an IPv4 address (in '%s')", host, text);
    if (parse_u64(colon + 1, &port, NULL) || port == 0 || port > UINT16_MAX)
        return error_set(err, -EINVAL, "'%s' is not a port (in '%s')", colon + 1, text);
    *ret_address = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = address};
    return 0;
}

char *vr_address_format(const struct sockaddr_in *address, char *text)
{
    char host[INET_ADDRSTRLEN] = "?";
    inet_ntop(AF_INET, &address->sin_addr, host, sizeof(host));
    snprintf(text, VR_ADDRESS_TEXT_MAX, "%s:%u", host, ntohs(address->sin_port));
    return text;
}

bool vr_address_is_loopback(const struct sockaddr_in *address)
{
    return ntohl(address->sin_addr.s_addr) >> 24 == 127;
}

unsigned vr_device_of(const struct sockaddr_in *own, char *name)
{
    struct ifaddrs *all;
    unsigned device = 0;
    if (getifaddrs(&all))
        return 0;
    for (struct ifaddrs *i = all; i && !device; i = i->ifa_next) {
        const struct sockaddr_in *address = (const struct sockaddr_in *)(void *)i->ifa_addr;
        if (address && address->sin_family == AF_INET &&
            (address->sin_addr.s_addr == own->sin_addr.s_addr ||
             (i->ifa_flags & IFF_LOOPBACK && vr_address_is_loopback(own)))) {
            device = if_nametoindex(i->ifa_name);
            snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
        }
    }
    freeifaddrs(all);
    return device;
}

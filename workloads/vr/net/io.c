/* SPDX-License-Identifier: MIT */
/* What all ways of moving packets share: the queue of datagrams. */
#include "vr/net/io.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "config.h"
#include "vr/net/io_ways.h"
#include "vr/net/transport.h"

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
    if (vr_transport_check(name, err))
        return NULL;
    for (size_t i = 0; vr_io_ways[i]; i++)
        if (str_eq(name, vr_io_ways[i]->name))
            return vr_io_ways[i];
    error_set(err, -EINVAL, "there is no transport '%s'", name);
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

void vr_io_send(struct vr_io *io, uint32_t socket, const union vr_address *to, uint32_t count,
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

unsigned vr_device_of(const union vr_address *own, char *name)
{
    struct ifaddrs *all;
    unsigned device = 0;
    if (own->any.sa_family != AF_INET || getifaddrs(&all))
        return 0;
    for (struct ifaddrs *i = all; i && !device; i = i->ifa_next) {
        const struct sockaddr_in *address = (const struct sockaddr_in *)(void *)i->ifa_addr;
        if (address && address->sin_family == AF_INET &&
            (address->sin_addr.s_addr == own->v4.sin_addr.s_addr ||
             (i->ifa_flags & IFF_LOOPBACK && vr_address_is_loopback(own)))) {
            device = if_nametoindex(i->ifa_name);
            snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
        }
    }
    freeifaddrs(all);
    return device;
}

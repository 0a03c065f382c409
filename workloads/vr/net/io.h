/* SPDX-License-Identifier: MIT */
/*
 * How packets travel and disks are written: one interface, several ways.  A host queues datagrams
 * and writes, then takes a turn, which hands over everything that was queued, waits until
 * something comes or the deadline passes, and calls back for each datagram and each finished
 * write.  Nothing is sent before the turn, so that one call to the kernel carries many packets.
 *
 * All memory is taken at vr_io_open.  One thread.
 */
#ifndef ASSAY_VR_IO_H
#define ASSAY_VR_IO_H

#include "vr/net/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vr_io;

struct vr_io_handler {
    /* One datagram; socket is the index of the one that it came by. */
    void (*packet)(void *context, uint32_t socket, const union vr_address *from, const void *bytes,
                   size_t size);
    /* A write or a sync has ended: bytes written, 0, or a negative errno. */
    void (*disk)(void *context, uint32_t tag, int result);
    void *context;
};

struct vr_io_way {
    const char *name, *summary;
    bool broadcasts; /* what goes to all peers is sent once and copied in the kernel (io_tc.h) */
    bool answers;    /* prepares are acknowledged at the device (io_xdp.h) */
    int (*open)(struct vr_io *io, struct error *err);
    void (*close)(struct vr_io *io);
    void (*flush)(struct vr_io *io); /* hands over what is queued */
    int (*wait)(struct vr_io *io, uint64_t deadline_ns, struct error *err);
    /* Queues a write of a file; dsync: it is durable when it ends. */
    void (*write)(struct vr_io *io, int fd, const void *bytes, size_t size, uint64_t offset,
                  bool dsync, uint32_t tag);
    void (*sync)(struct vr_io *io, int fd, uint32_t tag);
};

struct vr_io_out {
    uint32_t socket, size;
    const void *bytes;
    union vr_address to; /* sa_family 0: the socket is connected */
};

struct vr_io_counters {
    uint64_t sent, received, send_failures, waits, waits_empty;
};

#define VR_IO_OUT_MAX 512
#define VR_IO_ARENA_BYTES (1u << 21)
#define VR_IO_RECEIVE_MAX 64

struct vr_io {
    const struct vr_io_way *way;
    struct vr_io_handler handler;
    int *sockets;
    uint32_t socket_count;
    size_t datagram_bytes;
    bool with_disk;
    struct vr_io_out *outs;
    uint32_t out_count;
    unsigned char *arena;
    size_t arena_used;
    struct vr_io_counters counters;
    int receive_error; /* negative: this machine does not receive this way */
    void *state;       /* the way's own */
};

extern const struct vr_io_way *const vr_io_ways[]; /* NULL at the end */
const struct vr_io_way *vr_io_find(const char *name, struct error *err);

/* The sockets stay the caller's, and so does the array. */
int vr_io_open(struct vr_io *io, const struct vr_io_way *way, int *sockets, uint32_t socket_count,
               size_t datagram_bytes, bool with_disk, struct vr_io_handler handler,
               struct error *err);
void vr_io_close(struct vr_io *io);

/* Queues the same bytes for each of the addresses; NULL: the socket is connected. */
void vr_io_send(struct vr_io *io, uint32_t socket, const union vr_address *to, uint32_t count,
                const void *bytes, size_t size);
static inline void vr_io_flush(struct vr_io *io)
{
    io->way->flush(io);
}
/* Flushes, and waits until something came or the deadline has passed. */
int vr_io_turn(struct vr_io *io, uint64_t deadline_ns, struct error *err);

/* Calls the handler; for the ways. */
static inline void vr_io_deliver(struct vr_io *io, uint32_t socket, const union vr_address *from,
                                 const void *bytes, size_t size)
{
    io->counters.received++;
    io->handler.packet(io->handler.context, socket, from, bytes, size);
}

/* The number of the device that has the address (IPv4), or 0; name has room for IF_NAMESIZE. */
unsigned vr_device_of(const union vr_address *own, char *name);

#endif

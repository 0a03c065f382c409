/* SPDX-License-Identifier: MIT */
/*
 * Broadcast in the kernel (after Electrode, NSDI 2023): what is meant for all peers leaves this
 * process once, and a program at the egress of its device (TCX, Linux 6.6; tc_broadcast.bpf.c)
 * makes a copy for each.  The sender saves a pass through socket and IP layers for each peer but
 * one.
 *
 * Where all replicas share one loopback address the packet is addressed to the sender itself;
 * where they are hosts of one replica each, to a multicast group in which nobody is and the port of
 * "discard".  The program is gone when its descriptor is closed, however the process ends.  Only
 * prepares go this way: where it should fail unnoticed, heartbeats still tell what is missing.
 */
#ifndef ASSAY_VR_IO_TC_H
#define ASSAY_VR_IO_TC_H

#include "vr/core/wire.h"
#include "vr/net/io.h"

struct vr_tc {
    struct tc_broadcast *program;
    int link_fd;
    union vr_address group, peers[VR_NODES_MAX];
    uint32_t count; /* 0: not in place */
    char device[16];
};

/* Fails with words where kernel or permissions do not allow it: then packets go one by one. */
int vr_tc_open(struct vr_tc *tc, int socket, const union vr_address *own,
               const union vr_address *peers, uint32_t count, size_t datagram_bytes,
               struct error *err);
void vr_tc_close(struct vr_tc *tc);
/* Whether one packet to tc->group reaches just these. */
bool vr_tc_covers(const struct vr_tc *tc, const union vr_address *to, uint32_t count);

#endif

/* SPDX-License-Identifier: MIT */
/* Broadcast to all peers by one packet: a program at the egress of the loopback device. */
#ifndef ASSAY_VR_IO_TC_H
#define ASSAY_VR_IO_TC_H

#include "io.h"
#include "wire.h"

struct vr_tc {
    int program_fd, link_fd;
    struct sockaddr_in own, peers[VR_NODES_MAX];
    uint32_t count; /* 0: not in place */
};

/* Fails with words where kernel or permissions do not allow it: then packets go one by one. */
int vr_tc_open(struct vr_tc *tc, const struct sockaddr_in *own, const struct sockaddr_in *peers,
               uint32_t count, struct error *err);
void vr_tc_close(struct vr_tc *tc);
/* Whether one packet to tc->own reaches just these. */
bool vr_tc_covers(const struct vr_tc *tc, const struct sockaddr_in *to, uint32_t count);

#endif

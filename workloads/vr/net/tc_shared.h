/* SPDX-License-Identifier: MIT */
/* What the program at the device's egress (tc_broadcast.bpf.c) is told before it is loaded. */
#ifndef ASSAY_VR_TC_SHARED_H
#define ASSAY_VR_TC_SHARED_H

#define VR_TC_PEERS 15

/* Addresses and ports as they stand in packets. */
struct vr_tc_place {
    unsigned int address;
    unsigned short port, zero;
};

struct vr_tc_plan {
    struct vr_tc_place own;
    struct vr_tc_place group; /* what is sent there is meant for all peers */
    struct vr_tc_place peers[VR_TC_PEERS];
    unsigned int count, device;
    unsigned int one_address; /* all have the own one: copies differ in their port alone */
};

#endif

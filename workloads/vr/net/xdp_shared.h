/* SPDX-License-Identifier: MIT */
/*
 * What the program at the device (xdp_ack.bpf.c) and the replica (io_xdp.c) share: a gate, and
 * places for the entries that were acknowledged while the replica slept.  io_xdp.h says why this
 * is safe.
 */
#ifndef ASSAY_VR_XDP_SHARED_H
#define ASSAY_VR_XDP_SHARED_H

#define VR_XDP_SLOTS 32 /* a power of two */
#define VR_XDP_BYTES 1536
#define VR_XDP_OP_BITS 48
#define VR_XDP_OP_MASK ((1ULL << VR_XDP_OP_BITS) - 1)

struct vr_xdp_slot {
    unsigned long long ready; /* the gate's word when the entry was taken; written last */
    unsigned int size, zero;
    unsigned char bytes[VR_XDP_BYTES]; /* the packet, from its header on */
};

/* All but word and parent is written by the replica alone, while the gate is closed. */
struct vr_xdp_gate {
    /* How often it was opened << VR_XDP_OP_BITS | the op that is next; 0: closed. */
    unsigned long long word;
    unsigned long long parent;  /* checksum of the entry before it */
    unsigned long long last_op; /* none beyond this one */
    unsigned long long view, commit;
    unsigned long long key[2], body_key; /* the latter instead of key[0] for bodies */
    unsigned int two_rounds;             /* SipHash-2-4, not 1-3 */
    unsigned int cluster, body_max;
    unsigned int own_address, primary_address; /* as they stand in packets */
    unsigned short own_port, primary_port;
    unsigned char own, primary;
    unsigned short epoch;
    unsigned long long acknowledged; /* by the program, ever */
};

struct vr_xdp_area {
    struct vr_xdp_gate gate;
    struct vr_xdp_slot slots[VR_XDP_SLOTS];
};

#endif

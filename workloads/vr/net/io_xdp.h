/* SPDX-License-Identifier: MIT */
/*
 * Early acknowledgements (after Electrode, NSDI 2023): a program at the backup's device answers a
 * prepare before the backup has woken.  Only in memory: durable replicas acknowledge what is on
 * disk.
 *
 * What an acknowledgement promises: this replica has the entry, behind all entries before it, and
 * will say so in any view change.  The program may promise that only if nothing that the replica
 * does after can forget it:
 *
 * - The gate.  The replica opens it just before it waits, for one view, one next operation and the
 *   checksum of the entry before; and closes it as the first thing when it wakes, whatever woke
 *   it.  So while the replica handles a packet, a timer or anything else, nothing is acknowledged
 *   by anybody else.
 * - Opening, promising and closing are atomic steps on one word (number of the opening, next op).
 *   A promise is a compare-and-swap from the op to the next; closing swaps in 0 and learns by the
 *   old word how far promises went.  A program that looked before the closing and swaps after it
 *   fails, also when the gate is open again for the same op in another view: the number differs.
 * - The place.  A promised entry stands in a slot of memory shared with the replica, never in a
 *   queue that can overflow: there are more slots than ops that one opening allows.  The replica
 *   hands all promised entries to the core, in order, before the event that woke it.
 * - What is promised is whole: the program checks the packet's own checksums (with the cluster's
 *   key), its sender, view, op and parent, as the core does.  Should the core refuse an entry all
 *   the same, the replica ends at once, as by a crash: that is a fault that the protocol survives.
 * - A replica that is killed loses what is in memory, slots and log alike, and comes back by
 *   recovery, without a vote; a promise that leaves between its death and the end of the program
 *   is one that was made just before.  One that is stopped (SIGSTOP) has promised at most one
 *   opening's worth.
 *
 * An early answer that is lost is like any that is lost: the replica repeats its own, cumulative
 * ones, when it wakes: by the first packet that it has to see itself, which is every
 * VR_XDP_BURST-th prepare at the latest, or the heartbeat.
 */
#ifndef ASSAY_VR_IO_XDP_H
#define ASSAY_VR_IO_XDP_H

#include "vr/net/cluster.h"

#define VR_XDP_BURST 16

struct xdp_ack;

struct vr_xdp {
    struct xdp_ack *program; /* NULL: not in place */
    int link_fd;
    uint16_t opened;   /* how often */
    uint64_t first_op; /* of this opening; 0: closed */
    bool generic;
};

typedef void (*vr_xdp_deliver)(void *context, const void *bytes, size_t size);

/* The program in the kernel, but at no device yet; for tests. */
int vr_xdp_load(struct vr_xdp *x, struct error *err);
int vr_xdp_program_fd(const struct vr_xdp *x);
/* Fails with words where kernel, device or permissions do not allow it. */
int vr_xdp_open(struct vr_xdp *x, const struct vr_cluster *cluster, uint8_t index,
                struct error *err);
void vr_xdp_close(struct vr_xdp *x);

void vr_xdp_open_gate(struct vr_xdp *x, const struct vr_cluster *cluster, uint8_t index,
                      const struct vr_expected *expected);
/* Hands over what was acknowledged meanwhile, in order; returns the last op of it, or 0. */
uint64_t vr_xdp_close_gate(struct vr_xdp *x, vr_xdp_deliver deliver, void *context);
static inline bool vr_xdp_gate_is_open(const struct vr_xdp *x)
{
    return x->first_op != 0;
}
uint64_t vr_xdp_acknowledged(const struct vr_xdp *x); /* ever */

#endif

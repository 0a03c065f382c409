/* SPDX-License-Identifier: MIT */
/* Two network namespaces joined by a veth pair.  They are of the processes that entered them and
 * vanish with these. */
#ifndef ASSAY_MOVE_VETH_H
#define ASSAY_MOVE_VETH_H

#include "base/error.h"

#define VETH_SENDER_ADDRESS "10.119.0.1"
#define VETH_RECEIVER_ADDRESS "10.119.0.2"

/* Moves this process into a new, empty namespace; before it starts threads. */
int veth_enter(struct error *err);
/* The sender's: makes the pair, with the far end in the namespace of the process. */
int veth_create(int receiver_pid, struct error *err);
/* The receiver's: gives the far end its address. */
int veth_join(struct error *err);

/* Both ends in this namespace: what is sent to the receiver's address goes into the far end. */
#define VETH_SINK_MTU 65535
int veth_create_sink(unsigned *ret_far_index, struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* A replica as a process: the core, its packets, its file, and the loop that joins them. */
#ifndef ASSAY_VR_HOST_H
#define ASSAY_VR_HOST_H

#include "vr/core/packet.h"
#include "vr/disk/disk.h"
#include "vr/net/cluster.h"
#include "vr/net/io_tc.h"
#include "vr/net/io_xdp.h"

#include <signal.h>

/* Where clients are: learned from their requests, forgotten when their place is needed. */
struct vr_place {
    uint64_t client, number, seen;
    union vr_address address, other; /* other: of a later packet with the same number */
    struct vr_seal_choice seal;      /* its key */
    bool has_other;
};

struct vr_host {
    const struct vr_cluster *cluster;
    uint8_t index;
    struct vr_replica *core;
    struct vr_packets packets;
    struct vr_disk disk;
    struct vr_io io;
    struct vr_tc tc;       /* broadcast in the kernel, where the way does that */
    struct error tc_error; /* why it does not */
    struct vr_xdp xdp;     /* acknowledges at the device, where the way does that */
    struct error xdp_error;
    bool broken; /* an entry that was acknowledged is not in the log */
    int socket;
    uint64_t now_ns; /* 0: to be read again */
    struct vr_update *update;
    struct vr_place *places;
    uint32_t place_mask;
    uint64_t place_turn;
    uint64_t strangers; /* packets of a replica from elsewhere than its address */
    bool silent;        /* sends nothing to other replicas */
    uint32_t damaged;   /* places of the file that were found damaged */
    /* Called once, when the others have said that the file is an old copy; may be NULL. */
    void (*old_copy)(const struct vr_host *h);
    bool old_copy_told;
};

/* socket: bound already, or -1.  The cluster stays the caller's. */
int vr_host_open(struct vr_host *h, const struct vr_cluster *cluster, uint8_t index,
                 const struct vr_io_way *way, int socket, struct error *err);
/* Runs until *stop is set. */
int vr_host_run(struct vr_host *h, const volatile sig_atomic_t *stop, struct error *err);
void vr_host_close(struct vr_host *h);

#endif

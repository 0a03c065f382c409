/* SPDX-License-Identifier: MIT */
/* A cluster on this machine, one process for each replica, for benchmarks. */
#ifndef ASSAY_VR_LOCAL_H
#define ASSAY_VR_LOCAL_H

#include "vr/net/cluster.h"

#include <sys/types.h>

struct vr_local_settings {
    uint64_t replicas;
    const char *transport;
    bool in_memory;
    const char *folder;   /* where replicas keep their files; NULL: $TMPDIR or /tmp */
    const char *settings; /* further lines of the configuration, or NULL */
    const int *cpus;      /* of each replica, from the first again when they end; NULL: any */
    size_t cpu_count;
};

struct vr_local {
    struct vr_cluster cluster;
    char *folder, *config_path;
    uint32_t count;
    pid_t pids[VR_REPLICAS_MAX];            /* 0: not running */
    uint64_t ended_cpu_ns[VR_REPLICAS_MAX]; /* of those that were killed */
};

/* Formats and starts the replicas; they have their sockets before it returns. */
int vr_local_start(struct vr_local *l, const struct vr_local_settings *s, struct error *err);
/* Ends them and removes their files. */
void vr_local_stop(struct vr_local *l);
/* An error when a replica has ended that nobody killed. */
int vr_local_check(struct vr_local *l, struct error *err);
/* CPU time of a replica so far, or up to its end. */
uint64_t vr_local_cpu_ns(const struct vr_local *l, uint32_t index);
uint64_t vr_local_rss_bytes(const struct vr_local *l, uint32_t index);
/* Kills a replica as a power failure would. */
void vr_local_kill(struct vr_local *l, uint32_t index);

#endif

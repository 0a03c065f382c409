/* SPDX-License-Identifier: MIT */
/*
 * The configuration file that replicas and clients share: one setting in a line, "name value",
 * '#' begins a comment.
 *
 *   cluster 7
 *   replica 127.0.0.1:4701       (one line for each of the first group, in order)
 *   spare 127.0.0.1:4704         (behind them: who may be added to the group later)
 *   data /var/lib/assay-vr       (folder of the replicas' files, replica-0.vr …)
 *   key-file secret              (who shares it is obeyed; else loopback only)
 */
#ifndef ASSAY_VR_CLUSTER_H
#define ASSAY_VR_CLUSTER_H

#include "base/strings.h"
#include "vr/core/core.h"
#include "vr/net/io.h"

struct vr_cluster {
    struct vr_config config; /* index is the caller's to set */
    struct sockaddr_in addresses[VR_NODES_MAX];
    uint8_t node_count; /* replicas of the first group and spares */
    char *data, *transport;
    uint64_t datagram_bytes;
    bool secret; /* key is one that only members know */
    struct vr_key key;
};

int vr_cluster_read(struct vr_cluster *c, const char *path, struct error *err);
/* The same from a text; path is for messages and for names of files beside it. */
int vr_cluster_parse(struct vr_cluster *c, const char *text, const char *path, struct error *err);
void vr_cluster_done(struct vr_cluster *c);
/* The file of a replica; the caller frees it. */
char *vr_cluster_file(const struct vr_cluster *c, uint32_t index);

#endif

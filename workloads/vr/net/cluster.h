/* SPDX-License-Identifier: MIT */
/*
 * The configuration file that replicas and clients share: one setting in a line, "name value",
 * '#' begins a comment.
 *
 *   cluster 7
 *   replica 127.0.0.1:4701       (one line for each of the first group, in order; also [::1]:4701
 *                                 or a name)
 *   spare 127.0.0.1:4704         (behind them: who may be added to the group later)
 *   data /var/lib/assay-vr       (folder of the replicas' files, replica-0.vr …)
 *   key-file secret              (default: cluster.key; keys.h)
 *   accept-key-file old          (keys that are obeyed, too, while keys are changed)
 *   encrypt yes                  (crypt.h)
 *   open yes                     (no key: whoever can send a packet is obeyed)
 */
#ifndef ASSAY_VR_CLUSTER_H
#define ASSAY_VR_CLUSTER_H

#include "base/strings.h"
#include "vr/core/packet.h"
#include "vr/net/address.h"
#include "vr/net/crypt.h"
#include "vr/net/keys.h"

struct vr_cluster {
    struct vr_config config; /* index is the caller's to set */
    union vr_address addresses[VR_NODES_MAX];
    uint8_t node_count; /* replicas of the first group and spares */
    char *data, *transport;
    uint64_t datagram_bytes;
    char *key_path, *accept_path; /* accept_path: NULL: none */
    bool open;                    /* there is no secret, and sums only find damage */
    struct vr_key_file key, accept;
    bool encrypt; /* datagrams, with keys that follow from these */
    struct vr_crypt *crypt;
};

/* The configuration and its keys. */
int vr_cluster_read(struct vr_cluster *c, const char *path, struct error *err);
/* The configuration only: the key may still have to be made. */
int vr_cluster_read_settings(struct vr_cluster *c, const char *path, struct error *err);
/* The same from a text, without keys (those of an open cluster are there); path is for messages and
 * for names of files beside it. */
int vr_cluster_parse(struct vr_cluster *c, const char *text, const char *path, struct error *err);
int vr_cluster_read_keys(struct vr_cluster *c, struct error *err);
/* Sets a packet's keys to the cluster's, which must stay as it is meanwhile. */
void vr_cluster_use_keys(const struct vr_cluster *c, struct vr_packets *packets);
void vr_cluster_done(struct vr_cluster *c);
/* The file of a replica; the caller frees it. */
char *vr_cluster_file(const struct vr_cluster *c, uint32_t index);

#endif

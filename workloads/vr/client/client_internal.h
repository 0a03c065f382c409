/* SPDX-License-Identifier: MIT */
/* What the files of the client library share. */
#ifndef ASSAY_VR_CLIENT_INTERNAL_H
#define ASSAY_VR_CLIENT_INTERNAL_H

#include "vr/client/caller.h"
#include "vr/client/client.h"

#define PATIENCE_NS (100 * NS_PER_MS)

/* A session, and the operation that it waits for. */
struct vr_call {
    struct vr_caller caller;
    uint64_t deadline_ns, again_ns;
    vr_client_done done; /* NULL: it waits for nothing */
    void *context;
    /* Until the session has begun: */
    uint32_t opcode, size;
    unsigned char *data;
};

struct vr_client {
    struct vr_cluster own; /* when it was opened by a path */
    const struct vr_cluster *cluster;
    int socket;
    uint64_t timeout_ns;
    struct vr_packets packets;
    struct vr_call *calls[VR_CLIENT_CALLS_MAX]; /* NULL behind those that were ever needed */
    uint32_t under_way;
    uint64_t ended;     /* calls, ever */
    uint64_t answer_op; /* where the operation that was answered last stands in the log */
    unsigned char *datagram;
};

void vr_client_send(struct vr_client *c, struct vr_message *m, uint8_t to);
/* The next message until the deadline; false when there is none. */
bool vr_client_next(struct vr_client *c, uint64_t deadline_ns, struct vr_header *ret_header,
                    const void **ret_body);
int vr_client_no_answer(const struct vr_client *c, struct error *err);
int vr_client_check_role(const struct vr_client *c, enum vr_type type, uint32_t opcode,
                         struct error *err);

#endif

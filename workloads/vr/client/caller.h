/* SPDX-License-Identifier: MIT */
/*
 * One client's side of the protocol without any input or output: it makes requests and understands
 * answers.  One request at a time; it is sent again, to everybody, until an answer comes, and is
 * executed once all the same.
 */
#ifndef ASSAY_VR_CALLER_H
#define ASSAY_VR_CALLER_H

#include "base/error.h"
#include "vr/core/packet.h"

#define VR_CALLER_DATA_MAX 8192

struct vr_caller {
    uint64_t id, session, number;
    uint64_t answer_op; /* where the last answered request stands in the log */
    uint8_t primary;    /* who answered last */
    bool registered, waiting;
    struct vr_message message; /* the request that waits, to be given to vr_packets_send */
    uint64_t body[(sizeof(struct vr_request) + VR_CALLER_DATA_MAX) / 8];
};

enum vr_answer {
    VR_ANSWER_NONE, /* not for this request */
    VR_ANSWER_REGISTERED,
    VR_ANSWER_REPLY,
    VR_ANSWER_EVICTED, /* whether the request was executed nobody knows; register anew */
};

/* id is random and not 0: nobody else's. */
void vr_caller_init(struct vr_caller *c, uint32_t cluster, uint64_t id);
/* Whether the cluster takes requests with so much data: each must fit into one entry of the log. */
int vr_caller_check_size(const struct vr_config *config, uint64_t size, struct error *err);
void vr_caller_register(struct vr_caller *c);
void vr_caller_request(struct vr_caller *c, uint32_t opcode, const void *data, uint32_t size);
/* ret_data points into body. */
enum vr_answer vr_caller_receive(struct vr_caller *c, const struct vr_header *header,
                                 const void *body, struct vr_reply *ret_reply,
                                 const void **ret_data);

#endif

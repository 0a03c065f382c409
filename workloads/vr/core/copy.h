/* SPDX-License-Identifier: MIT */
/*
 * A copy of a cluster's state in the hands of a client: pages of a checkpoint, fetched as a replica
 * that lacks them would (transfer.c), by someone who is none and never has a voice.  Pure: messages
 * go in and out.  What has come stays when the one who is asked has a newer checkpoint meanwhile.
 */
#ifndef ASSAY_VR_COPY_H
#define ASSAY_VR_COPY_H

#include "vr/core/core.h"

struct vr_copy;

/* The settings are those of the replicas. */
struct vr_copy *vr_copy_new(const struct vr_config *config);
void vr_copy_free(struct vr_copy *c);

/* What to send next, to any replica; the body stays until the next call.  False: the state is
 * whole. */
bool vr_copy_ask(struct vr_copy *c, struct vr_message *ret_message);
/* Takes a VR_STATE_CHUNK; true: there is something else to ask for. */
bool vr_copy_take(struct vr_copy *c, const struct vr_header *header, const void *body);
/* Pieces that do not fit these settings. */
uint64_t vr_copy_refused(const struct vr_copy *c);

/* Of a whole state: the last operation in it, and its pairs in the order of keys. */
uint64_t vr_copy_op(const struct vr_copy *c);
uint32_t vr_copy_keys(const struct vr_copy *c);
void vr_copy_each(const struct vr_copy *c,
                  bool (*pair)(void *context, struct vr_bytes key, struct vr_bytes value),
                  void *context);

#endif

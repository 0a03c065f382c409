/* SPDX-License-Identifier: MIT */
/*
 * The client table: one session for each client, with its last request's number and reply, so that
 * a request sent twice is executed once and answered twice.  It is part of the replicated state:
 * changed only by executed operations, saved with checkpoints.  When it is full the oldest session
 * gives way, in the order of the operations that began them, the same on every replica.
 *
 * A client that begins again under its old number takes only a later session than it had: the
 * answer to its first beginning may still be under way, and the requests of that session have run.
 */
#ifndef ASSAY_VR_SESSIONS_H
#define ASSAY_VR_SESSIONS_H

#include "vr/core/service.h"
#include "vr/core/wire.h"

struct vr_session {
    uint64_t client;  /* 0: free */
    uint64_t session; /* op and place in its batch at which it began: never used again */
    uint64_t number;  /* of the last request executed */
    uint64_t op;      /* which executed it */
    uint32_t status, size;
    uint64_t in_flight; /* the primary's own: a number that is in its log or queue; not saved */
    unsigned char result[VR_RESULT_BYTES_MAX];
};

struct vr_sessions {
    uint32_t capacity, count, index_mask;
    struct vr_session *items;
    uint32_t *index; /* of items, by client; UINT32_MAX: nobody */
};

void vr_sessions_init(struct vr_sessions *t, uint32_t capacity);
void vr_sessions_done(struct vr_sessions *t);
struct vr_session *vr_sessions_find(struct vr_sessions *t, uint64_t client);
/* Begins a session; *ret_evicted is the one that lost its place (client 0: none). */
struct vr_session *vr_sessions_begin(struct vr_sessions *t, uint64_t client, uint64_t session,
                                     struct vr_session *ret_evicted);
void vr_sessions_forget_in_flight(struct vr_sessions *t);

size_t vr_sessions_bytes_max(const struct vr_sessions *t);
size_t vr_sessions_save(const struct vr_sessions *t, void *out);
/* How many bytes it took, 0 when they are no saved table of this capacity. */
size_t vr_sessions_load(struct vr_sessions *t, const void *bytes, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The client table: one session for each client, with its last request's number and reply, so that
 * a request sent twice is executed once and answered twice.  It is part of the replicated state:
 * changed only by executed operations, and kept in its pages.  When it is full the oldest session
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
    struct vr_pages *pages;
    uint32_t first; /* page */
};

/* How many pages they take. */
uint32_t vr_sessions_pages(uint32_t page_bytes, uint32_t capacity);
/* They are kept in these pages, from the first on. */
void vr_sessions_init(struct vr_sessions *t, uint32_t capacity, struct vr_pages *pages,
                      uint32_t first);
void vr_sessions_done(struct vr_sessions *t);
struct vr_session *vr_sessions_find(struct vr_sessions *t, uint64_t client);
/* Begins a session; *ret_evicted is the one that lost its place (client 0: none). */
struct vr_session *vr_sessions_begin(struct vr_sessions *t, uint64_t client, uint64_t session,
                                     struct vr_session *ret_evicted);
void vr_sessions_forget_in_flight(struct vr_sessions *t);

/* A session has changed: its page is to know. */
void vr_sessions_keep(struct vr_sessions *t, const struct vr_session *s);
/* Whether the pages can hold so many. */
bool vr_sessions_valid(const struct vr_sessions *t, uint32_t count, vr_page_reader read,
                       const void *context);
/* The pages hold so many sessions, and are valid. */
void vr_sessions_load(struct vr_sessions *t, uint32_t count);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Execution of committed entries, in order, the same on every replica.  A request runs once: its
 * session says which number ran last, and the session's own number keeps a late request of an
 * evicted session from running in a newer one.
 */
#include "vr/core/core_internal.h"

void vr_reply_stored(struct vr_replica *r, struct vr_update *u, const struct vr_session *s)
{
    /* A copy: the next request in the same update may take the session's place. */
    struct vr_reply *reply = vr_scratch(u, sizeof(*reply) + s->size);
    if (!reply)
        return;
    *reply = (struct vr_reply){s->status, s->size, s->session};
    memcpy(reply + 1, s->result, s->size);
    struct vr_message *m = vr_emit(r, u, VR_TO_CLIENT, VR_REPLY);
    m->header.client = s->client;
    m->header.number = s->number;
    m->header.op = s->op;
    m->first = reply;
    m->first_size = sizeof(*reply);
    m->second = reply + 1;
    m->second_size = s->size;
}

void vr_send_eviction(struct vr_replica *r, struct vr_update *u, uint64_t client, uint64_t session)
{
    struct vr_message *m = vr_emit(r, u, VR_TO_CLIENT, VR_EVICTION);
    m->header.client = client;
    m->header.op = session;
}

static struct vr_session *register_client(struct vr_replica *r, struct vr_update *u,
                                          const struct vr_request *request, uint64_t session)
{
    struct vr_session *s = vr_sessions_find(&r->sessions, request->client);
    if (s)
        return s->number == 0 ? s : NULL;
    struct vr_session evicted;
    s = vr_sessions_begin(&r->sessions, request->client, session, &evicted);
    s->status = VR_OK;
    s->size = sizeof(session);
    memcpy(s->result, &session, sizeof(session));
    if (evicted.client && vr_leads(r))
        vr_send_eviction(r, u, evicted.client, evicted.session);
    return s;
}

/* The session to answer, or NULL when there is nothing to say. */
static struct vr_session *run(struct vr_replica *r, struct vr_update *u,
                              const struct vr_entry *entry, const struct vr_request *request,
                              const void *data)
{
    struct vr_session *s = vr_sessions_find(&r->sessions, request->client);
    if (!s || (s->session != request->session && !PLANTED(SESSION_UNCHECKED))) {
        if (vr_leads(r))
            vr_send_eviction(r, u, request->client, request->session);
        return NULL;
    }
    if (request->number < s->number)
        return NULL;
    if (request->number == s->number && !PLANTED(TWICE))
        return s;
    s->number = request->number;
    if (request->opcode == VR_OP_RECONFIGURE) {
        s->status = vr_reconfigure(r, entry, data, request->size);
        struct vr_reconfiguration now = {.members = r->executed.members,
                                         .epoch = (uint32_t)vr_epoch_of(r->executed.first_view)};
        memcpy(now.incarnations, r->executed.incarnations, sizeof(now.incarnations));
        memcpy(s->result, &now, s->size = sizeof(now));
    } else {
        s->status = vr_service_execute(r->service, request->opcode, data, request->size, s->result,
                                       &s->size);
    }
    r->counters.executed++;
    return s;
}

/* All leaves that a batch needs are fetched at once: one after the other they would be waited for.
 */
static void prefetch_entry(const struct vr_replica *r, const struct vr_entry *entry,
                           const unsigned char *at)
{
    struct vr_bytes keys[VR_BATCH_COUNT_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < entry->count && count < VR_BATCH_COUNT_MAX; i++) {
        struct vr_request request;
        memcpy(&request, at, sizeof(request));
        count += vr_service_key(r->service, request.opcode, at + sizeof(request), request.size,
                                &keys[count]);
        at += vr_request_bytes(request.size);
    }
    vr_service_prefetch(r->service, keys, count);
}

static void execute_entry(struct vr_replica *r, struct vr_update *u, uint64_t op)
{
    const struct vr_entry *entry = &vr_slot(r, op)->entry;
    const unsigned char *at = vr_body(r, op);
    if (r->observer.executed)
        r->observer.executed(r->observer.context, entry, at);
    prefetch_entry(r, entry, at);
    for (uint32_t i = 0; i < entry->count; i++) {
        struct vr_request request;
        memcpy(&request, at, sizeof(request));
        const unsigned char *data = at + sizeof(request);
        struct vr_session *s = request.opcode == VR_OP_REGISTER
                                   ? register_client(r, u, &request, op << 16 | i)
                                   : run(r, u, entry, &request, data);
        if (s) {
            s->op = op;
            vr_sessions_keep(&r->sessions, s);
        }
        if (s && vr_leads(r))
            vr_reply_stored(r, u, s);
        at += vr_request_bytes(request.size);
    }
}

/* One is due behind every so many operations; while the one before, or the state of another
 * replica, is under way it waits, and nothing else does. */
static void checkpoint_if_due(struct vr_replica *r)
{
    uint32_t every = r->config.checkpoint_every;
    if (r->commit / every > r->newest.op / every && !r->pending_there && !r->arriving_active &&
        !PLANTED(LOG_NEVER_CUT))
        vr_checkpoint_take(r);
}

void vr_execute(struct vr_replica *r, struct vr_update *u)
{
    /* While a log is being taken over, what agrees with it and is committed may run, too. */
    uint64_t sure = r->state == VR_NORMAL ? r->op : r->install.active ? r->install.matched : 0;
    uint64_t last = vr_min(r->commit_max, vr_min(sure, r->op));
    /* One that had to wait for the one before may be all that makes room for what comes next. */
    if (r->pending_there && r->pending_adopt)
        return; /* another state is taking the place of this one */
    if (!PLANTED(CHECKPOINT_MISSED))
        checkpoint_if_due(r);
    size_t room = VR_BATCH_COUNT_MAX * (sizeof(struct vr_reply) + VR_RESULT_BYTES_MAX) + 8192;
    while (r->commit < last && vr_has_body(r, r->commit + 1)) {
        /* Two messages for each request: an answer, and a word to somebody evicted. */
        if (!vr_room(u, 2 * VR_BATCH_COUNT_MAX + 64) || sizeof(u->scratch) - u->scratch_used < room)
            return;
        execute_entry(r, u, r->commit + 1);
        r->commit++;
        checkpoint_if_due(r);
        uint64_t view = r->view;
        vr_epoch_progress(r);
        if (r->view != view)
            return;
    }
}

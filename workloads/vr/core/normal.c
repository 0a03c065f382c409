/* SPDX-License-Identifier: MIT */
/*
 * The normal case: requests are gathered into one entry per turn, several entries are under way at
 * once, acknowledgements are cumulative, and the commit number rides on the next prepare.
 */
#include "vr/core/core_internal.h"

#define FETCH_ENTRIES 16

bool vr_established(const struct vr_replica *r)
{
    return r->state == VR_NORMAL && r->durable.log_view == r->view && !r->durable.fresh &&
           !vr_asks(r);
}

static bool enqueue(struct vr_replica *r, const struct vr_header *h, const void *body)
{
    if (r->queue_size + h->size > 4 * (size_t)r->config.batch_bytes)
        return false; /* as if lost: the client asks again */
    memcpy(r->queue + r->queue_size, body, h->size);
    r->queue_size += h->size;
    r->queue_count++;
    return true;
}

static void local_read(struct vr_replica *r, const struct vr_request *request, const void *body,
                       struct vr_update *u)
{
    unsigned char *out = vr_scratch(u, sizeof(struct vr_reply) + VR_RESULT_BYTES_MAX);
    if (!out)
        return;
    struct vr_reply reply = {.session = request->session};
    reply.status =
        vr_service_execute(r->service, request->opcode, (const char *)body + sizeof(*request),
                           request->size, out + sizeof(reply), &reply.size);
    memcpy(out, &reply, sizeof(reply));
    struct vr_message *m = vr_emit(r, u, VR_TO_CLIENT, VR_REPLY);
    m->header.client = request->client;
    m->header.number = request->number;
    m->first = out;
    m->first_size = sizeof(reply);
    m->second = out + sizeof(reply);
    m->second_size = reply.size;
}

/* No entry can hold it, here or anywhere: that is so in every view, and needs no log. */
static void refuse(struct vr_replica *r, const struct vr_request *request, struct vr_update *u)
{
    struct vr_reply *reply = vr_scratch(u, sizeof(*reply));
    if (!reply)
        return;
    *reply = (struct vr_reply){.status = VR_TOO_LARGE, .session = request->session};
    struct vr_message *m = vr_emit(r, u, VR_TO_CLIENT, VR_REPLY);
    m->header.client = request->client;
    m->header.number = request->number;
    m->first = reply;
    m->first_size = sizeof(*reply);
}

void vr_on_request(struct vr_replica *r, const struct vr_header *h, const void *body,
                   struct vr_update *u)
{
    struct vr_request request;
    memcpy(&request, body, sizeof(request));
    if (!vr_leads(r) || request.client == 0)
        return;
    if (h->size > r->config.batch_bytes) {
        if (request.opcode != VR_OP_REGISTER && !PLANTED(SILENT_REFUSAL))
            refuse(r, &request, u);
        return;
    }
    struct vr_session *s = vr_sessions_find(&r->sessions, request.client);
    if (request.opcode == VR_OP_REGISTER) {
        if (request.number == 0)
            enqueue(r, h, body);
        return;
    }
    if (!s || (s->session != request.session && !PLANTED(SESSION_UNCHECKED))) {
        /* A primary that the others have left does not know all sessions, and does not know that
         * it does not: whether there is such a session is decided by the log. */
        enqueue(r, h, body);
        return;
    }
    if (PLANTED(LOCAL_READ) && request.opcode == VR_OP_GET) {
        local_read(r, &request, body, u);
        return;
    }
    if (request.number == s->number)
        vr_reply_stored(r, u, s);
    else if (request.number < s->number || request.number == s->in_flight)
        vr_drop(r, VR_DROP_REPLAYED);
    else if (enqueue(r, h, body))
        s->in_flight = request.number;
}

struct vr_message *vr_send_prepare(struct vr_replica *r, struct vr_update *u, uint8_t to,
                                   uint64_t op, uint8_t flags)
{
    const struct vr_slot *slot = vr_slot(r, op);
    struct vr_message *m = vr_emit(r, u, to, VR_PREPARE);
    m->header.flags = flags;
    m->header.op = op;
    m->header.commit = r->commit_max;
    m->header.parent = slot->entry.parent;
    m->first = &slot->entry;
    m->first_size = sizeof(slot->entry);
    m->second = vr_body(r, op);
    m->second_size = slot->entry.size;
    return m;
}

static void broadcast_commit(struct vr_replica *r, struct vr_update *u)
{
    VR_EACH_MEMBER (r, to) {
        if (to == r->config.index)
            continue;
        struct vr_message *m = vr_emit(r, u, to, VR_COMMIT);
        m->header.op = r->op;
        m->header.commit = r->commit_max;
    }
    r->heartbeat_due_ns = r->now_ns + r->config.heartbeat_ns;
}

/* Moves whole requests from the queue into the entry's place; returns their bytes. */
static uint32_t take_batch(struct vr_replica *r, unsigned char *body, uint32_t *ret_count)
{
    uint32_t size = 0, count = 0;
    while (count < r->queue_count && count < VR_BATCH_COUNT_MAX) {
        struct vr_request request;
        memcpy(&request, r->queue + size, sizeof(request));
        uint32_t bytes = (uint32_t)vr_request_bytes(request.size);
        bool alone = request.opcode == VR_OP_RECONFIGURE;
        if (size + bytes > r->config.batch_bytes || (alone && count))
            break;
        size += bytes;
        count++;
        if (alone)
            break;
    }
    memcpy(body, r->queue, size);
    memmove(r->queue, r->queue + size, r->queue_size - size);
    r->queue_size -= size;
    r->queue_count -= count;
    *ret_count = count;
    return size;
}

static void propose(struct vr_replica *r, struct vr_update *u)
{
    struct vr_entry entry = {.op = r->op + 1, .view = r->view};
    if (PLANTED(NARROW_COUNTERS))
        entry.op = (uint32_t)entry.op;
    entry.parent = vr_checksum_at(r, r->op);
    unsigned char *body = vr_body(r, entry.op);
    entry.size = take_batch(r, body, &entry.count);
    entry.body_checksum = vr_hash(body, entry.size);
    entry.checksum = vr_entry_checksum(&entry);
    vr_log_put(r, u, &entry, body);
    r->counters.batches++;
    VR_EACH_MEMBER (r, to)
        if (to != r->config.index)
            vr_send_prepare(r, u, to, entry.op, 0);
    if (vr_is_reconfiguration(r, entry.op))
        r->fence_op = entry.op;
    r->heartbeat_due_ns = r->now_ns + r->config.heartbeat_ns / 4;
}

/* Whether enough replicas still answer; one that hears nobody must let the others go on. */
static bool quorum_heard(const struct vr_replica *r)
{
    uint32_t count = 1;
    VR_EACH_MEMBER (r, i)
        if (i != r->config.index && r->now_ns - r->heard_ns[i] < 2 * r->config.timeout_ns)
            count++;
    return count >= vr_quorum(r);
}

static void primary_turn(struct vr_replica *r, struct vr_update *u)
{
    if (!quorum_heard(r)) {
        vr_view_want(r, r->view + 1);
        r->heartbeat_due_ns = r->now_ns + r->config.heartbeat_ns;
        return;
    }
    while (r->queue_count && r->op - r->commit_max < r->config.pipeline &&
           r->op < vr_log_limit(r) && vr_room(u, 64) &&
           (r->fence_op <= r->commit || PLANTED(NO_FENCE)))
        propose(r, u);
    if (r->now_ns >= r->heartbeat_due_ns)
        broadcast_commit(r, u);
}

void vr_normal_turn(struct vr_replica *r, struct vr_update *u)
{
    if (!vr_established(r))
        return;
    if (vr_leads(r)) {
        primary_turn(r, u);
        return;
    }
    if (r->ok_owed) {
        struct vr_message *m = vr_emit(r, u, vr_primary_of(r, r->view), VR_PREPARE_OK);
        m->header.op = r->durable_op;
        m->header.commit = r->commit;
        r->ok_owed = false;
    }
}

static void primary_heard(struct vr_replica *r, const struct vr_header *h)
{
    r->primary_heard_ns = r->now_ns;
    r->wanted[r->config.index] = 0;
    r->change_failures = 0;
    r->commit_max = vr_max(r->commit_max, h->commit);
}

void vr_on_prepare(struct vr_replica *r, const struct vr_header *h, const void *body,
                   struct vr_update *u)
{
    struct vr_entry entry;
    memcpy(&entry, body, sizeof(entry));
    const char *requests = (const char *)body + sizeof(entry);
    if (entry.size > r->config.batch_bytes) {
        vr_drop(r, VR_DROP_BODY);
        return;
    }
    if (r->state == VR_VIEW_CHANGE) {
        vr_install_heard(r, h);
        if (r->install.active)
            vr_install_prepare(r, h, &entry, requests, u);
        else if (h->replica == vr_primary_of(r, r->view))
            vr_ask_view(r, u, h->replica);
        return;
    }
    if (r->state != VR_NORMAL || vr_leads(r) || h->replica != vr_primary_of(r, r->view)) {
        vr_drop(r, VR_DROP_STALE);
        return;
    }
    primary_heard(r, h);
    r->ok_owed = true;
    if (entry.op <= r->op) {
        if (!vr_known(r, entry.op) || vr_slot(r, entry.op)->entry.checksum != entry.checksum)
            vr_drop(r, VR_DROP_STALE);
        else if (vr_has_body(r, entry.op))
            vr_drop(r, VR_DROP_REPLAYED);
        else
            vr_log_put(r, u, &entry, requests);
        return;
    }
    if (entry.op > r->op + 1 || entry.op > vr_log_limit(r))
        return; /* vr_fetch asks for what is missing */
    if (entry.parent != vr_checksum_at(r, r->op)) {
        r->counters.forks_refused++;
        return;
    }
    vr_log_put(r, u, &entry, requests);
}

void vr_on_commit(struct vr_replica *r, const struct vr_header *h)
{
    vr_install_heard(r, h);
    if (h->replica != vr_primary_of(r, r->view) || r->state != VR_NORMAL) {
        vr_drop(r, VR_DROP_STALE);
        return;
    }
    primary_heard(r, h);
    r->ok_owed = true;
    /* The primary's log is longer: the prepares are lost or late. */
    if (h->op > r->op && r->fetch_upto < h->op)
        r->fetch_upto = h->op;
}

void vr_on_prepare_ok(struct vr_replica *r, const struct vr_header *h)
{
    if (!vr_leads(r) || h->op > r->op) {
        vr_drop(r, VR_DROP_STALE);
        return;
    }
    r->heard_ns[h->replica] = r->now_ns;
    r->ok_op[h->replica] = vr_max(r->ok_op[h->replica], h->op);
    vr_promised(r, h->replica, h->view, h->op);
}

/* Rule 1: the greatest op that a quorum has on disk. */
void vr_primary_commit(struct vr_replica *r)
{
    if (!vr_established(r))
        return;
    r->ok_op[r->config.index] = r->durable_op;
    uint32_t wanted = vr_quorum(r) - (PLANTED(SMALL_QUORUM) ? 1 : 0);
    uint64_t best = PLANTED(EXECUTE_EARLY) ? r->op : 0;
    VR_EACH_MEMBER (r, i) {
        uint32_t count = 0;
        VR_EACH_MEMBER (r, j)
            count += r->ok_op[j] >= r->ok_op[i];
        if (count >= wanted)
            best = vr_max(best, r->ok_op[i]);
    }
    r->commit_max = vr_max(r->commit_max, best);
}

void vr_on_get_prepare(struct vr_replica *r, const struct vr_header *h, struct vr_update *u)
{
    bool joins = h->flags & VR_FLAG_JOIN;
    if ((r->state == VR_RECOVERING || r->uncertain) && !joins)
        return;
    /* Also when only the head is left: the checkpoint came before the requests were found. */
    if (!vr_has_body(r, h->op) && h->op <= r->newest.op) {
        vr_state_offer(r, u, h);
        return;
    }
    /* What is committed is the same in every view. */
    uint64_t end = joins ? vr_sure_op(r) : r->op;
    uint64_t last = vr_min(vr_min(h->commit, end), h->op + FETCH_ENTRIES - 1);
    for (uint64_t op = PLANTED(LAST_PREPARE_ONLY) ? last : h->op; op <= last && vr_room(u, 64);
         op++)
        if (vr_has_body(r, op))
            vr_send_prepare(r, u, h->replica, op, VR_FLAG_REPAIR)->header.view = h->view;
}

static void ask_prepares(struct vr_replica *r, struct vr_update *u, uint8_t to, uint64_t from,
                         uint64_t last)
{
    struct vr_message *m = vr_emit(r, u, to, VR_GET_PREPARE);
    m->header.op = from;
    m->header.commit = last;
    m->header.flags = vr_joining(r) ? VR_FLAG_JOIN : 0;
}

/* The first op that is missing, and the last that is worth asking for. */
static uint64_t missing(const struct vr_replica *r, uint64_t *ret_last)
{
    uint64_t need = 0;
    if (r->state == VR_NORMAL && !vr_leads(r)) {
        need = vr_first_hole(r);
        *ret_last = vr_max(vr_max(r->commit_max, r->fetch_upto), need);
        if (!need && *ret_last > r->op)
            need = r->op + 1;
    } else if (r->install.active) {
        need = vr_install_need(r);
        *ret_last = r->install.end.op;
    }
    return r->arriving_active || need > vr_log_limit(r) ? 0 : need;
}

uint64_t vr_fetch_deadline_ns(const struct vr_replica *r)
{
    uint64_t last = 0;
    return missing(r, &last) ? r->fetch_due_ns : UINT64_MAX;
}

/* Asks for what is missing, of the primary or of the log that is being taken over. */
void vr_fetch(struct vr_replica *r, struct vr_update *u)
{
    uint64_t last = 0, need = missing(r, &last);
    if (!need || r->now_ns < r->fetch_due_ns)
        return;
    r->fetch_due_ns = r->now_ns + r->config.heartbeat_ns / 4;
    if (r->state == VR_NORMAL) {
        ask_prepares(r, u, vr_primary_of(r, r->view), need, last);
        return;
    }
    uint32_t asked = r->group.members | (vr_joining(r) ? r->group.prior : 0);
    for (uint8_t to = 0; to < VR_NODES_MAX; to++)
        if (asked >> to & 1 && to != r->config.index)
            ask_prepares(r, u, to, need, to == r->install.source ? last : need);
}

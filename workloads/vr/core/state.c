/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints, and their transfer to a replica whose missing entries nobody has any more.  The log
 * is cut only when the state that takes its place is on disk.
 */
#include "base/memory.h"
#include "vr/core/core_internal.h"

#define CHUNK_BYTES_MAX 4096
#define CHUNKS_AT_ONCE 8

static uint32_t chunk_bytes(const struct vr_replica *r)
{
    uint32_t wanted = r->config.chunk_bytes;
    return wanted && wanted < CHUNK_BYTES_MAX ? wanted : CHUNK_BYTES_MAX;
}

static void swap_snapshots(struct vr_snapshot *a, struct vr_snapshot *b)
{
    struct vr_snapshot t = *a;
    *a = *b;
    *b = t;
}

void vr_snapshot_take(struct vr_replica *r)
{
    struct vr_snapshot *s = &r->pending;
    s->op = r->commit;
    s->view = 0;
    s->entry_checksum = vr_checksum_at(r, r->commit);
    memcpy(s->bytes, &r->executed, sizeof(r->executed));
    s->size = sizeof(r->executed);
    s->size += vr_sessions_save(&r->sessions, s->bytes + s->size);
    s->size += vr_service_save(r->service, s->bytes + s->size);
    assert(s->size <= r->snapshot_bytes_max);
    s->checksum = vr_hash(s->bytes, s->size);
    r->pending_there = true;
    r->pending_writing = r->pending_adopt = false;
}

bool vr_snapshot_restore(struct vr_replica *r, const struct vr_snapshot *from)
{
    if (vr_hash(from->bytes, from->size) != from->checksum)
        return false;
    size_t head = sizeof(r->executed);
    if (from->size < head)
        return false;
    memcpy(&r->executed, from->bytes, head);
    size_t used = vr_sessions_load(&r->sessions, from->bytes + head, from->size - head);
    return used && vr_service_load(r->service, from->bytes + head + used, from->size - head - used);
}

/* The state of an operation further on takes the place of all before it. */
static void adopt(struct vr_replica *r)
{
    if (r->newest.op <= r->commit)
        return;
    uint64_t at = r->newest.op;
    bool chained = vr_known(r, at) && vr_slot(r, at)->entry.checksum == r->newest.entry_checksum;
    if (!vr_snapshot_restore(r, &r->newest))
        assert(false && "a state whose checksum is right can be loaded");
    if (!chained) {
        vr_log_truncate(r, r->commit);
        r->op = at;
    }
    r->commit = at;
    r->commit_max = vr_max(r->commit_max, at);
    r->holes = 0;
    for (uint64_t op = at + 1; op <= r->op; op++, r->counters.log_steps++)
        r->holes += !vr_has_body(r, op);
    if (r->install.active) {
        struct vr_log_end *end = &r->install.end;
        r->install.matched = vr_max(r->install.matched, at);
        /* The view has gone on since its log was told; its state is the newer word. */
        if (at > end->op) {
            end->op = at;
            end->checksum = r->newest.entry_checksum;
            end->count = 0;
        }
    }
    r->counters.state_transfers++;
    /* Who joins may get the state of a later view: it must not take part in older ones with it. */
    if (vr_joining(r) && r->newest.view > r->view &&
        vr_epoch_of(r->newest.view) == vr_epoch_of(r->view))
        vr_view_enter(r, r->newest.view);
}

static void finish(struct vr_replica *r)
{
    swap_snapshots(&r->pending, &r->newest);
    r->newest_area = 1 - r->newest_area;
    r->pending_there = r->pending_writing = false;
    if (r->pending_adopt)
        adopt(r);
}

void vr_snapshot_written(struct vr_replica *r, bool failed)
{
    if (!r->pending_writing)
        return;
    r->pending_writing = false;
    if (failed)
        return;
    finish(r);
}

void vr_snapshot_progress(struct vr_replica *r, struct vr_update *u)
{
    /* The log came first: what is arriving is old. */
    if (r->arriving_active && r->arriving.op <= r->commit)
        r->arriving_active = false;
    bool arrived = r->arriving_active && r->arriving_got == r->arriving.size;
    if (arrived && !r->pending_there) {
        r->arriving_active = false;
        if (vr_hash(r->arriving.bytes, r->arriving.size) == r->arriving.checksum &&
            r->arriving.op > r->commit) {
            swap_snapshots(&r->arriving, &r->pending);
            r->pending_there = r->pending_adopt = true;
        }
    }
    if (!r->pending_there || r->pending_writing || u->write_count == VR_UPDATE_WRITES)
        return;
    if (r->config.in_memory) {
        finish(r);
        return;
    }
    /* The other area is free when the superblock names this one. */
    bool settled =
        r->newest.size == 0 ? !r->durable_writing : r->durable.checkpoint_op == r->newest.op;
    if (r->durable_writing || !settled)
        return;
    if (r->newest.size == 0)
        r->newest_area = r->durable.checkpoint_area;
    r->pending_writing = true;
    u->writes[u->write_count++] = (struct vr_write){.kind = VR_WRITE_CHECKPOINT,
                                                    .area = 1 - r->newest_area,
                                                    .bytes = r->pending.bytes,
                                                    .size = r->pending.size};
}

void vr_state_send(struct vr_replica *r, struct vr_update *u, const struct vr_header *asked,
                   uint64_t offset)
{
    for (unsigned i = 0; i < CHUNKS_AT_ONCE && offset < r->newest.size; i++) {
        struct vr_state_head *head = vr_scratch(u, sizeof(*head));
        if (!head || !vr_room(u, 64))
            return;
        *head = (struct vr_state_head){r->newest.entry_checksum, r->newest.checksum, r->newest.size,
                                       r->view};
        struct vr_message *m = vr_emit(r, u, asked->replica, VR_STATE_CHUNK);
        m->header.view = asked->view;
        m->header.op = r->newest.op;
        m->header.offset = offset;
        m->first = head;
        m->first_size = sizeof(*head);
        m->second = r->newest.bytes + offset;
        m->second_size = (uint32_t)vr_min(chunk_bytes(r), r->newest.size - offset);
        offset += m->second_size;
    }
}

void vr_on_get_state(struct vr_replica *r, const struct vr_header *h, struct vr_update *u)
{
    if ((r->state == VR_RECOVERING || r->uncertain) && !(h->flags & VR_FLAG_JOIN))
        return;
    /* Another checkpoint than the one asked for begins at its beginning. */
    vr_state_send(r, u, h, h->op == r->newest.op ? h->offset : 0);
}

/* Of whom a state may be taken: who has the log of this view. */
bool vr_state_source(const struct vr_replica *r, uint8_t *ret_source)
{
    if (r->state == VR_NORMAL)
        *ret_source = vr_primary_of(r, r->view);
    else if (r->install.active)
        *ret_source = r->install.source;
    else
        return false;
    return *ret_source != r->config.index;
}

void vr_on_state_chunk(struct vr_replica *r, const struct vr_header *h, const void *body)
{
    struct vr_state_head head;
    uint8_t source;
    memcpy(&head, body, sizeof(head));
    size_t size = h->size - sizeof(head);
    /* Who joins takes it of anybody: what a checkpoint holds is committed. */
    bool joins = vr_joining(r) && r->install.active;
    if (!joins && (!vr_state_source(r, &source) || source != h->replica)) {
        vr_drop(r, VR_DROP_STALE);
        return;
    }
    if (h->op <= r->commit || (r->pending_there && r->pending_adopt) ||
        head.size > r->snapshot_bytes_max || h->offset > head.size ||
        size > head.size - h->offset) {
        vr_drop(r, VR_DROP_STALE);
        return;
    }
    struct vr_snapshot *s = &r->arriving;
    if (!r->arriving_active || h->op > s->op) {
        s->op = h->op;
        s->size = head.size;
        s->checksum = head.checksum;
        s->entry_checksum = head.entry_checksum;
        s->view = head.view;
        r->arriving_active = true;
        r->arriving_from = h->replica;
        r->arriving_got = 0;
        r->state_due_ns = r->now_ns + r->config.heartbeat_ns / 2;
        if (PLANTED(DROP_BEFORE_STATE) && r->op > r->commit)
            vr_log_truncate(r, r->commit);
    }
    if (h->op != s->op || head.checksum != s->checksum || h->offset != r->arriving_got)
        return;
    memcpy(s->bytes + r->arriving_got, (const char *)body + sizeof(head), size);
    r->arriving_got += size;
    r->change_begun_ns = r->now_ns;
    if (r->arriving_got % (chunk_bytes(r) * CHUNKS_AT_ONCE) == 0)
        r->state_due_ns = r->now_ns;
}

void vr_state_turn(struct vr_replica *r, struct vr_update *u)
{
    uint8_t source;
    if (!r->arriving_active || r->arriving_got == r->arriving.size || r->now_ns < r->state_due_ns)
        return;
    if (!vr_joining(r) && (!vr_state_source(r, &source) || source != r->arriving_from)) {
        r->arriving_active = false;
        return;
    }
    struct vr_message *m = vr_emit(r, u, r->arriving_from, VR_GET_STATE);
    m->header.op = r->arriving.op;
    m->header.offset = r->arriving_got;
    m->header.flags = vr_joining(r) ? VR_FLAG_JOIN : 0;
    r->state_due_ns = r->now_ns + r->config.heartbeat_ns / 2;
}

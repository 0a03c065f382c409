/* SPDX-License-Identifier: MIT */
/*
 * The log in memory: a ring of slots, op modulo slots, each with room for one batch.  A slot may
 * hold a head without its requests (a hole): after a restart with a damaged sector the head's
 * second copy still tells which entry stood there.
 */
#include "vr/core/core_internal.h"

uint64_t vr_checksum_at(const struct vr_replica *r, uint64_t op)
{
    if (op == 0)
        return vr_genesis_checksum(r->config.cluster);
    if (op == r->newest.op)
        return r->newest.entry_checksum;
    return vr_known(r, op) ? vr_slot(r, op)->entry.checksum : 0;
}

/* The checkpoint from which a restart would begin: the newest one, when the superblock names it.
 * One that the superblock names and that was found damaged is none. */
static uint64_t settled_checkpoint(const struct vr_replica *r)
{
    return r->config.in_memory ? r->newest.op : vr_min(r->durable.checkpoint_op, r->newest.op);
}

/* An entry may be overwritten when a checkpoint behind it is on disk. */
uint64_t vr_log_limit(const struct vr_replica *r)
{
    if (PLANTED(SLOTS_REUSED))
        return r->commit + r->config.slots;
    return settled_checkpoint(r) + r->config.slots;
}

static void write_entry(struct vr_replica *r, struct vr_update *u, struct vr_slot *slot)
{
    if (r->config.in_memory) {
        slot->durable = true;
        return;
    }
    if (slot->writing)
        return;
    if (u->write_count == VR_UPDATE_WRITES) {
        r->retry_writes = true;
        return;
    }
    slot->writing = true;
    slot->writing_checksum = slot->entry.checksum;
    u->writes[u->write_count++] = (struct vr_write){.kind = VR_WRITE_ENTRY,
                                                    .entry = slot->entry,
                                                    .bytes = vr_body(r, slot->entry.op),
                                                    .size = slot->entry.size};
}

void vr_log_truncate(struct vr_replica *r, uint64_t op)
{
    assert(op >= r->commit);
    for (uint64_t at = r->op; at > op; at--) {
        r->counters.log_steps++;
        if (vr_known(r, at) && !vr_slot(r, at)->has_body)
            r->holes--;
        if (vr_slot(r, at)->entry.op == at)
            vr_slot(r, at)->entry.op = 0;
    }
    r->op = vr_min(r->op, op);
    r->durable_op = vr_min(r->durable_op, op);
}

void vr_log_put(struct vr_replica *r, struct vr_update *u, const struct vr_entry *entry,
                const void *body)
{
    uint64_t op = entry->op;
    struct vr_slot *slot = vr_slot(r, op);
    assert(op <= vr_log_limit(r));
    if (op <= r->newest.op)
        return; /* the checkpoint stands for it */
    if (vr_known(r, op) && slot->entry.checksum == entry->checksum) {
        if (slot->has_body)
            return;
        r->holes--;
        r->counters.entries_repaired++;
    } else {
        if (op <= r->op)
            vr_log_truncate(r, op - 1);
        assert(op == r->op + 1);
        r->op = op;
    }
    slot->entry = *entry;
    slot->entry.flags = 0;
    slot->has_body = true;
    slot->durable = false;
    if (vr_body(r, op) != body)
        memcpy(vr_body(r, op), body, entry->size);
    write_entry(r, u, slot);
}

uint64_t vr_first_hole(const struct vr_replica *r)
{
    if (r->holes == 0)
        return 0;
    for (uint64_t op = r->newest.op + 1; op <= r->op; op++)
        if (!vr_has_body(r, op))
            return op;
    return 0;
}

void vr_log_written(struct vr_replica *r, struct vr_update *u, const struct vr_entry *entry,
                    bool failed)
{
    struct vr_slot *slot = vr_slot(r, entry->op);
    if (!slot->writing || slot->writing_checksum != entry->checksum)
        return;
    slot->writing = false;
    bool same = slot->entry.op == entry->op && slot->entry.checksum == entry->checksum;
    if (failed)
        r->retry_writes = true;
    else if (same)
        slot->durable = true;
    else if (slot->entry.op && slot->entry.op <= r->op && slot->has_body && !slot->durable)
        write_entry(r, u, slot);
}

void vr_log_retry(struct vr_replica *r, struct vr_update *u)
{
    if (!r->retry_writes)
        return;
    r->retry_writes = false;
    for (uint64_t op = settled_checkpoint(r) + 1; op <= r->op; op++) {
        r->counters.log_steps++;
        if (vr_has_body(r, op) && !vr_slot(r, op)->durable)
            write_entry(r, u, vr_slot(r, op));
    }
}

/* An entry is on disk when a restart would find it: all of them from the checkpoint on that the
 * superblock names.  A newer checkpoint, own or arrived, counts when the superblock has it. */
void vr_log_advance_durable(struct vr_replica *r)
{
    uint64_t from = PLANTED(CHECKPOINT_EARLY) ? r->newest.op : settled_checkpoint(r);
    r->durable_op = vr_max(r->durable_op, vr_min(from, r->op));
    while (r->durable_op < r->op && vr_has_body(r, r->durable_op + 1) &&
           (vr_slot(r, r->durable_op + 1)->durable || PLANTED(ACK_EARLY))) {
        r->durable_op++;
        r->counters.log_steps++;
    }
}

static struct vr_durable wanted(const struct vr_replica *r)
{
    struct vr_durable d = {.view = r->view,
                           .log_view = r->log_view,
                           .view_op = r->view_op,
                           .view_checksum = r->view_checksum,
                           .uncertain = r->uncertain && !PLANTED(DOUBT_FORGOTTEN),
                           .closed = r->closed,
                           .fresh = r->fresh,
                           .incarnation = r->incarnation,
                           .starts = r->hello.own.starts,
                           .group = r->group};
    memcpy(d.known_starts, r->known_starts, sizeof(d.known_starts));
    if (r->config.in_memory)
        return d;
    d.checkpoint_op = r->newest.op;
    d.checkpoint_entry = r->newest.entry_checksum;
    d.checkpoint_size = r->newest.size;
    d.checkpoint_checksum = r->newest.checksum;
    /* The state before the first operation is on no disk, and neither is one that was damaged:
     * what the disk says stays until there is something better. */
    if (r->newest.size == 0) {
        d.checkpoint_op = r->durable.checkpoint_op;
        d.checkpoint_entry = r->durable.checkpoint_entry;
        d.checkpoint_size = r->durable.checkpoint_size;
        d.checkpoint_checksum = r->durable.checkpoint_checksum;
    }
    return d;
}

/* What changes while nothing is written: asked at every step, so it must be cheap. */
static bool settled(const struct vr_replica *r)
{
    const struct vr_durable *d = &r->durable;
    return d->view == r->view && d->log_view == r->log_view && d->view_op == r->view_op &&
           d->view_checksum == r->view_checksum && d->closed == r->closed &&
           (d->uncertain == r->uncertain || PLANTED(DOUBT_FORGOTTEN)) && d->fresh == r->fresh &&
           d->incarnation == r->incarnation && d->starts == r->hello.own.starts &&
           memcmp(d->known_starts, r->known_starts, sizeof(d->known_starts)) == 0 &&
           d->group.first_view == r->group.first_view &&
           (d->checkpoint_op == r->newest.op || r->config.in_memory);
}

void vr_durable_progress(struct vr_replica *r, struct vr_update *u)
{
    if (r->durable_writing || u->write_count == VR_UPDATE_WRITES || settled(r))
        return;
    struct vr_durable d = wanted(r);
    if (memcmp(&d, &r->durable, sizeof(d)) == 0)
        return;
    r->durable_writing = true;
    r->writing = d;
    u->writes[u->write_count++] = (struct vr_write){.kind = VR_WRITE_DURABLE, .durable = d};
}

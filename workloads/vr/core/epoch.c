/* SPDX-License-Identifier: MIT */
/*
 * Reconfiguration.  An operation names the next group.  Its primary puts nothing behind it in the
 * log until it has run (the fence), so every log of the old epoch ends with it, and who executes it
 * is in the next epoch.  There a replica has a voice when the log up to that entry is on its disk;
 * who lacks it fetches it from anybody who has executed it, of the new group or of the old one.
 * Who leaves the group keeps the log and tells the new members, until a quorum of them has it.
 *
 * VR Revisited lets a view change in the old epoch and a fresh member's first vote meet in ways
 * that it does not spell out; here both are excluded by one number: a view's upper bits are its
 * epoch, so what the old group does can never look newer than what the new one did.
 */
#include "vr/core/core_internal.h"

#define NODES_MASK ((1u << VR_NODES_MAX) - 1)

struct vr_group vr_group_first(const struct vr_config *config)
{
    return (struct vr_group){.checksum = vr_genesis_checksum(config->cluster),
                             .members = (1u << config->replica_count) - 1};
}

void vr_group_set(struct vr_replica *r, const struct vr_group *group)
{
    /* Of another disk nothing is known. */
    for (uint8_t i = 0; i < VR_NODES_MAX; i++)
        if (r->group.incarnations[i] != group->incarnations[i]) {
            r->known_starts[i] = 0;
            r->promised[i].view = r->promised[i].op = 0;
        }
    r->hello.heard = 0;
    r->group = *group;
    r->member_count = 0;
    r->started = 0;
    for (uint8_t i = 0; i < VR_NODES_MAX; i++)
        if (group->members >> i & 1)
            r->order[r->member_count++] = i;
}

/* The number of a view of the next epoch whose primary is the present one, if it stays. */
static uint64_t first_number(uint32_t old, uint32_t members, uint64_t view)
{
    uint32_t count = (uint32_t)__builtin_popcount(old & NODES_MASK);
    uint64_t steps = vr_number_of(view) % count;
    uint8_t primary = 0;
    for (uint8_t i = 0; i < VR_NODES_MAX; i++)
        if (old >> i & 1 && steps-- == 0)
            primary = i;
    if (!(members >> primary & 1))
        return 0;
    return (uint64_t)__builtin_popcount(members & ((1u << primary) - 1));
}

/* The group that is wished for, if it can be one. */
static bool group_wished(const struct vr_replica *r, const struct vr_reconfiguration *wish,
                         struct vr_group *ret_group)
{
    struct vr_group group = {.members = wish->members, .prior = r->executed.members};
    int count = __builtin_popcount(wish->members);
    if (count < 1 || count > VR_REPLICAS_MAX || wish->members & ~NODES_MASK)
        return false;
    for (uint8_t i = 0; i < VR_NODES_MAX; i++)
        group.incarnations[i] = wish->members >> i & 1 ? wish->incarnations[i] : 0;
    bool same =
        wish->members == r->executed.members &&
        memcmp(group.incarnations, r->executed.incarnations, sizeof(group.incarnations)) == 0;
    *ret_group = group;
    return !same || wish->renew == 1;
}

enum vr_result vr_reconfigure(struct vr_replica *r, const struct vr_entry *entry, const void *data,
                              uint32_t size)
{
    struct vr_reconfiguration wish;
    struct vr_group group;
    if (size != sizeof(wish))
        return VR_INVALID;
    memcpy(&wish, data, sizeof(wish));
    uint64_t epoch = vr_epoch_of(r->executed.first_view);
    if (wish.epoch != (uint32_t)epoch)
        return VR_CONFLICT;
    if (!group_wished(r, &wish, &group))
        return VR_INVALID;
    group.first_view = (epoch + 1) << VR_EPOCH_SHIFT |
                       first_number(r->executed.members, wish.members, entry->view);
    group.op = entry->op;
    group.checksum = entry->checksum;
    r->executed = group;
    return VR_OK;
}

bool vr_is_reconfiguration(const struct vr_replica *r, uint64_t op)
{
    struct vr_request request;
    if (!vr_has_body(r, op) || vr_slot(r, op)->entry.size < sizeof(request))
        return false;
    memcpy(&request, vr_body(r, op), sizeof(request));
    return request.opcode == VR_OP_RECONFIGURE;
}

/* Who begins a view as its primary: is there an entry that may end the epoch? */
void vr_fence_find(struct vr_replica *r)
{
    r->fence_op = 0;
    for (uint64_t op = r->commit + 1; op <= r->op; op++, r->counters.log_steps++)
        if (vr_is_reconfiguration(r, op))
            r->fence_op = op;
}

static void enter(struct vr_replica *r, const struct vr_group *group)
{
    vr_group_set(r, group);
    /* What was lost was lost in an older epoch; in this one nothing was promised yet. */
    r->uncertain = false;
    r->fresh = VR_FRESH_NO;
    vr_view_enter(r, group->first_view);
}

/* Whether this replica's own log holds the one with which the epoch began. */
static bool has_log(const struct vr_replica *r)
{
    return r->commit >= r->group.op || vr_checksum_at(r, r->group.op) == r->group.checksum;
}

/* Its own log up to where the epoch began is to be on disk, whole: then it counts. */
static void install_own(struct vr_replica *r)
{
    uint64_t op = vr_max(r->group.op, r->commit);
    struct vr_log_end end = {.there = true, .op = op, .commit = op};
    end.checksum = vr_checksum_at(r, op);
    if (vr_known(r, op)) {
        end.count = 1;
        end.heads[0] = vr_slot(r, op)->entry;
    }
    r->state = VR_VIEW_CHANGE;
    vr_install_begin(r, r->config.index, r->group.first_view, &end);
}

void vr_epoch_progress(struct vr_replica *r)
{
    if (vr_epoch_of(r->executed.first_view) > vr_epoch_of(r->view)) {
        /* Only a faulty primary puts anything behind the entry that ends its epoch. */
        if (r->state == VR_NORMAL && r->op > r->commit && !PLANTED(NO_FENCE)) {
            vr_drop(r, VR_DROP_BODY);
            vr_log_truncate(r, r->commit);
        }
        enter(r, &r->executed);
    }
    if (r->member_count && vr_joining(r) && !r->install.active && has_log(r))
        install_own(r);
}

/* Up to where the log is committed for certain: who has begun an epoch has all before it. */
uint64_t vr_sure_op(const struct vr_replica *r)
{
    return vr_joining(r) ? r->commit : vr_max(r->commit, r->group.op);
}

void vr_send_epoch(struct vr_replica *r, struct vr_update *u, uint8_t to)
{
    struct vr_group *group = vr_scratch(u, sizeof(*group));
    if (!group || vr_epoch_of(r->view) == 0 || !r->member_count)
        return;
    *group = r->group;
    struct vr_message *m = vr_emit(r, u, to, VR_EPOCH);
    m->header.view = r->group.first_view;
    m->header.op = r->group.op;
    m->header.flags = vr_sure_op(r) >= r->group.op ? VR_FLAG_HAS : 0;
    if (vr_in_group(r) && vr_epoch_of(r->durable.log_view) == vr_epoch_of(r->view) &&
        !r->durable.uncertain)
        m->header.flags |= VR_FLAG_STARTED;
    m->first = group;
    m->first_size = sizeof(*group);
}

void vr_on_epoch(struct vr_replica *r, const struct vr_header *h, const void *body,
                 struct vr_update *u)
{
    struct vr_group group;
    memcpy(&group, body, sizeof(group));
    bool other = vr_epoch_of(h->view) == vr_epoch_of(r->group.first_view) &&
                 memcmp(&group, &r->group, sizeof(group)) != 0;
    if (group.first_view != h->view || group.op != h->op || other) {
        vr_drop(r, VR_DROP_BODY);
        return;
    }
    if (vr_epoch_of(h->view) > vr_epoch_of(r->view)) {
        enter(r, &group);
        r->state = vr_in_group(r) ? VR_RECOVERING : VR_RETIRED;
    }
    if (h->flags & VR_FLAG_STARTED && vr_member(r, h->replica))
        r->started |= 1u << h->replica;
    bool member = vr_in_group(r);
    if (!vr_member(r, h->replica) && member && !(h->flags & VR_FLAG_STARTED))
        vr_send_epoch(r, u, h->replica);
    if (!vr_joining(r) || r->install.active || has_log(r) || !member || !(h->flags & VR_FLAG_HAS))
        return;
    struct vr_log_end end = {
        .there = true, .op = group.op, .commit = group.op, .checksum = group.checksum};
    r->state = VR_VIEW_CHANGE;
    vr_install_begin(r, h->replica, group.first_view, &end);
}

bool vr_may_leave(const struct vr_replica *r)
{
    return r->state == VR_RETIRED &&
           (uint32_t)__builtin_popcount(r->started) >= (PLANTED(LEAVE_EARLY) ? 0 : vr_quorum(r));
}

/* Who has left the group tells the new one until it stands. */
void vr_epoch_turn(struct vr_replica *r, struct vr_update *u)
{
    if (r->state != VR_RETIRED || vr_may_leave(r) || r->now_ns < r->resend_due_ns)
        return;
    r->resend_due_ns = r->now_ns + r->config.heartbeat_ns;
    VR_EACH_MEMBER (r, to)
        if (to != r->config.index && !(r->started >> to & 1))
            vr_send_epoch(r, u, to);
}

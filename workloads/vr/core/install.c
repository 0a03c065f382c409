/* SPDX-License-Identifier: MIT */
/*
 * Taking over the log of a view: the new primary from the best do_view_change, everybody else from
 * the primary's start_view.  Entries that agree stay, others are replaced one by one as they
 * arrive; the view counts as normal when the whole log and the view's number are on disk (rule 4).
 */
#include "vr/core/core_internal.h"

const struct vr_entry *vr_end_head(const struct vr_log_end *end, uint64_t op)
{
    uint64_t first = end->op + 1 - end->count;
    return op >= first && op <= end->op ? &end->heads[op - first] : NULL;
}

/* Checksums chain: where one entry agrees, all before it do. */
static uint64_t agreement(const struct vr_replica *r, const struct vr_log_end *end)
{
    for (uint64_t op = vr_min(end->op, r->op); op > r->commit; op--) {
        const struct vr_entry *head = vr_end_head(end, op);
        if (!head)
            break;
        if (vr_known(r, op) && vr_slot(r, op)->entry.checksum == head->checksum)
            return op;
    }
    return r->commit;
}

void vr_install_begin(struct vr_replica *r, uint8_t source, uint64_t log_view,
                      const struct vr_log_end *end)
{
    assert(end->op >= r->commit);
    r->install.active = true;
    r->install.source = source;
    r->install.log_view = log_view;
    r->install.end = *end;
    r->install.matched = agreement(r, end);
    r->commit_max = vr_max(r->commit_max, end->commit);
    r->fetch_due_ns = 0;
    r->arriving_active = false;
    r->change_begun_ns = r->now_ns;
}

void vr_install_heard(struct vr_replica *r, const struct vr_header *h)
{
    if (r->install.active && r->install.log_view == r->view && h->replica == r->install.source &&
        h->replica == vr_primary_of(r, r->view) && !PLANTED(INSTALL_DEAF))
        r->commit_max = vr_max(r->commit_max, h->commit);
}

uint64_t vr_install_need(const struct vr_replica *r)
{
    uint64_t hole = vr_first_hole(r);
    if (hole && hole <= r->install.matched)
        return hole;
    return r->install.matched < r->install.end.op ? r->install.matched + 1 : 0;
}

/* An entry that differs ends this replica's old log there.  That it ends there, also for entries
 * of its own view, must be on disk before the slot is written over, or a restart would find a log
 * that breaks off where it may not.  And not before all up to there is on disk, for the same
 * reason. */
static bool may_replace(struct vr_replica *r, uint64_t op)
{
    if (r->config.in_memory)
        return true;
    if (r->closed && r->view_op < op)
        return r->durable.closed && r->durable.view_op < op;
    if (r->durable_op < op - 1 && !PLANTED(CLOSED_EARLY))
        return false;
    r->closed = true;
    r->view_op = op - 1;
    r->view_checksum = vr_checksum_at(r, op - 1);
    return false;
}

void vr_install_prepare(struct vr_replica *r, const struct vr_header *h,
                        const struct vr_entry *entry, const void *body, struct vr_update *u)
{
    uint64_t op = entry->op;
    const struct vr_entry *head = vr_end_head(&r->install.end, op);
    bool named = head && head->checksum == entry->checksum;
    bool own = vr_known(r, op) && vr_slot(r, op)->entry.checksum == entry->checksum;
    if (op > vr_log_limit(r) || op > r->install.end.op ||
        (r->durable.uncertain != r->uncertain && !PLANTED(DOUBT_FORGOTTEN)))
        return;
    if (op <= r->install.matched) {
        if (own)
            vr_log_put(r, u, entry, body);
        return;
    }
    if (op != r->install.matched + 1 || (h->replica != r->install.source && !named))
        return;
    if (entry->parent != vr_checksum_at(r, op - 1)) {
        r->counters.forks_refused++;
        return;
    }
    if (!own && op <= r->op && !may_replace(r, op))
        return;
    vr_log_put(r, u, entry, body);
    r->install.matched = op;
    r->change_begun_ns = r->now_ns;
    /* The next part of a long log is asked for when this one is through. */
    if (op % 16 == 0)
        r->fetch_due_ns = r->now_ns;
}

/* An entry of which no requests can be found was not committed when so many replicas never had it
 * that no quorum is left; it is given up. */
static void give_up_lost(struct vr_replica *r)
{
    uint64_t need = vr_install_need(r);
    const struct vr_entry *head = vr_end_head(&r->install.end, need);
    if (!need || !head || need <= r->commit_max || vr_joining(r) ||
        vr_primary_of(r, r->view) != r->config.index)
        return;
    uint32_t without = 0;
    VR_EACH_MEMBER (r, i) {
        const struct vr_entry *other = vr_end_head(&r->ends[i], need);
        without += r->ends[i].there &&
                   (r->ends[i].op < need || (other && other->checksum != head->checksum));
    }
    if (without < r->member_count - vr_quorum(r) + 1)
        return;
    struct vr_log_end *end = &r->install.end;
    end->count -= (uint32_t)(end->op - need + 1);
    end->checksum = head->parent;
    end->op = need - 1;
    vr_log_truncate(r, vr_min(r->op, end->op));
    r->install.matched = vr_min(r->install.matched, end->op);
}

static void become_normal(struct vr_replica *r, struct vr_update *u)
{
    r->install.active = false;
    r->change_begun_ns = r->now_ns;
    r->state = !vr_in_group(r) ? VR_RETIRED : r->log_view == r->view ? VR_NORMAL : VR_VIEW_CHANGE;
    if (r->state != VR_NORMAL)
        return;
    r->wanted[r->config.index] = 0;
    r->primary_heard_ns = r->now_ns;
    r->fetch_upto = 0;
    /* All that is committed is in this log.  Only a faulty member can have said more (or one that
     * went on behind the end of an epoch), and what was committed meanwhile is said again. */
    if (!PLANTED(NO_FENCE))
        r->commit_max = vr_min(r->commit_max, r->op);
    r->ok_owed = !vr_leads(r);
    r->change_failures = 0;
    if (!PLANTED(STALE_ACKS))
        memset(r->ok_op, 0, sizeof(r->ok_op));
    VR_EACH_MEMBER (r, i)
        r->heard_ns[i] = r->now_ns;
    if (!vr_leads(r))
        return;
    r->heartbeat_due_ns = r->now_ns;
    vr_fence_find(r);
    VR_EACH_MEMBER (r, to)
        if (to != r->config.index)
            vr_send_start_view(r, u, to, 0);
}

/* Up to where the log is that of the view.  Who joins may have executed more than its epoch began
 * with: those entries are of later views, and a restart would not know them as this view's. */
static uint64_t log_begin(const struct vr_replica *r, uint64_t op, uint64_t view)
{
    while (op > r->newest.op && vr_known(r, op) && vr_slot(r, op)->entry.view > view)
        op--;
    return op;
}

void vr_install_progress(struct vr_replica *r, struct vr_update *u)
{
    const struct vr_log_end *end = &r->install.end;
    give_up_lost(r);
    bool whole = !vr_install_need(r);
    if (PLANTED(LOG_VIEW_EARLY) && !whole) {
        r->log_view = r->view;
        return;
    }
    if (!whole)
        return;
    if (r->op > end->op)
        vr_log_truncate(r, end->op);
    if (r->durable_op < end->op)
        return;
    assert(r->op == end->op && r->holes == 0);
    uint64_t view = r->install.log_view, begin = log_begin(r, end->op, view);
    if (r->log_view != view || r->view_op != begin || r->uncertain || r->closed) {
        r->uncertain = r->closed = false;
        r->log_view = view;
        r->view_op = begin;
        r->view_checksum = vr_checksum_at(r, begin);
    }
    if (r->durable.log_view == view && !r->durable.uncertain && !r->durable.closed)
        become_normal(r, u);
}

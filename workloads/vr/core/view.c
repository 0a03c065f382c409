/* SPDX-License-Identifier: MIT */
/*
 * View changes.  A replica that misses its primary says which view it wants and goes on as before;
 * only when a quorum wants one does it leave its view (so that a link that is broken in one
 * direction moves nobody).  Then the new view goes to disk, and after that do_view_change goes to
 * the new primary with the end of the log and the last view in which it was normal.
 */
#include "vr/core/core_internal.h"

static uint64_t patience_ns(const struct vr_replica *r)
{
    uint64_t base = r->config.timeout_ns;
    return base + base * r->config.index / 8 + base * vr_min(r->change_failures, 8) / 2;
}

/* Rule 6: who has lost its log has no vote until it has one again. */
static bool abstains(const struct vr_replica *r)
{
    if (r->state == VR_RETIRED || r->state == VR_NEW || vr_asks(r) ||
        (vr_joining(r) && !PLANTED(JOINER_VOTES)))
        return true;
    return (r->state == VR_RECOVERING && !PLANTED(JOINER_VOTES)) ||
           (r->uncertain && !PLANTED(HALF_RECOVERED));
}

void vr_view_want(struct vr_replica *r, uint64_t view)
{
    r->wanted[r->config.index] = vr_max(r->wanted[r->config.index], view);
}

void vr_view_enter(struct vr_replica *r, uint64_t view)
{
    assert(view > r->view);
    r->view = view;
    /* Half a log that was lost is worth nothing in another view: ask again. */
    bool voice =
        (!r->uncertain || PLANTED(HALF_RECOVERED)) && (!vr_joining(r) || PLANTED(JOINER_VOTES));
    r->state = voice ? VR_VIEW_CHANGE : VR_RECOVERING;
    r->wanted[r->config.index] = view;
    r->change_begun_ns = r->now_ns;
    r->resend_due_ns = r->now_ns;
    r->dvc_sent = false;
    r->install.active = false;
    r->arriving_active = false;
    r->fetch_upto = 0;
    r->queue_size = r->queue_count = 0;
    vr_sessions_forget_in_flight(&r->sessions);
    for (uint8_t i = 0; i < VR_NODES_MAX; i++)
        r->ends[i].there = false;
    r->counters.view_changes++;
}

/* Rule 2: the greatest view that a quorum wants. */
static void count_wishes(struct vr_replica *r)
{
    if (abstains(r))
        return;
    uint64_t best = 0;
    VR_EACH_MEMBER (r, i) {
        uint32_t count = 0;
        VR_EACH_MEMBER (r, j)
            count += r->wanted[j] >= r->wanted[i];
        if (count >= (PLANTED(ONE_WISH) ? 1 : vr_quorum(r)))
            best = vr_max(best, r->wanted[i]);
    }
    if (best > r->view)
        vr_view_enter(r, best);
}

void vr_on_start_view_change(struct vr_replica *r, const struct vr_header *h, struct vr_update *u)
{
    if (h->view == r->view) {
        if (vr_leads(r))
            vr_send_start_view(r, u, h->replica, 0);
        r->wanted[h->replica] = vr_max(r->wanted[h->replica], h->view);
        return;
    }
    r->wanted[h->replica] = vr_max(r->wanted[h->replica], h->view);
    /* Who has left its view was sent on by a quorum, and cannot come back but in a later one. */
    if (h->flags & VR_FLAG_ENTERED && !abstains(r))
        vr_view_enter(r, h->view);
    else
        count_wishes(r);
}

/* How much of the log's end is told; all that may be uncommitted, and more. */
static uint32_t fill_heads(const struct vr_replica *r, struct vr_entry *heads)
{
    uint64_t first = r->op + 1;
    while (r->op + 1 - first < VR_HEADS_MAX && vr_known(r, first - 1))
        first--;
    for (uint64_t op = first; op <= r->op; op++) {
        heads[op - first] = vr_slot(r, op)->entry;
        heads[op - first].flags = vr_slot(r, op)->has_body ? VR_ENTRY_HAS_BODY : 0;
    }
    return (uint32_t)(r->op + 1 - first);
}

static uint64_t last_normal_view(const struct vr_replica *r)
{
    if (PLANTED(ENTRY_VIEW_AS_LOG_VIEW))
        return vr_known(r, r->op) ? vr_slot(r, r->op)->entry.view : 0;
    return r->log_view;
}

static void own_end(const struct vr_replica *r, struct vr_log_end *end)
{
    *end = (struct vr_log_end){.there = true,
                               .log_view = last_normal_view(r),
                               .op = r->op,
                               .commit = vr_min(r->commit_max, r->op),
                               .checkpoint_op = r->newest.op,
                               .checksum = vr_checksum_at(r, r->op)};
    end->count = fill_heads(r, end->heads);
}

static void send_end(struct vr_replica *r, struct vr_update *u, struct vr_message *m)
{
    struct vr_view_head *head = vr_scratch(u, sizeof(*head));
    struct vr_entry *heads = vr_scratch(u, VR_HEADS_MAX * sizeof(*heads));
    if (!head || !heads) {
        u->message_count -= vr_room(u, 0) && u->message_count > 0;
        return;
    }
    uint32_t count = fill_heads(r, heads);
    *head = (struct vr_view_head){last_normal_view(r), r->newest.op, vr_checksum_at(r, r->op),
                                  count, 0};
    m->header.op = r->op;
    m->header.commit = vr_min(r->commit_max, r->op);
    m->first = head;
    m->first_size = sizeof(*head);
    m->second = heads;
    m->second_size = (uint32_t)(count * sizeof(*heads));
}

static void read_end(struct vr_log_end *end, const struct vr_header *h, const void *body)
{
    struct vr_view_head head;
    memcpy(&head, body, sizeof(head));
    *end = (struct vr_log_end){.there = true,
                               .log_view = head.log_view,
                               .op = h->op,
                               .commit = h->commit,
                               .checkpoint_op = head.checkpoint_op,
                               .checksum = head.head_checksum,
                               .count = head.count < VR_HEADS_MAX ? head.count : VR_HEADS_MAX};
    const char *last =
        (const char *)body + sizeof(head) + (head.count - end->count) * sizeof(struct vr_entry);
    memcpy(end->heads, last, end->count * sizeof(struct vr_entry));
}

void vr_on_do_view_change(struct vr_replica *r, const struct vr_header *h, const void *body)
{
    bool leads = !abstains(r) && vr_primary_of(r, h->view) == r->config.index;
    if (leads && h->view > r->view)
        vr_view_enter(r, h->view);
    /* Rule 5: a primary that restarted is in no position to begin its old view again. */
    if (!leads || r->state != VR_VIEW_CHANGE || r->log_view == r->view) {
        vr_drop(r, VR_DROP_STALE);
        return;
    }
    read_end(&r->ends[h->replica], h, body);
    vr_promised(r, h->replica, h->view, 0);
}

/* Rule 3. */
static bool better(const struct vr_log_end *a, const struct vr_log_end *b)
{
    if (a->log_view != b->log_view && !PLANTED(LONGEST_LOG))
        return a->log_view > b->log_view;
    return a->op > b->op;
}

static void choose_log(struct vr_replica *r)
{
    uint32_t count = 0;
    uint8_t best = r->config.index;
    uint64_t commit = 0;
    VR_EACH_MEMBER (r, i) {
        if (!r->ends[i].there)
            continue;
        count++;
        commit = vr_max(commit, r->ends[i].commit);
        if (better(&r->ends[i], &r->ends[best]))
            best = i;
    }
    if (count < vr_quorum(r) - (PLANTED(FEW_LOGS) ? 1 : 0))
        return;
    if (r->ends[best].op < r->commit && !PLANTED(LONGEST_LOG) && !PLANTED(FEW_LOGS)) {
        /* What was committed is in the log of a quorum: only a faulty member says otherwise. */
        vr_drop(r, VR_DROP_BODY);
        r->ends[best].there = false;
        return;
    }
    r->ends[best].commit = commit;
    if (PLANTED(LOOP_COPY) && best != r->config.index)
        r->ends[best] = (struct vr_log_end){.there = true}; /* as its destructor leaves it */
    vr_install_begin(r, best, r->view, &r->ends[best]);
}

void vr_on_start_view(struct vr_replica *r, const struct vr_header *h, const void *body)
{
    if (h->replica != vr_primary_of(r, h->view) ||
        (h->view == r->view && (r->state == VR_NORMAL || r->install.active)) ||
        (h->view == r->view && r->log_view == r->view && r->state != VR_RECOVERING)) {
        vr_drop(r, VR_DROP_STALE);
        return;
    }
    /* Rule 6. */
    if (r->uncertain && h->nonce != r->nonce && !PLANTED(ANY_START_VIEW)) {
        vr_drop(r, VR_DROP_STALE);
        return;
    }
    struct vr_log_end end;
    read_end(&end, h, body);
    if (end.op < r->commit) { /* an old one, said again: this replica has come further since */
        vr_drop(r, VR_DROP_STALE);
        return;
    }
    if (h->view > r->view)
        vr_view_enter(r, h->view);
    r->state = VR_VIEW_CHANGE;
    r->dvc_sent = true; /* the view has begun; nobody waits for this replica's log */
    vr_install_begin(r, h->replica, r->view, &end);
}

void vr_send_start_view(struct vr_replica *r, struct vr_update *u, uint8_t to, uint64_t nonce)
{
    struct vr_message *m = vr_emit(r, u, to, VR_START_VIEW);
    m->header.nonce = nonce;
    send_end(r, u, m);
}

void vr_on_get_view(struct vr_replica *r, const struct vr_header *h, struct vr_update *u)
{
    /* Who asks from a later view was sent there by a quorum, and waits for it to begin. */
    if (h->view > r->view && !abstains(r))
        vr_view_enter(r, h->view);
    else if (vr_leads(r) && h->view <= r->view && r->durable.log_view == r->view)
        vr_send_start_view(r, u, h->replica, h->nonce);
    else if (h->flags & VR_FLAG_JOIN)
        vr_send_epoch(r, u, h->replica);
}

void vr_ask_view(struct vr_replica *r, struct vr_update *u, uint8_t to)
{
    if (r->now_ns < r->view_asked_ns + r->config.heartbeat_ns / 4 && r->view_asked_ns)
        return;
    r->view_asked_ns = r->now_ns;
    struct vr_message *m = vr_emit(r, u, to, VR_GET_VIEW);
    m->header.nonce = r->nonce;
    m->header.flags = vr_joining(r) ? VR_FLAG_JOIN : 0;
}

/* Everybody who may know where this replica belongs. */
static void ask_all(struct vr_replica *r, struct vr_update *u)
{
    uint32_t asked = r->group.members | (vr_joining(r) ? r->group.prior : 0);
    for (uint8_t to = 0; to < VR_NODES_MAX; to++) {
        if (!(asked >> to & 1) || to == r->config.index)
            continue;
        struct vr_message *m = vr_emit(r, u, to, VR_GET_VIEW);
        m->header.nonce = r->nonce;
        m->header.flags = vr_joining(r) ? VR_FLAG_JOIN : 0;
    }
}

static void send_wish(struct vr_replica *r, struct vr_update *u, uint64_t view, uint8_t flags)
{
    VR_EACH_MEMBER (r, to) {
        if (to == r->config.index)
            continue;
        struct vr_message *m = vr_emit(r, u, to, VR_START_VIEW_CHANGE);
        m->header.view = view;
        m->header.flags = flags;
    }
}

static void send_do_view_change(struct vr_replica *r, struct vr_update *u)
{
    uint8_t primary = vr_primary_of(r, r->view);
    r->dvc_sent = true;
    if (primary == r->config.index)
        own_end(r, &r->ends[primary]);
    else
        send_end(r, u, vr_emit(r, u, primary, VR_DO_VIEW_CHANGE));
}

/* Whether this replica still has to bring its log into the view. */
static bool may_do_view_change(const struct vr_replica *r)
{
    return r->state == VR_VIEW_CHANGE && !r->install.active && r->log_view < r->view &&
           !abstains(r) && (r->durable.view == r->view || PLANTED(VIEW_NOT_KEPT));
}

void vr_view_turn(struct vr_replica *r, struct vr_update *u)
{
    uint8_t self = r->config.index;
    if (r->state == VR_NORMAL && !vr_leads(r) && r->now_ns - r->primary_heard_ns > patience_ns(r))
        vr_view_want(r, r->view + 1);
    bool stuck = r->state == VR_VIEW_CHANGE && r->now_ns - r->change_begun_ns > 2 * patience_ns(r);
    if (r->state == VR_RETIRED || r->state == VR_NEW || vr_asks(r))
        return;
    if (stuck && abstains(r)) {
        r->state = VR_RECOVERING;
        r->install.active = r->arriving_active = false;
    } else if (stuck) {
        r->change_failures++;
        r->change_begun_ns = r->now_ns;
        vr_view_want(r, r->view + 1);
    }
    count_wishes(r);
    bool waits = r->state != VR_NORMAL || r->wanted[self] > r->view;
    if (!waits || r->now_ns < r->resend_due_ns)
        return;
    r->resend_due_ns = r->now_ns + r->config.heartbeat_ns;
    if (r->state == VR_RECOVERING) {
        ask_all(r, u);
        return;
    }
    if (r->state == VR_VIEW_CHANGE && !r->install.active)
        send_wish(r, u, r->view, VR_FLAG_ENTERED);
    if (r->wanted[self] > r->view)
        send_wish(r, u, r->wanted[self], 0);
    if (may_do_view_change(r))
        send_do_view_change(r, u);
}

void vr_view_progress(struct vr_replica *r, struct vr_update *u)
{
    if (may_do_view_change(r) && !r->dvc_sent)
        send_do_view_change(r, u);
    if (r->state == VR_VIEW_CHANGE && !r->install.active && r->ends[r->config.index].there)
        choose_log(r);
    if (r->install.active)
        vr_install_progress(r, u);
}

/* When vr_view_turn has something to do: a timer runs out, or a wish is to be said again. */
uint64_t vr_view_deadline_ns(const struct vr_replica *r)
{
    uint64_t due = UINT64_MAX;
    if (vr_asks(r) && r->state != VR_RETIRED && r->state != VR_NEW)
        return due;
    if (r->state == VR_NORMAL && !vr_leads(r) && r->wanted[r->config.index] <= r->view)
        due = r->primary_heard_ns + patience_ns(r) + 1;
    if (r->state == VR_VIEW_CHANGE)
        due = r->change_begun_ns + 2 * patience_ns(r) + 1;
    if (r->state != VR_NORMAL || r->wanted[r->config.index] > r->view)
        due = vr_min(due, r->resend_due_ns);
    bool idle = r->state == VR_RETIRED && (vr_may_leave(r) || !r->member_count);
    return idle ? UINT64_MAX : due;
}

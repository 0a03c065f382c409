/* SPDX-License-Identifier: MIT */
/*
 * Who a replica is.  A number is not enough: if the disk of a member is lost and another is
 * formatted under its number, the new one knows nothing of what the old one promised, and a quorum
 * with it could do without what the old one acknowledged.  So each disk has an incarnation, drawn
 * when it is formatted, a group names the incarnations of its members, and nobody else has a voice
 * in it (vr_in_group).  A new disk comes in by a reconfiguration that names it.
 *
 * The first group has no log in which it could be named.  Its members tell each other who they are.
 * Who has heard of all agrees to that list, once and for all, on disk; when all have agreed to the
 * same list, the group is founded.  A disk that takes the place of one that had agreed is not on
 * the list, and finds nobody who agrees to another: so a lost disk cannot be replaced by an empty
 * one, however early it was lost.
 */
#include "vr/core/core_internal.h"

static void send(struct vr_replica *r, struct vr_update *u, uint8_t to)
{
    struct vr_founding *founding = vr_scratch(u, sizeof(*founding));
    if (!founding)
        return;
    memcpy(founding->incarnations, r->group.incarnations, sizeof(founding->incarnations));
    founding->incarnations[r->config.index] = r->incarnation;
    struct vr_message *m = vr_emit(r, u, to, VR_FOUND);
    if (r->state != VR_NEW)
        m->header.flags = VR_FLAG_STARTED;
    else if (r->durable.fresh == VR_FRESH_AGREED)
        m->header.flags = VR_FLAG_HAS;
    m->first = founding;
    m->first_size = sizeof(*founding);
}

static bool all_known(const struct vr_replica *r)
{
    VR_EACH_MEMBER (r, i)
        if (!r->group.incarnations[i])
            return false;
    return true;
}

static void found(struct vr_replica *r)
{
    r->fresh = VR_FRESH_NO;
    r->state = VR_NORMAL;
    r->primary_heard_ns = r->change_begun_ns = r->heartbeat_due_ns = r->now_ns;
    VR_EACH_MEMBER (r, i)
        r->heard_ns[i] = r->now_ns;
}

/* Founded: every other member has agreed, too. */
void vr_found_progress(struct vr_replica *r)
{
    if (r->state != VR_NEW)
        return;
    uint32_t rest = r->group.members & ~(1u << r->config.index);
    if (r->fresh == VR_FRESH_NEW) {
        r->group.incarnations[r->config.index] = r->incarnation;
        if (all_known(r))
            r->fresh = VR_FRESH_AGREED;
    }
    if (r->durable.fresh == VR_FRESH_AGREED && (r->agreed & rest) == rest)
        found(r);
}

void vr_on_found(struct vr_replica *r, const struct vr_header *h, const void *body,
                 struct vr_update *u)
{
    struct vr_founding founding;
    memcpy(&founding, body, sizeof(founding));
    if (!vr_member(r, h->replica)) {
        vr_drop(r, VR_DROP_SENDER);
        return;
    }
    if (r->state != VR_NEW) {
        /* Whether it is one of the founders is for the one that asks to see. */
        if (!(h->flags & VR_FLAG_STARTED) && vr_in_group(r))
            send(r, u, h->replica);
        return;
    }
    if (r->fresh == VR_FRESH_NEW && !(h->flags & VR_FLAG_STARTED))
        r->group.incarnations[h->replica] = founding.incarnations[h->replica];
    bool same =
        memcmp(founding.incarnations, r->group.incarnations, sizeof(founding.incarnations)) == 0;
    if (r->fresh != VR_FRESH_AGREED || !same)
        return;
    if (h->flags & VR_FLAG_HAS)
        r->agreed |= 1u << h->replica;
    if (h->flags & VR_FLAG_STARTED) /* which it is because all have agreed */
        r->agreed = r->group.members;
}

void vr_found_turn(struct vr_replica *r, struct vr_update *u)
{
    if (r->state != VR_NEW || r->now_ns < r->resend_due_ns)
        return;
    r->resend_due_ns = r->now_ns + r->config.heartbeat_ns;
    VR_EACH_MEMBER (r, to)
        if (to != r->config.index)
            send(r, u, to);
}

void vr_promised(struct vr_replica *r, uint8_t by, uint64_t view, uint64_t op)
{
    if (view > r->promised[by].view) {
        r->promised[by].view = view;
        r->promised[by].op = op;
    } else if (view == r->promised[by].view) {
        r->promised[by].op = vr_max(r->promised[by].op, op);
    }
}

void vr_hello_begin(struct vr_replica *r)
{
    const struct vr_durable *d = &r->durable;
    r->hello.own = (struct vr_hello){.incarnation = r->incarnation,
                                     .uncertain = r->uncertain,
                                     .starts = d->starts,
                                     .view = d->view,
                                     .op = r->op};
    r->hello.phase = r->incarnation ? VR_HELLO_ASKS : VR_HELLO_DONE;
    r->hello.begun_ns = r->now_ns;
}

static uint32_t others(const struct vr_replica *r)
{
    return r->group.members & ~(1u << r->config.index);
}

/* Whether there is somebody to speak to, and what is to be said is on disk. */
static bool may_speak(const struct vr_replica *r)
{
    return r->incarnation && r->state != VR_NEW && vr_in_group(r) &&
           r->durable.starts == r->hello.own.starts;
}

static void send_hello(struct vr_replica *r, struct vr_update *u, uint8_t to, uint64_t nonce,
                       uint8_t flags, struct vr_hello hello)
{
    struct vr_hello *body = vr_scratch(u, sizeof(*body));
    if (!body)
        return;
    *body = hello;
    struct vr_message *m = vr_emit(r, u, to, VR_HELLO);
    m->header.nonce = nonce;
    m->header.flags = flags;
    m->first = body;
    m->first_size = sizeof(*body);
}

/* Enough have answered: all, or as many as it takes, when the rest had time to. */
static bool enough_answered(const struct vr_replica *r)
{
    uint32_t answered = 1 + (uint32_t)__builtin_popcount(r->hello.heard & others(r));
    bool late = r->now_ns >= r->hello.begun_ns + 2 * r->config.heartbeat_ns;
    return answered == r->member_count || (answered >= vr_quorum(r) && late);
}

static void go_on(struct vr_replica *r)
{
    if (!vr_asks(r) || !may_speak(r) || !enough_answered(r))
        return;
    r->hello.phase = r->hello.phase == VR_HELLO_ASKS ? VR_HELLO_COUNTS : VR_HELLO_DONE;
    if (vr_asks(r)) {
        r->hello.heard = 0;
        r->hello.due_ns = r->now_ns;
        r->hello.own.starts++;
        return;
    }
    r->ok_owed = r->state == VR_NORMAL;
    r->primary_heard_ns = r->change_begun_ns = r->resend_due_ns = r->now_ns;
    VR_EACH_MEMBER (r, i)
        r->heard_ns[i] = r->now_ns;
}

/* Those that were away at first are told, too: they are to remember it. */
void vr_hello_turn(struct vr_replica *r, struct vr_update *u)
{
    go_on(r);
    uint32_t silent = others(r) & ~r->hello.heard;
    if (!may_speak(r) || !silent || r->now_ns < r->hello.due_ns)
        return;
    r->hello.due_ns =
        r->now_ns + (vr_asks(r) ? r->config.heartbeat_ns / 2 : 2 * r->config.timeout_ns);
    uint8_t flags = r->hello.phase == VR_HELLO_ASKS ? 0 : VR_FLAG_STARTED;
    VR_EACH_MEMBER (r, to)
        if (silent >> to & 1)
            send_hello(r, u, to, r->nonce, flags, r->hello.own);
}

uint64_t vr_hello_deadline_ns(const struct vr_replica *r)
{
    if (!may_speak(r) || (!vr_asks(r) && !(others(r) & ~r->hello.heard)))
        return UINT64_MAX;
    return r->hello.due_ns;
}

/* What the others know of this disk is more than what it knows: it was not there. */
static bool is_old_copy(const struct vr_hello *own, const struct vr_hello *told)
{
    if (PLANTED(COPY_TRUSTED))
        return false;
    return told->starts > own->starts || told->view > own->view ||
           (told->view == own->view && told->op > own->op && !own->uncertain);
}

static void become_another(struct vr_replica *r)
{
    uint32_t next = (uint32_t)r->nonce;
    r->is_old_copy = true;
    r->incarnation = next == 0 || next == r->incarnation ? r->incarnation + 1 : next;
    r->state = VR_RETIRED;
    r->install.active = r->arriving_active = false;
    r->hello.own.incarnation = r->incarnation;
    r->hello.heard = 0;
}

static void answer(struct vr_replica *r, const struct vr_header *h, const struct vr_hello *hello,
                   struct vr_update *u)
{
    uint8_t from = h->replica;
    if (!vr_member(r, from) || hello->incarnation != r->group.incarnations[from] ||
        !vr_in_group(r) || r->state == VR_NEW) {
        vr_drop(r, VR_DROP_SENDER);
        return;
    }
    struct vr_hello told = {.incarnation = hello->incarnation,
                            .starts = r->known_starts[from],
                            .view = r->promised[from].view,
                            .op = r->promised[from].op};
    if (h->flags & VR_FLAG_STARTED && hello->starts > r->known_starts[from])
        r->known_starts[from] = hello->starts;
    send_hello(r, u, from, h->nonce, VR_FLAG_HAS | (h->flags & VR_FLAG_STARTED), told);
}

void vr_on_hello(struct vr_replica *r, const struct vr_header *h, const void *body,
                 struct vr_update *u)
{
    struct vr_hello hello;
    memcpy(&hello, body, sizeof(hello));
    if (!(h->flags & VR_FLAG_HAS)) {
        answer(r, h, &hello, u);
        return;
    }
    bool counted = h->flags & VR_FLAG_STARTED;
    if (h->nonce != r->nonce || hello.incarnation != r->incarnation || !vr_member(r, h->replica) ||
        counted != (r->hello.phase != VR_HELLO_ASKS)) {
        vr_drop(r, VR_DROP_STALE);
        return;
    }
    if (vr_asks(r) && is_old_copy(&r->hello.own, &hello)) {
        become_another(r);
        return;
    }
    r->hello.heard |= 1u << h->replica;
    go_on(r);
}

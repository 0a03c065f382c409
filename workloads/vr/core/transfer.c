/* SPDX-License-Identifier: MIT */
/*
 * The state of another replica, for one whose missing entries nobody has any more.  Only what
 * differs travels: the sums of groups of pages are compared, of groups that differ those of their
 * pages, and of pages that differ the content is asked for.  What has come is kept when the other
 * has a newer checkpoint meanwhile, or when another replica goes on with it: then only what differs
 * from that is asked for.  The log is cut only when the state that takes its place is on disk.
 *
 * One wish at a time is under way, for up to VR_WISHES_MAX groups or pages; what does not come is
 * asked for again.
 */
#include "base/memory.h"
#include "vr/core/core_internal.h"

static uint32_t in_group(const struct vr_replica *r)
{
    return vr_pages_in_group(&r->pages);
}

static uint32_t groups_of(const struct vr_replica *r, uint32_t pages)
{
    return (pages + in_group(r) - 1) / in_group(r);
}

void vr_arriving_init(struct vr_replica *r)
{
    uint32_t groups = groups_of(r, r->pages.count);
    r->arriving = (struct vr_arriving){0};
    r->arriving.place = memory_zalloc(r->pages.count, sizeof(uint32_t));
    r->arriving.groups = memory_zalloc(groups, sizeof(uint64_t));
    r->arriving.deltas = memory_zalloc(groups, sizeof(uint64_t));
    r->arriving_active = false;
}

void vr_arriving_done(struct vr_replica *r)
{
    for (uint32_t i = 0; i < r->arriving.page_count; i++)
        free(r->arriving.pages[i].content);
    free(r->arriving.pages);
    free(r->arriving.place);
    free(r->arriving.groups);
    free(r->arriving.deltas);
    free(r->arriving.wanted);
    r->arriving = (struct vr_arriving){0};
}

void vr_arriving_forget(struct vr_replica *r)
{
    vr_arriving_done(r);
    vr_arriving_init(r);
}

/* ---- who has it */

static struct vr_message *chunk(struct vr_replica *r, struct vr_update *u,
                                const struct vr_header *asked, struct vr_state_head head)
{
    struct vr_state_head *place = vr_scratch(u, sizeof(*place));
    if (!place || !vr_room(u, 64))
        return NULL;
    head.entry_checksum = r->newest.entry_checksum;
    head.checksum = r->newest.checksum;
    head.view = r->view;
    head.size = (uint32_t)r->newest.size;
    *place = head;
    struct vr_message *m = vr_emit(r, u, asked->replica, VR_STATE_CHUNK);
    m->header.view = asked->view;
    m->header.op = r->newest.op;
    if (asked->replica == VR_TO_CLIENT)
        m->header.client = asked->client;
    m->first = place;
    m->first_size = sizeof(*place);
    return m;
}

static void send_groups(struct vr_replica *r, struct vr_update *u, const struct vr_header *asked,
                        uint32_t first)
{
    uint32_t total = groups_of(r, (uint32_t)r->newest.size);
    uint32_t count = (uint32_t)vr_min(total - vr_min(first, total), VR_SUMS_IN_CHUNK);
    struct vr_message *m =
        chunk(r, u, asked,
              (struct vr_state_head){.kind = VR_STATE_GROUPS, .first = first, .count = count});
    if (!m || !count)
        return;
    m->second = r->pages.groups + first;
    m->second_size = count * (uint32_t)sizeof(uint64_t);
}

static void send_item(struct vr_replica *r, struct vr_update *u, const struct vr_header *asked,
                      uint32_t kind, uint32_t item)
{
    bool page = kind == VR_STATE_PAGES;
    if (item >= (page ? r->newest.size : groups_of(r, (uint32_t)r->newest.size)))
        return;
    struct vr_message *m =
        chunk(r, u, asked, (struct vr_state_head){.kind = kind, .first = item, .count = 1});
    if (!m)
        return;
    uint32_t first = item * in_group(r);
    uint32_t count = (uint32_t)vr_min(in_group(r), r->pages.count - vr_min(first, r->pages.count));
    m->second = page ? (const void *)vr_pages_newest(&r->pages, item) : r->pages.sums + first;
    m->second_size = page ? r->pages.bytes : count * (uint32_t)sizeof(uint64_t);
}

void vr_state_offer(struct vr_replica *r, struct vr_update *u, const struct vr_header *asked)
{
    if (r->newest.size)
        send_groups(r, u, asked, 0);
}

void vr_on_get_state(struct vr_replica *r, const struct vr_header *h, const void *body,
                     struct vr_update *u)
{
    struct vr_state_wish wish;
    memcpy(&wish, body, sizeof(wish));
    if (((r->state == VR_RECOVERING || r->uncertain) && !(h->flags & VR_FLAG_JOIN)) ||
        wish.count > VR_WISHES_MAX || !r->newest.size)
        return;
    /* Another checkpoint than the one asked for is offered from its beginning. */
    if (h->op != r->newest.op) {
        vr_state_offer(r, u, h);
        return;
    }
    for (uint32_t i = 0; i < wish.count; i++) {
        if (wish.kind == VR_STATE_GROUPS)
            send_groups(r, u, h, wish.items[i]);
        else
            send_item(r, u, h, wish.kind, wish.items[i]);
    }
}

/* ---- who needs it */

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

/* The sum of a page as it would be if all that has come were in place. */
static uint64_t own_sum(const struct vr_replica *r, uint32_t page)
{
    uint32_t place = r->arriving.place[page];
    return place ? r->arriving.pages[place - 1].sum : r->pages.sums[page];
}

static void count_page(struct vr_replica *r, uint32_t page, uint64_t before, uint64_t after)
{
    r->arriving.deltas[page / in_group(r)] += after - before;
    r->arriving.delta += after - before;
}

static void aim(struct vr_replica *r, const struct vr_header *h, const struct vr_state_head *head)
{
    struct vr_arriving *a = &r->arriving;
    a->state = (struct vr_snapshot){.op = h->op,
                                    .entry_checksum = head->entry_checksum,
                                    .checksum = head->checksum,
                                    .size = head->size,
                                    .view = head->view};
    a->group_got = a->group_next = a->wanted_count = 0;
    a->wish = (struct vr_state_wish){0};
    a->missing = 0;
    a->complete = false;
    memset(a->deltas, 0, groups_of(r, r->pages.count) * sizeof(uint64_t));
    a->delta = 0;
    for (uint32_t i = 0; i < a->page_count; i++)
        count_page(r, a->pages[i].page, r->pages.sums[a->pages[i].page], a->pages[i].sum);
    r->arriving_active = true;
    r->arriving_from = h->replica;
    r->change_begun_ns = r->now_ns;
    if (PLANTED(DROP_BEFORE_STATE) && r->op > r->commit)
        vr_log_truncate(r, r->commit);
}

static void take_groups(struct vr_replica *r, const struct vr_state_head *head, const void *sums)
{
    struct vr_arriving *a = &r->arriving;
    uint32_t total = groups_of(r, (uint32_t)a->state.size);
    if (head->first != a->group_got || head->count > total - a->group_got)
        return;
    memcpy(a->groups + a->group_got, sums, head->count * sizeof(uint64_t));
    a->group_got += head->count;
    a->missing = 0;
}

/* Which of what was wished for this is, and that it has come. */
static bool is_wished(struct vr_replica *r, const struct vr_state_head *head, uint32_t *ret_index)
{
    struct vr_arriving *a = &r->arriving;
    for (uint32_t i = 0; i < a->wish.count; i++)
        if (a->wish.kind == head->kind && a->wish.items[i] == head->first && a->missing >> i & 1) {
            *ret_index = i;
            return true;
        }
    return false;
}

static void take_sums(struct vr_replica *r, const struct vr_state_head *head,
                      const unsigned char *sums, uint32_t count)
{
    struct vr_arriving *a = &r->arriving;
    uint32_t index, first = head->first * in_group(r);
    if (!is_wished(r, head, &index))
        return;
    a->missing &= ~(1u << index);
    for (uint32_t i = 0; i < count && first + i < a->state.size; i++) {
        uint64_t sum;
        memcpy(&sum, sums + i * sizeof(sum), sizeof(sum));
        if (sum == own_sum(r, first + i))
            continue;
        if (a->wanted_count == a->wanted_capacity) {
            a->wanted_capacity = a->wanted_capacity ? 2 * a->wanted_capacity : 64;
            a->wanted = memory_resize(a->wanted, a->wanted_capacity, sizeof(*a->wanted));
        }
        a->wanted[a->wanted_count++] = (struct vr_wanted_page){first + i, sum};
    }
}

static void keep_page(struct vr_replica *r, uint32_t page, const void *content, uint64_t sum)
{
    struct vr_arriving *a = &r->arriving;
    if (!a->place[page]) {
        if (a->page_count == a->page_capacity) {
            a->page_capacity = a->page_capacity ? 2 * a->page_capacity : 64;
            a->pages = memory_resize(a->pages, a->page_capacity, sizeof(*a->pages));
        }
        a->pages[a->page_count++] = (struct vr_arrived_page){page, 0, memory_alloc(r->pages.bytes)};
        a->place[page] = a->page_count;
    }
    struct vr_arrived_page *p = &a->pages[a->place[page] - 1];
    p->sum = sum;
    memcpy(p->content, content, r->pages.bytes);
}

static void take_page(struct vr_replica *r, const struct vr_state_head *head,
                      const unsigned char *content)
{
    struct vr_arriving *a = &r->arriving;
    uint32_t index, page = head->first;
    if (!is_wished(r, head, &index) ||
        vr_page_sum(page, content, r->pages.bytes) != a->wish_sums[index])
        return;
    if (!vr_state_page_valid(r, page, content)) {
        vr_drop(r,
                VR_DROP_BODY); /* only a faulty member sends this: nothing of its state is taken */
        r->arriving_active = false;
        return;
    }
    a->missing &= ~(1u << index);
    count_page(r, page, own_sum(r, page), a->wish_sums[index]);
    keep_page(r, page, content, a->wish_sums[index]);
}

static bool chunk_fits(const struct vr_replica *r, const struct vr_state_head *head, size_t size)
{
    if (head->size == 0 || head->size > r->pages.count)
        return false;
    if (head->kind == VR_STATE_GROUPS)
        return head->count <= VR_SUMS_IN_CHUNK && size == head->count * sizeof(uint64_t);
    if (head->kind == VR_STATE_SUMS)
        return size % sizeof(uint64_t) == 0 && size <= in_group(r) * sizeof(uint64_t);
    return head->kind == VR_STATE_PAGES && size == r->pages.bytes && head->first < head->size;
}

void vr_arriving_take(struct vr_replica *r, const struct vr_header *h, const void *body)
{
    struct vr_arriving *a = &r->arriving;
    struct vr_state_head head;
    memcpy(&head, body, sizeof(head));
    const unsigned char *bytes = (const unsigned char *)body + sizeof(head);
    size_t size = h->size - sizeof(head);
    if (!chunk_fits(r, &head, size)) {
        vr_drop(r, VR_DROP_BODY);
        return;
    }
    if (head.kind == VR_STATE_GROUPS && head.first == 0 &&
        (!r->arriving_active || h->op > a->state.op))
        aim(r, h, &head);
    if (!r->arriving_active || h->op != a->state.op || head.checksum != a->state.checksum ||
        head.size != a->state.size)
        return;
    r->change_begun_ns = r->now_ns;
    if (head.kind == VR_STATE_GROUPS)
        take_groups(r, &head, bytes);
    else if (head.kind == VR_STATE_SUMS)
        take_sums(r, &head, bytes, (uint32_t)(size / sizeof(uint64_t)));
    else
        take_page(r, &head, bytes);
    if (!a->missing)
        r->state_due_ns = r->now_ns;
}

void vr_on_state_chunk(struct vr_replica *r, const struct vr_header *h, const void *body)
{
    uint8_t source;
    /* Who joins takes it of anybody: what a checkpoint holds is committed. */
    bool joins = vr_joining(r) && r->install.active;
    if ((!joins && (!vr_state_source(r, &source) || source != h->replica)) || h->op <= r->commit ||
        r->pending_there)
        vr_drop(r, VR_DROP_STALE);
    else
        vr_arriving_take(r, h, body);
}

static void wish_for(struct vr_replica *r, uint32_t kind, uint32_t item, uint64_t sum)
{
    struct vr_arriving *a = &r->arriving;
    a->wish.kind = kind;
    a->wish_sums[a->wish.count] = sum;
    a->wish.items[a->wish.count] = item;
    a->missing |= 1u << a->wish.count++;
}

/* What to ask for next; false: everything is there. */
static bool next_wish(struct vr_replica *r)
{
    struct vr_arriving *a = &r->arriving;
    uint32_t total = groups_of(r, (uint32_t)a->state.size);
    a->wish = (struct vr_state_wish){0};
    a->missing = 0;
    if (a->group_got < total) {
        wish_for(r, VR_STATE_GROUPS, a->group_got, 0);
        return true;
    }
    while (a->wanted_count && a->wish.count < VR_WISHES_MAX) {
        struct vr_wanted_page w = a->wanted[--a->wanted_count];
        wish_for(r, VR_STATE_PAGES, w.page, w.sum);
    }
    bool pages = a->wish.count != 0;
    for (; !pages && a->group_next < total && a->wish.count < VR_WISHES_MAX; a->group_next++)
        if (r->pages.groups[a->group_next] + a->deltas[a->group_next] != a->groups[a->group_next])
            wish_for(r, VR_STATE_SUMS, a->group_next, 0);
    return a->wish.count != 0;
}

static const unsigned char *read_arrived(const void *context, uint32_t page)
{
    const struct vr_replica *r = context;
    uint32_t place = r->arriving.place[page];
    return place ? r->arriving.pages[place - 1].content : vr_pages_newest(&r->pages, page);
}

/* All that differed has come: it becomes a checkpoint of this replica, and then its state. */
void vr_arriving_complete(struct vr_replica *r)
{
    struct vr_arriving *a = &r->arriving;
    /* The log came first: what is arriving is old. */
    if (r->arriving_active && a->state.op <= r->commit)
        r->arriving_active = false;
    if (!r->arriving_active || !a->complete || r->pending_there)
        return;
    r->arriving_active = a->complete = false;
    if (r->pages.root + a->delta != a->state.checksum || !vr_state_valid(r, read_arrived, r)) {
        vr_drop(r, VR_DROP_BODY);
        vr_arriving_forget(r);
        return;
    }
    for (uint32_t i = 0; i < r->unfinished_count; i++)
        if (!a->place[r->unfinished[i]])
            keep_page(r, r->unfinished[i], vr_pages_newest(&r->pages, r->unfinished[i]),
                      r->pages.sums[r->unfinished[i]]);
    r->pending = a->state;
    r->pending_there = r->pending_adopt = true;
    r->pending_next = r->pending_out = r->pending_again_count = 0;
}

bool vr_arriving_wish(struct vr_replica *r, struct vr_state_wish *ret_wish)
{
    struct vr_arriving *a = &r->arriving;
    if (!a->missing && !next_wish(r)) {
        a->complete = true;
        return false;
    }
    *ret_wish = (struct vr_state_wish){.kind = a->wish.kind};
    for (uint32_t i = 0; i < a->wish.count; i++)
        if (a->missing >> i & 1)
            ret_wish->items[ret_wish->count++] = a->wish.items[i];
    return true;
}

void vr_state_turn(struct vr_replica *r, struct vr_update *u)
{
    struct vr_arriving *a = &r->arriving;
    struct vr_state_wish wish;
    uint8_t source;
    if (!r->arriving_active || a->complete || r->now_ns < r->state_due_ns)
        return;
    if (!vr_joining(r) && (!vr_state_source(r, &source) || source != r->arriving_from)) {
        r->arriving_active = false;
        return;
    }
    if (!vr_arriving_wish(r, &wish))
        return;
    struct vr_state_wish *place = vr_scratch(u, sizeof(*place));
    if (!place)
        return;
    *place = wish;
    struct vr_message *m = vr_emit(r, u, r->arriving_from, VR_GET_STATE);
    m->header.op = a->state.op;
    m->header.flags = vr_joining(r) ? VR_FLAG_JOIN : 0;
    m->first = place;
    m->first_size = sizeof(*place);
    r->state_due_ns = r->now_ns + r->config.heartbeat_ns / 2;
}

uint64_t vr_state_deadline_ns(const struct vr_replica *r)
{
    if (r->arriving_active && r->arriving.complete)
        return r->now_ns;
    return r->arriving_active ? r->state_due_ns : UINT64_MAX;
}

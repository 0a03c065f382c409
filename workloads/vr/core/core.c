/* SPDX-License-Identifier: MIT */
/* The life of a replica, and where each event goes. */
#include "vr/core/core.h"
#include "base/clock.h"
#include "base/memory.h"
#include "vr/core/core_internal.h"

const char *const vr_planted_names[PLANTED_COUNT] = {
    "none",
    "entry-view-as-log-view",
    "longest-log",
    "view-not-kept",
    "ack-early",
    "small-quorum",
    "primary-resumes",
    "log-view-early",
    "tail-kept",
    "headers-ignored",
    "any-start-view",
    "drop-before-state",
    "twice",
    "session-unchecked",
    "evict-by-local",
    "local-read",
    "execute-early",
    "half-recovered",
    "no-fence",
    "joiner-votes",
    "leave-early",
    "stale-acks",
    "few-logs",
    "doubt-forgotten",
    "joins-any-epoch",
    "slots-reused",
    "checkpoint-early",
    "checksum-unchecked",
    "head-later",
    "copy-trusted",
    "last-prepare-only",
    "always-recovers",
    "one-wish",
    "fragments-in-order",
    "log-never-cut",
    "loop-copy",
    "fresh-starts",
    "memory-trusted",
    "any-reply",
    "places-moved",
    "narrow-counters",
    "silent-refusal",
    "checkpoint-missed",
    "closed-early",
    "closed-forgotten",
    "no-sync",
    "no-dsync",
    "renumbered",
    "install-deaf",
};
#ifdef VR_PLANTED
enum vr_planted vr_planted;
#endif

void vr_config_default(struct vr_config *config)
{
    *config = (struct vr_config){.cluster = 1,
                                 .replica_count = 3,
                                 .slots = 1024,
                                 .checkpoint_every = 256,
                                 .pipeline = 16,
                                 .batch_bytes = 32768,
                                 .sessions = 1024,
                                 .kv_capacity = 16384,
                                 .page_bytes = 4096,
                                 .heartbeat_ns = 20 * NS_PER_MS,
                                 .timeout_ns = 100 * NS_PER_MS};
}

uint64_t vr_genesis_checksum(uint32_t cluster)
{
    return vr_hash(&cluster, sizeof(cluster));
}

static void load_entries(struct vr_replica *r, const struct vr_image *image)
{
    for (uint32_t i = 0; i < image->count; i++) {
        const struct vr_entry *entry = &image->entries[i];
        struct vr_slot *slot = vr_slot(r, entry->op);
        bool has_body = entry->flags & VR_ENTRY_HAS_BODY;
        *slot = (struct vr_slot){.entry = *entry, .has_body = has_body, .durable = has_body};
        slot->entry.flags = 0;
        if (has_body)
            memcpy(vr_body(r, entry->op), image->body(image, i), entry->size);
        else
            r->holes++;
        r->op = entry->op;
    }
}

static void start_state(struct vr_replica *r, bool certain)
{
    const struct vr_durable *d = &r->durable;
    bool was_primary = vr_primary_of(r, d->view) == r->config.index;
    r->uncertain = !certain;
    if (r->fresh >= VR_FRESH_NEW && vr_member(r, r->config.index))
        r->state = VR_NEW;
    else if (!vr_in_group(r))
        r->state = VR_RETIRED;
    else if (!certain || vr_joining(r) || PLANTED(ALWAYS_RECOVERS))
        r->state = VR_RECOVERING;
    else if (d->view == d->log_view && (!was_primary || d->fresh || PLANTED(PRIMARY_RESUMES)))
        r->state = VR_NORMAL;
    else
        r->state = VR_VIEW_CHANGE;
    if (r->state == VR_VIEW_CHANGE)
        vr_view_want(r, d->view + 1);
}

struct vr_replica *vr_replica_new(const struct vr_config *config, struct vr_image *image,
                                  uint64_t nonce, uint64_t now_ns)
{
    struct vr_replica *r = memory_zalloc(1, sizeof(*r));
    assert(config->replica_count <= VR_REPLICAS_MAX && config->index < VR_NODES_MAX);
    assert(config->pipeline < VR_HEADS_MAX && config->batch_bytes % 8 == 0);
    r->config = *config;
    r->nonce = nonce;
    r->now_ns = now_ns;
    r->slots = memory_zalloc(config->slots, sizeof(*r->slots));
    r->bodies = memory_alloc((size_t)config->slots * config->batch_bytes);
    r->queue = memory_alloc(4 * (size_t)config->batch_bytes);
    vr_state_init(r, image);

    r->durable = image->durable;
    r->view = image->durable.view;
    r->log_view = image->durable.log_view;
    r->view_op = image->durable.view_op;
    r->closed = image->durable.closed && !PLANTED(CLOSED_FORGOTTEN);
    r->incarnation = image->durable.incarnation;
    /* Who is founded has started when it has said so on disk. */
    r->fresh = image->durable.fresh == VR_FRESH_FOUNDED ? VR_FRESH_NO : image->durable.fresh;
    r->view_checksum = image->durable.view_checksum;
    memcpy(r->known_starts, image->durable.known_starts, sizeof(r->known_starts));
    struct vr_group first = vr_group_first(config);
    r->executed = first;
    r->group = image->durable.group;
    vr_group_set(r, image->durable.group.members ? &image->durable.group : &first);
    bool certain = !image->uncertain && vr_checkpoint_load(r, image);
    if (image->uncertain)
        vr_checkpoint_load(r, image);
    if (certain)
        load_entries(r, image);
    vr_log_advance_durable(r);
    r->primary_heard_ns = r->change_begun_ns = now_ns;
    for (unsigned i = 0; i < VR_NODES_MAX; i++)
        r->heard_ns[i] = now_ns;
    start_state(r, certain);
    vr_hello_begin(r);
    return r;
}

void vr_replica_free(struct vr_replica *r)
{
    if (!r)
        return;
    vr_state_done(r);
    free(r->slots);
    free(r->bodies);
    free(r->queue);
    free(r);
}

uint8_t vr_primary(const struct vr_replica *r, uint64_t view)
{
    return vr_primary_of(r, view);
}

bool vr_is_primary(const struct vr_replica *r)
{
    return vr_leads(r);
}

struct vr_message *vr_emit(struct vr_replica *r, struct vr_update *u, uint8_t to, enum vr_type type)
{
    struct vr_message *m = &u->messages[u->message_count];
    if (vr_room(u, 1))
        u->message_count++; /* else it is as if lost */
    *m = (struct vr_message){.to = to,
                             .header = {.type = (uint8_t)type,
                                        .replica = r->config.index,
                                        .epoch = (uint16_t)vr_epoch_of(r->view),
                                        .cluster = r->config.cluster,
                                        .view = r->view}};
    return m;
}

void *vr_scratch(struct vr_update *u, size_t size)
{
    size = (size + 7) / 8 * 8;
    if (sizeof(u->scratch) - u->scratch_used < size)
        return NULL;
    void *place = u->scratch + u->scratch_used;
    u->scratch_used += size;
    return place;
}

void vr_drop(struct vr_replica *r, enum vr_drop why)
{
    r->counters.dropped[why]++;
}

void vr_status_fill(const struct vr_replica *r, struct vr_status *status)
{
    *status = (struct vr_status){.view = r->view,
                                 .log_view = r->log_view,
                                 .op = r->op,
                                 .durable_op = r->durable_op,
                                 .commit = r->commit,
                                 .commit_max = r->commit_max,
                                 .checkpoint_op = r->newest.op,
                                 .executed = r->counters.executed,
                                 .state = r->state,
                                 .replica = r->config.index,
                                 .members = r->group.members,
                                 .started = r->started,
                                 .incarnation = r->incarnation,
                                 .fresh = r->fresh};
    memcpy(status->incarnations, r->group.incarnations, sizeof(status->incarnations));
    memcpy(status->dropped, r->counters.dropped, sizeof(status->dropped));
}

static void on_status(struct vr_replica *r, const struct vr_header *h, struct vr_update *u)
{
    struct vr_status *status = vr_scratch(u, sizeof(*status));
    if (!status)
        return;
    vr_status_fill(r, status);
    struct vr_message *m = vr_emit(r, u, VR_TO_CLIENT, VR_STATUS_REPLY);
    m->header.client = h->client;
    m->first = status;
    m->first_size = sizeof(*status);
}

/* A message of a later view: who sent it can show the way. */
static void on_later_view(struct vr_replica *r, const struct vr_header *h, const void *body,
                          struct vr_update *u)
{
    switch (h->type) {
    case VR_START_VIEW_CHANGE:
        vr_on_start_view_change(r, h, u);
        break;
    case VR_DO_VIEW_CHANGE:
        vr_on_do_view_change(r, h, body);
        break;
    case VR_START_VIEW:
        vr_on_start_view(r, h, body);
        break;
    case VR_PREPARE:
    case VR_COMMIT:
        if (vr_primary_of(r, h->view) == h->replica)
            vr_ask_view(r, u, h->replica);
        break;
    default:
        vr_drop(r, VR_DROP_STALE);
    }
}

static void on_present_view(struct vr_replica *r, const struct vr_header *h, const void *body,
                            struct vr_update *u)
{
    switch (h->type) {
    case VR_PREPARE:
        vr_on_prepare(r, h, body, u);
        break;
    case VR_PREPARE_OK:
        vr_on_prepare_ok(r, h);
        break;
    case VR_COMMIT:
        vr_on_commit(r, h);
        if (r->state != VR_NORMAL && !r->install.active)
            vr_ask_view(r, u, h->replica);
        break;
    case VR_START_VIEW_CHANGE:
        vr_on_start_view_change(r, h, u);
        break;
    case VR_DO_VIEW_CHANGE:
        vr_on_do_view_change(r, h, body);
        break;
    case VR_START_VIEW:
        vr_on_start_view(r, h, body);
        break;
    case VR_GET_PREPARE:
        vr_on_get_prepare(r, h, u);
        break;
    case VR_GET_STATE:
        vr_on_get_state(r, h, body, u);
        break;
    case VR_STATE_CHUNK:
        vr_on_state_chunk(r, h, body);
        break;
    default:
        vr_drop(r, VR_DROP_TYPE);
    }
}

/* What those may say who are not, or not yet, in the group: questions, and what was asked. */
static bool open_to_all(const struct vr_header *h)
{
    return h->type == VR_GET_VIEW || h->type == VR_STATE_CHUNK || h->flags & VR_FLAG_JOIN ||
           (h->type == VR_PREPARE && h->flags & VR_FLAG_REPAIR);
}

static void on_present_epoch(struct vr_replica *r, const struct vr_header *h, const void *body,
                             struct vr_update *u)
{
    bool member = vr_in_group(r);
    if ((!vr_member(r, h->replica) || !member) && !open_to_all(h))
        vr_drop(r, VR_DROP_SENDER);
    else if (h->type == VR_GET_VIEW)
        vr_on_get_view(r, h, u);
    else if (h->type == VR_GET_PREPARE && h->flags & VR_FLAG_JOIN)
        vr_on_get_prepare(r, h, u);
    else if (h->type == VR_GET_STATE && h->flags & VR_FLAG_JOIN)
        vr_on_get_state(r, h, body, u);
    else if (h->view > r->view)
        on_later_view(r, h, body, u);
    else if (h->view == r->view)
        on_present_view(r, h, body, u);
    else if (h->type == VR_START_VIEW_CHANGE && vr_leads(r))
        vr_send_start_view(r, u, h->replica, 0);
    else
        vr_drop(r, VR_DROP_STALE);
}

static void on_message(struct vr_replica *r, const struct vr_header *h, const void *body,
                       struct vr_update *u)
{
    if (h->type == VR_REQUEST) {
        vr_on_request(r, h, body, u);
        return;
    }
    if (h->type == VR_STATUS) {
        on_status(r, h, u);
        return;
    }
    if (h->type == VR_GET_STATE && h->replica == VR_TO_CLIENT) {
        vr_on_get_state(r, h, body, u); /* who makes a backup: copy.h */
        return;
    }
    uint64_t epoch = vr_epoch_of(h->view), present = vr_epoch_of(r->view);
    if (h->replica >= VR_NODES_MAX || h->replica == r->config.index ||
        h->epoch != (uint16_t)epoch) {
        vr_drop(r, VR_DROP_SENDER);
        return;
    }
    if (epoch < present) {
        vr_drop(r, VR_DROP_STALE);
        vr_send_epoch(r, u, h->replica);
    } else if (h->type == VR_EPOCH)
        vr_on_epoch(r, h, body, u);
    else if (epoch > present)
        vr_ask_view(r, u, h->replica);
    else if (h->type == VR_FOUND)
        vr_on_found(r, h, body, u);
    else if (h->type == VR_HELLO)
        vr_on_hello(r, h, body, u);
    else if (r->state == VR_NEW)
        vr_drop(r, VR_DROP_STALE);
    else
        on_present_epoch(r, h, body, u);
}

static void on_written(struct vr_replica *r, const struct vr_event *event, struct vr_update *u)
{
    switch (event->write->kind) {
    case VR_WRITE_ENTRY:
        vr_log_written(r, u, &event->write->entry, event->failed);
        break;
    case VR_WRITE_DURABLE:
        r->durable_writing = false;
        if (!event->failed)
            r->durable = r->writing;
        break;
    case VR_WRITE_PAGE:
        vr_checkpoint_written(r, event->write, event->failed);
        break;
    }
}

static void on_turn(struct vr_replica *r, struct vr_update *u)
{
    vr_log_retry(r, u);
    vr_checkpoint_turn(r, u);
    vr_view_turn(r, u);
    if (r->state == VR_NORMAL)
        vr_normal_turn(r, u);
    vr_epoch_turn(r, u);
    vr_found_turn(r, u);
    vr_hello_turn(r, u);
    vr_fetch(r, u);
    vr_state_turn(r, u);
}

/* What has become possible: every rule is a condition on the state, not on the event. */
static void progress(struct vr_replica *r, struct vr_update *u)
{
    uint64_t before = r->durable_op;
    vr_log_advance_durable(r);
    vr_found_progress(r);
    vr_epoch_progress(r);
    vr_view_progress(r, u);
    vr_durable_progress(r, u);
    if (vr_leads(r))
        vr_primary_commit(r);
    else if (r->durable_op != before && r->state == VR_NORMAL)
        r->ok_owed = true;
    vr_execute(r, u);
}

void vr_step(struct vr_replica *r, const struct vr_event *event, struct vr_update *u)
{
    r->now_ns = vr_max(r->now_ns, event->now_ns);
    switch (event->kind) {
    case VR_EVENT_MESSAGE:
        on_message(r, event->header, event->body, u);
        break;
    case VR_EVENT_WRITTEN:
        on_written(r, event, u);
        break;
    case VR_EVENT_TURN:
        progress(r, u);
        on_turn(r, u);
        break;
    }
    progress(r, u);
}

uint64_t vr_deadline_ns(const struct vr_replica *r)
{
    uint64_t due = r->now_ns + 3600 * NS_PER_S;
    if (r->retry_writes)
        due = r->now_ns + r->config.heartbeat_ns / 4;
    due = vr_min(due, vr_view_deadline_ns(r));
    due = vr_min(due, vr_fetch_deadline_ns(r));
    due = vr_min(due, vr_hello_deadline_ns(r));
    due = vr_min(due, vr_state_deadline_ns(r));
    if (vr_checkpoint_has_work(r))
        due = r->now_ns;
    /* Before it is established it waits for the disk, which tells. */
    bool owes = r->ok_owed && !vr_leads(r) && vr_established(r);
    if (owes || (vr_leads(r) && r->queue_count))
        due = vr_min(due, r->now_ns + r->config.heartbeat_ns / 4);
    if (vr_leads(r)) /* what cannot leave because of the disk waits for the disk */
        due = vr_min(due, vr_max(r->heartbeat_due_ns, r->now_ns + r->config.heartbeat_ns / 8));
    return due;
}

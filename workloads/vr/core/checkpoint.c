/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints: the state at one operation, on disk, so that the log before it can be cut.  A
 * checkpoint is begun by a freeze (pages.h), which costs nothing; the pages that differ from the
 * checkpoint before are then summed and written a few at a time, as many in each turn as it takes
 * to be done before the next is due.  Each page has two places on disk and is written to the one
 * that the newest checkpoint does not use; so until the superblock names the new one, all of the
 * old one is there.
 */
#include "base/memory.h"
#include "vr/core/core_internal.h"

/* Page 0: what stands beside sessions and service. */
struct state_root {
    struct vr_group executed;
    uint32_t session_count, sessions, kv_capacity, page_bytes;
    unsigned char service[VR_SERVICE_ROOT_BYTES];
};

#define SESSIONS_AT 1u /* page */
#define LEAST_PAGES 8u /* in one turn */

static uint32_t payload(const struct vr_config *config)
{
    return config->page_bytes - VR_PAGE_TRAILER_BYTES;
}

static uint32_t service_at(const struct vr_config *config)
{
    return SESSIONS_AT + vr_sessions_pages(payload(config), config->sessions);
}

uint32_t vr_state_pages(const struct vr_config *config)
{
    return service_at(config) + vr_service_pages(payload(config), config->kv_capacity);
}

void vr_state_init(struct vr_replica *r, struct vr_image *image)
{
    const struct vr_config *c = &r->config;
    if (image->pages) {
        r->pages = *image->pages;
        r->copies = image->copies;
        *image->pages = (struct vr_pages){0};
        image->copies = NULL;
        r->unfinished = image->unfinished;
        r->unfinished_count = image->unfinished_count;
        image->unfinished = NULL;
    } else {
        vr_pages_init(&r->pages, vr_state_pages(c), payload(c));
        r->copies = memory_alloc(r->pages.count);
        memset(r->copies, 1, r->pages.count);
    }
    vr_sessions_init(&r->sessions, c->sessions, &r->pages, SESSIONS_AT);
    r->service = vr_service_new(c->kv_capacity, &r->pages, service_at(c));
    vr_arriving_init(r);
}

void vr_state_done(struct vr_replica *r)
{
    vr_arriving_done(r);
    vr_sessions_done(&r->sessions);
    vr_service_free(r->service);
    vr_pages_done(&r->pages);
    free(r->copies);
    free(r->unfinished);
    r->unfinished = NULL;
    r->unfinished_count = 0;
}

/* Nothing of what was read is worth anything. */
static void clear(struct vr_replica *r)
{
    struct vr_image none = {0};
    vr_state_done(r);
    vr_state_init(r, &none);
}

bool vr_state_page_valid(const struct vr_replica *r, uint32_t page, const unsigned char *content)
{
    return page < service_at(&r->config) || vr_service_page_valid(r->service, content);
}

bool vr_state_valid(const struct vr_replica *r, vr_page_reader read, const void *context)
{
    struct state_root root;
    memcpy(&root, read(context, 0), sizeof(root));
    return root.sessions == r->config.sessions && root.kv_capacity == r->config.kv_capacity &&
           root.page_bytes == r->config.page_bytes && root.session_count <= root.sessions &&
           root.executed.members &&
           vr_sessions_valid(&r->sessions, root.session_count, read, context) &&
           vr_service_root_valid(r->service, root.service, read, context);
}

static const unsigned char *read_present(const void *context, uint32_t page)
{
    return vr_pages_at(context, page);
}

/* The pages are those of a state: the rest follows from them. */
static bool restore(struct vr_replica *r)
{
    struct state_root root;
    if (!vr_state_valid(r, read_present, &r->pages))
        return false;
    memcpy(&root, vr_pages_at(&r->pages, 0), sizeof(root));
    r->executed = root.executed;
    vr_sessions_load(&r->sessions, root.session_count);
    vr_service_load(r->service, root.service);
    return true;
}

bool vr_checkpoint_load(struct vr_replica *r, const struct vr_image *image)
{
    const struct vr_durable *d = &image->durable;
    r->newest.entry_checksum = vr_genesis_checksum(r->config.cluster);
    if (d->checkpoint_op == 0)
        return true;
    if (!image->has_checkpoint || r->pages.root != d->checkpoint_checksum || !restore(r)) {
        clear(r);
        return false;
    }
    r->newest = (struct vr_snapshot){.op = d->checkpoint_op,
                                     .entry_checksum = d->checkpoint_entry,
                                     .checksum = d->checkpoint_checksum,
                                     .size = d->checkpoint_size};
    r->op = r->durable_op = r->commit = r->commit_max = d->checkpoint_op;
    return true;
}

void vr_checkpoint_take(struct vr_replica *r)
{
    struct state_root root = {.executed = r->executed,
                              .session_count = r->sessions.count,
                              .sessions = r->config.sessions,
                              .kv_capacity = r->config.kv_capacity,
                              .page_bytes = r->config.page_bytes};
    vr_service_save(r->service, root.service);
    vr_pages_write(&r->pages, 0, 0, &root, sizeof(root));
    for (uint32_t i = 0; i < r->unfinished_count; i++)
        vr_pages_touch(&r->pages, r->unfinished[i]);
    vr_pages_freeze(&r->pages);
    r->pending = (struct vr_snapshot){.op = r->commit,
                                      .entry_checksum = vr_checksum_at(r, r->commit),
                                      .size = vr_service_used(r->service)};
    r->pending_there = true;
    r->pending_adopt = false;
    r->pending_next = r->pending_out = r->pending_again_count = 0;
}

/* The state of an operation further on takes the place of all before it. */
static void adopt(struct vr_replica *r)
{
    uint64_t at = r->newest.op;
    bool chained = vr_known(r, at) && vr_slot(r, at)->entry.checksum == r->newest.entry_checksum;
    if (!restore(r))
        assert(false && "it was looked at before");
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

/* How many pages the pending checkpoint has to write, and which is the one at this index. */
static uint32_t pages_due(const struct vr_replica *r)
{
    return r->pending_adopt ? r->arriving.page_count : r->pages.newest.count;
}

static uint32_t page_due(const struct vr_replica *r, uint32_t index)
{
    return r->pending_adopt ? r->arriving.pages[index].page : r->pages.newest.list[index];
}

static const unsigned char *content_due(const struct vr_replica *r, uint32_t index)
{
    return r->pending_adopt ? r->arriving.pages[index].content
                            : vr_pages_pending(&r->pages, page_due(r, index));
}

static void finish(struct vr_replica *r)
{
    bool adopts = r->pending_adopt;
    for (uint32_t i = 0; i < pages_due(r); i++)
        r->copies[page_due(r, i)] ^= 1;
    if (adopts) {
        vr_pages_revert(&r->pages);
        for (uint32_t i = 0; i < r->arriving.page_count; i++)
            vr_pages_replace(&r->pages, r->arriving.pages[i].page, r->arriving.pages[i].content,
                             r->arriving.pages[i].sum);
        vr_arriving_forget(r);
    } else {
        vr_pages_settle(&r->pages);
        r->pending.checksum = r->pages.root;
    }
    assert(r->pages.root == r->pending.checksum);
    r->newest = r->pending;
    r->unfinished_count = 0;
    r->pending_there = r->pending_adopt = false;
    if (adopts)
        adopt(r);
}

/* The other places are free when the superblock names these. */
static bool places_free(const struct vr_replica *r)
{
    if (r->config.in_memory)
        return true;
    bool named = r->newest.size == 0 || r->durable.checkpoint_op == r->newest.op;
    return named && !r->durable_writing;
}

static bool can_write(const struct vr_replica *r, const struct vr_update *u)
{
    return r->config.in_memory ||
           (r->pending_out < VR_PAGES_OUT_MAX && u->write_count < VR_UPDATE_WRITES - 4);
}

static void write_page(struct vr_replica *r, struct vr_update *u, uint32_t index)
{
    uint32_t page = page_due(r, index);
    r->pending_out++;
    u->writes[u->write_count++] = (struct vr_write){.kind = VR_WRITE_PAGE,
                                                    .page = page,
                                                    .index = index,
                                                    .area = r->copies[page] ^ 1u,
                                                    .page_op = r->pending.op,
                                                    .bytes = content_due(r, index),
                                                    .size = r->pages.bytes};
}

bool vr_checkpoint_has_work(const struct vr_replica *r)
{
    return r->pending_there && places_free(r) && r->pending_out < VR_PAGES_OUT_MAX &&
           (r->pending_next < pages_due(r) || r->pending_again_count);
}

/* In each turn so much that it is done before the next checkpoint is due. */
void vr_checkpoint_turn(struct vr_replica *r, struct vr_update *u)
{
    vr_arriving_complete(r);
    if (!r->pending_there || !places_free(r))
        return;
    uint32_t count = pages_due(r);
    uint32_t budget = LEAST_PAGES + count / (r->config.checkpoint_every / 4 + 1);
    while (r->pending_again_count && can_write(r, u))
        write_page(r, u, r->pending_again[--r->pending_again_count]);
    for (; r->pending_next < count && budget && can_write(r, u); budget--) {
        if (!r->pending_adopt)
            vr_pages_sum(&r->pages, r->pending_next);
        if (!r->config.in_memory)
            write_page(r, u, r->pending_next);
        r->pending_next++;
    }
    if (r->pending_next == count && !r->pending_out && !r->pending_again_count)
        finish(r);
}

void vr_checkpoint_written(struct vr_replica *r, const struct vr_write *write, bool failed)
{
    if (!r->pending_there || write->page_op != r->pending.op || !r->pending_out)
        return;
    r->pending_out--;
    if (failed)
        r->pending_again[r->pending_again_count++] = write->index;
}

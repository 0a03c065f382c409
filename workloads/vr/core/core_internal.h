/* SPDX-License-Identifier: MIT */
/* What the files of the core share: log.c, normal.c, execute.c, view.c, install.c, state.c,
 * epoch.c. */
#ifndef ASSAY_VR_CORE_INTERNAL_H
#define ASSAY_VR_CORE_INTERNAL_H

#include "vr/core/core.h"
#include "vr/core/planted.h"

#include <assert.h>
#include <string.h>

static inline uint32_t vr_quorum(const struct vr_replica *r)
{
    return r->member_count / 2u + 1;
}

static inline uint8_t vr_primary_of(const struct vr_replica *r, uint64_t view)
{
    return r->member_count ? r->order[vr_number_of(view) % r->member_count] : VR_TO_CLIENT - 1;
}

static inline bool vr_leads(const struct vr_replica *r) /* vr_is_primary */
{
    return r->state == VR_NORMAL && vr_primary_of(r, r->view) == r->config.index;
}

static inline bool vr_member(const struct vr_replica *r, uint8_t index)
{
    return index < VR_NODES_MAX && (r->group.members >> index & 1);
}

/* Whether this disk is a member: rule 7. */
static inline bool vr_in_group(const struct vr_replica *r)
{
    uint8_t own = r->config.index;
    return vr_member(r, own) &&
           (r->group.incarnations[own] == r->incarnation || PLANTED(JOINS_ANY_EPOCH));
}

/* Whether it has no voice yet: rule 9. */
static inline bool vr_asks(const struct vr_replica *r)
{
    return r->hello.phase != VR_HELLO_DONE;
}

/* Whether the log with which the view's epoch began is still to come: rule 8. */
static inline bool vr_joining(const struct vr_replica *r)
{
    return vr_epoch_of(r->log_view) < vr_epoch_of(r->view);
}

#define VR_EACH_MEMBER(r, i)      \
    for (uint8_t each_##i = 0, i; \
         each_##i < (r)->member_count && ((i = (r)->order[each_##i]), true); each_##i++)

static inline uint64_t vr_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t vr_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* log.c */
static inline struct vr_slot *vr_slot(const struct vr_replica *r, uint64_t op)
{
    return &r->slots[op % r->config.slots];
}

static inline void *vr_body(const struct vr_replica *r, uint64_t op)
{
    return r->bodies + op % r->config.slots * r->config.batch_bytes;
}

/* Whether the head of this op is known; it stands in the log or before the newest checkpoint. */
static inline bool vr_known(const struct vr_replica *r, uint64_t op)
{
    return op > 0 && op <= r->op && vr_slot(r, op)->entry.op == op;
}

static inline bool vr_has_body(const struct vr_replica *r, uint64_t op)
{
    return vr_known(r, op) && vr_slot(r, op)->has_body;
}

/* 0 when it is not known. */
uint64_t vr_checksum_at(const struct vr_replica *r, uint64_t op);
/* The last op that the log has room for. */
uint64_t vr_log_limit(const struct vr_replica *r);
/* Puts an entry at its op and starts its write; entries behind it are cut when it is another. */
void vr_log_put(struct vr_replica *r, struct vr_update *u, const struct vr_entry *entry,
                const void *body);
void vr_log_truncate(struct vr_replica *r, uint64_t op);
uint64_t vr_first_hole(const struct vr_replica *r); /* 0: none */
void vr_log_written(struct vr_replica *r, struct vr_update *u, const struct vr_entry *entry,
                    bool failed);
void vr_log_retry(struct vr_replica *r, struct vr_update *u);
void vr_log_advance_durable(struct vr_replica *r);
/* Writes the superblock when it differs from what is to be known after a crash. */
void vr_durable_progress(struct vr_replica *r, struct vr_update *u);

/* core.c */
struct vr_message *vr_emit(struct vr_replica *r, struct vr_update *u, uint8_t to,
                           enum vr_type type);
void *vr_scratch(struct vr_update *u, size_t size); /* NULL when the update is full */
void vr_drop(struct vr_replica *r, enum vr_drop why);
static inline bool vr_room(const struct vr_update *u, uint32_t messages)
{
    return u->message_count + messages <= VR_UPDATE_MESSAGES;
}

/* normal.c */
/* Whether this replica may act for its view: rule 4, and a first start is on disk. */
bool vr_established(const struct vr_replica *r);
void vr_on_request(struct vr_replica *r, const struct vr_header *h, const void *body,
                   struct vr_update *u);
void vr_on_prepare(struct vr_replica *r, const struct vr_header *h, const void *body,
                   struct vr_update *u);
void vr_on_prepare_ok(struct vr_replica *r, const struct vr_header *h);
void vr_on_commit(struct vr_replica *r, const struct vr_header *h);
void vr_on_get_prepare(struct vr_replica *r, const struct vr_header *h, struct vr_update *u);
struct vr_message *vr_send_prepare(struct vr_replica *r, struct vr_update *u, uint8_t to,
                                   uint64_t op, uint8_t flags);
void vr_normal_turn(struct vr_replica *r, struct vr_update *u);
void vr_primary_commit(struct vr_replica *r);
void vr_fetch(struct vr_replica *r, struct vr_update *u);
uint64_t vr_fetch_deadline_ns(const struct vr_replica *r);

/* execute.c */
void vr_execute(struct vr_replica *r, struct vr_update *u);
void vr_reply_stored(struct vr_replica *r, struct vr_update *u, const struct vr_session *s);
void vr_send_eviction(struct vr_replica *r, struct vr_update *u, uint64_t client, uint64_t session);

/* checkpoint.c */
void vr_state_init(struct vr_replica *r, struct vr_image *image);
void vr_state_done(struct vr_replica *r);
bool vr_state_page_valid(const struct vr_replica *r, uint32_t page, const unsigned char *content);
bool vr_state_valid(const struct vr_replica *r, vr_page_reader read, const void *context);
bool vr_checkpoint_load(struct vr_replica *r, const struct vr_image *image);
void vr_checkpoint_take(struct vr_replica *r);
void vr_checkpoint_turn(struct vr_replica *r, struct vr_update *u);
void vr_checkpoint_written(struct vr_replica *r, const struct vr_write *write, bool failed);
bool vr_checkpoint_has_work(const struct vr_replica *r);

/* transfer.c */
void vr_arriving_init(struct vr_replica *r);
void vr_arriving_done(struct vr_replica *r);
void vr_arriving_forget(struct vr_replica *r);
void vr_arriving_complete(struct vr_replica *r);
/* A piece of a state from whom it may come. */
void vr_arriving_take(struct vr_replica *r, const struct vr_header *h, const void *body);
/* What to ask for next; false: everything is there, and vr_arriving_complete looks at it. */
bool vr_arriving_wish(struct vr_replica *r, struct vr_state_wish *ret_wish);
void vr_state_offer(struct vr_replica *r, struct vr_update *u, const struct vr_header *asked);
void vr_on_get_state(struct vr_replica *r, const struct vr_header *h, const void *body,
                     struct vr_update *u);
void vr_on_state_chunk(struct vr_replica *r, const struct vr_header *h, const void *body);
void vr_state_turn(struct vr_replica *r, struct vr_update *u);
uint64_t vr_state_deadline_ns(const struct vr_replica *r);
bool vr_state_source(const struct vr_replica *r, uint8_t *ret_source);

/* identity.c */
void vr_on_found(struct vr_replica *r, const struct vr_header *h, const void *body,
                 struct vr_update *u);
void vr_found_turn(struct vr_replica *r, struct vr_update *u);
void vr_found_progress(struct vr_replica *r);
void vr_hello_begin(struct vr_replica *r);
void vr_hello_turn(struct vr_replica *r, struct vr_update *u);
uint64_t vr_hello_deadline_ns(const struct vr_replica *r);
void vr_on_hello(struct vr_replica *r, const struct vr_header *h, const void *body,
                 struct vr_update *u);
/* Another replica has promised this view, and to keep the log up to this op in it. */
void vr_promised(struct vr_replica *r, uint8_t by, uint64_t view, uint64_t op);

/* epoch.c */
void vr_group_set(struct vr_replica *r, const struct vr_group *group);
struct vr_group vr_group_first(const struct vr_config *config);
enum vr_result vr_reconfigure(struct vr_replica *r, const struct vr_entry *entry, const void *data,
                              uint32_t size);
void vr_epoch_progress(struct vr_replica *r);
void vr_on_epoch(struct vr_replica *r, const struct vr_header *h, const void *body,
                 struct vr_update *u);
void vr_send_epoch(struct vr_replica *r, struct vr_update *u, uint8_t to);
void vr_epoch_turn(struct vr_replica *r, struct vr_update *u);
uint64_t vr_sure_op(const struct vr_replica *r);
void vr_fence_find(struct vr_replica *r);
bool vr_is_reconfiguration(const struct vr_replica *r, uint64_t op);

/* view.c */
void vr_view_enter(struct vr_replica *r, uint64_t view);
void vr_view_want(struct vr_replica *r, uint64_t view);
void vr_on_start_view_change(struct vr_replica *r, const struct vr_header *h, struct vr_update *u);
void vr_on_do_view_change(struct vr_replica *r, const struct vr_header *h, const void *body);
void vr_on_start_view(struct vr_replica *r, const struct vr_header *h, const void *body);
void vr_on_get_view(struct vr_replica *r, const struct vr_header *h, struct vr_update *u);
void vr_send_start_view(struct vr_replica *r, struct vr_update *u, uint8_t to, uint64_t nonce);
void vr_ask_view(struct vr_replica *r, struct vr_update *u, uint8_t to);
void vr_view_turn(struct vr_replica *r, struct vr_update *u);
void vr_view_progress(struct vr_replica *r, struct vr_update *u);
uint64_t vr_view_deadline_ns(const struct vr_replica *r);

/* install.c */
void vr_install_begin(struct vr_replica *r, uint8_t source, uint64_t log_view,
                      const struct vr_log_end *end);
void vr_install_prepare(struct vr_replica *r, const struct vr_header *h,
                        const struct vr_entry *entry, const void *body, struct vr_update *u);
void vr_install_progress(struct vr_replica *r, struct vr_update *u);
/* What the primary of the view has committed is in the log that is being taken over: as far as that
 * has matched it may run, which makes room where the log is full. */
void vr_install_heard(struct vr_replica *r, const struct vr_header *h);
uint64_t vr_install_need(const struct vr_replica *r); /* the first op that is missing, or 0 */
const struct vr_entry *vr_end_head(const struct vr_log_end *end, uint64_t op);

#endif

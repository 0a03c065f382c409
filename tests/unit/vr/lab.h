/* SPDX-License-Identifier: MIT */
/* One replica, and everybody else played by the test. */
#ifndef ASSAY_TEST_VR_LAB_H
#define ASSAY_TEST_VR_LAB_H

#include "base/memory.h"
#include "test.h"
#include "vr/core/core.h"
#include "vr/core/planted.h"

#include <stdlib.h>

struct lab {
    struct vr_replica *r;
    struct vr_update *u;
    struct vr_entry entries[4]; /* what the replica starts with */
    uint32_t count;
    struct vr_durable durable;
    bool uncertain;
    void (*config)(struct vr_config *config); /* other settings */
};

static const char no_requests[8] __attribute__((unused));

static inline const void *body_of(const struct vr_image *image, uint32_t index)
{
    (void)image;
    (void)index;
    return no_requests;
}

static inline struct vr_entry make_entry(uint64_t op, uint64_t view, uint64_t parent)
{
    struct vr_entry e = {.op = op, .view = view, .parent = parent};
    e.body_checksum = vr_hash(no_requests, 0);
    e.checksum = vr_entry_checksum(&e);
    e.flags = VR_ENTRY_HAS_BODY;
    return e;
}

static inline void start(struct lab *lab, uint8_t index)
{
    struct vr_config config;
    vr_config_default(&config);
    config.index = index;
    config.slots = 64;
    config.checkpoint_every = 16;
    config.kv_capacity = 4;
    config.batch_bytes = 512;
    struct vr_image image = {.durable = lab->durable,
                             .uncertain = lab->uncertain,
                             .count = lab->count,
                             .entries = lab->entries,
                             .body = body_of};
    if (lab->config)
        lab->config(&config);
    lab->u = memory_zalloc(1, sizeof(*lab->u));
    lab->r = vr_replica_new(&config, &image, 1234, 1);
}

static inline void finish(struct lab *lab)
{
    vr_replica_free(lab->r);
    free(lab->u);
}

static inline void step(struct lab *lab, struct vr_event event)
{
    lab->u->message_count = lab->u->write_count = 0;
    lab->u->scratch_used = 0;
    event.now_ns = lab->r->now_ns + 1;
    vr_step(lab->r, &event, lab->u);
}

static inline void receive(struct lab *lab, struct vr_header h, const void *body)
{
    h.cluster = 1;
    step(lab, (struct vr_event){.kind = VR_EVENT_MESSAGE, .header = &h, .body = body});
}

/* Every write that was asked for in the last update ends well. */
static inline void writes_end(struct lab *lab)
{
    struct vr_write writes[VR_UPDATE_WRITES];
    uint32_t count = lab->u->write_count;
    memcpy(writes, lab->u->writes, count * sizeof(writes[0]));
    for (uint32_t i = 0; i < count; i++)
        step(lab, (struct vr_event){.kind = VR_EVENT_WRITTEN, .write = &writes[i]});
}

static inline bool sent(const struct lab *lab, enum vr_type type)
{
    for (uint32_t i = 0; i < lab->u->message_count; i++)
        if (lab->u->messages[i].header.type == type)
            return true;
    return false;
}

struct log_end {
    struct vr_view_head head;
    struct vr_entry heads[3];
};

static inline struct vr_header view_message(enum vr_type type, uint8_t from, uint64_t view,
                                            const struct log_end *end)
{
    return (struct vr_header){
        .type = (uint8_t)type,
        .replica = from,
        .view = view,
        .op = end->head.count,
        .size = (uint32_t)(sizeof(end->head) + end->head.count * sizeof(end->heads[0]))};
}

static inline void receive_prepare(struct lab *lab, uint8_t from, uint64_t view,
                                   const struct vr_entry *entry)
{
    struct {
        struct vr_entry entry;
        char body[8];
    } message = {.entry = *entry};
    message.entry.flags = 0;
    receive(lab,
            (struct vr_header){.type = VR_PREPARE,
                               .replica = from,
                               .view = view,
                               .op = entry->op,
                               .flags = VR_FLAG_REPAIR,
                               .size = sizeof(message.entry)},
            &message);
}

#endif

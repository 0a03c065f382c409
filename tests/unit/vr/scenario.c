/* SPDX-License-Identifier: MIT */
/*
 * The published errors of viewstamped replication and its implementations, each as the shortest
 * run of one replica in which the faulty rule does harm.  docs/VR.md tells where each comes from;
 * the same rules are broken on purpose in assay-vr-planted, which the simulator must catch.
 */
#include "base/memory.h"
#include "core.h"
#include "test.h"

#include <stdlib.h>

struct lab {
    struct vr_replica *r;
    struct vr_update *u;
    struct vr_entry entries[4]; /* what the replica starts with */
    uint32_t count;
    struct vr_durable durable;
    bool uncertain;
};

static const char no_requests[8];

static const void *body_of(const struct vr_image *image, uint32_t index)
{
    (void)image;
    (void)index;
    return no_requests;
}

static struct vr_entry make_entry(uint64_t op, uint64_t view, uint64_t parent)
{
    struct vr_entry e = {.op = op, .view = view, .parent = parent};
    e.body_checksum = vr_hash(no_requests, 0);
    e.checksum = vr_entry_checksum(&e);
    e.flags = VR_ENTRY_HAS_BODY;
    return e;
}

static void start(struct lab *lab, uint8_t index)
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
    lab->u = memory_zalloc(1, sizeof(*lab->u));
    lab->r = vr_replica_new(&config, &image, 1234, 1);
}

static void finish(struct lab *lab)
{
    vr_replica_free(lab->r);
    free(lab->u);
}

static void step(struct lab *lab, struct vr_event event)
{
    lab->u->message_count = lab->u->write_count = 0;
    lab->u->scratch_used = 0;
    event.now_ns = lab->r->now_ns + 1;
    vr_step(lab->r, &event, lab->u);
}

static void receive(struct lab *lab, struct vr_header h, const void *body)
{
    h.cluster = 1;
    step(lab, (struct vr_event){.kind = VR_EVENT_MESSAGE, .header = &h, .body = body});
}

/* Every write that was asked for in the last update ends well. */
static void writes_end(struct lab *lab)
{
    struct vr_write writes[VR_UPDATE_WRITES];
    uint32_t count = lab->u->write_count;
    memcpy(writes, lab->u->writes, count * sizeof(writes[0]));
    for (uint32_t i = 0; i < count; i++)
        step(lab, (struct vr_event){.kind = VR_EVENT_WRITTEN, .write = &writes[i]});
}

static bool sent(const struct lab *lab, enum vr_type type)
{
    for (uint32_t i = 0; i < lab->u->message_count; i++)
        if (lab->u->messages[i].header.type == type)
            return true;
    return false;
}

struct log_end {
    struct vr_view_head head;
    struct vr_entry heads[2];
};

static struct vr_header view_message(enum vr_type type, uint8_t from, uint64_t view,
                                     const struct log_end *end)
{
    return (struct vr_header){
        .type = (uint8_t)type,
        .replica = from,
        .view = view,
        .op = end->head.count,
        .size = (uint32_t)(sizeof(end->head) + end->head.count * sizeof(end->heads[0]))};
}

static void receive_prepare(struct lab *lab, uint8_t from, uint64_t view,
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

/* specpaxos sends the view of its last entry as its last normal view.  Here (Raft's figure 8)
 * replica 0 committed an entry of view 0 in view 3, and replica 1, which leads view 4, has another
 * entry of view 1 in its place. */
TEST(the_last_normal_view_decides_not_the_last_entrys)
{
    struct lab lab = {.durable = {.view = 3, .log_view = 1}, .count = 1};
    lab.entries[0] = make_entry(1, 1, vr_genesis_checksum(1));
    lab.durable.view_op = 1;
    lab.durable.view_checksum = lab.entries[0].checksum;
    start(&lab, 1);
    struct log_end end = {.head = {.log_view = 3, .count = 1}};
    end.heads[0] = make_entry(1, 0, vr_genesis_checksum(1));
    end.head.head_checksum = end.heads[0].checksum;
    receive(&lab, view_message(VR_DO_VIEW_CHANGE, 0, 4, &end), &end);
    writes_end(&lab);
    CHECK(lab.r->install.active);
    CHECK_INT(lab.r->install.source, 0);
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    CHECK(sent(&lab, VR_GET_PREPARE));
    /* Its own entry gives way; first the disk learns that the old log ends before it. */
    receive_prepare(&lab, 0, 4, &end.heads[0]);
    CHECK_INT(lab.r->slots[1].entry.view, 1);
    writes_end(&lab);
    receive_prepare(&lab, 0, 4, &end.heads[0]);
    CHECK_INT(lab.r->slots[1].entry.view, 0);
    writes_end(&lab);
    writes_end(&lab);
    CHECK(vr_is_primary(lab.r));
    CHECK(lab.r->slots[1].entry.checksum == end.heads[0].checksum);
    finish(&lab);
}

/* A promise that a crash forgets is none (VR Revisited without a disk; Michael et al., DISC'17). */
TEST(do_view_change_waits_until_the_view_is_on_disk)
{
    struct lab lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}};
    start(&lab, 0);
    receive(&lab,
            (struct vr_header){
                .type = VR_START_VIEW_CHANGE, .replica = 1, .view = 1, .flags = VR_FLAG_ENTERED},
            NULL);
    CHECK_INT(lab.r->view, 1);
    CHECK(!sent(&lab, VR_DO_VIEW_CHANGE));
    CHECK_INT(lab.u->write_count, 1);
    writes_end(&lab);
    CHECK(sent(&lab, VR_DO_VIEW_CHANGE));
    finish(&lab);
}

/* One replica's wish moves nobody: a link broken in one direction must not stop the service. */
TEST(a_view_is_left_by_a_quorum_only)
{
    struct lab lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}};
    start(&lab, 2);
    receive(&lab, (struct vr_header){.type = VR_START_VIEW_CHANGE, .replica = 1, .view = 1}, NULL);
    CHECK_INT(lab.r->view, 0);
    CHECK_INT(lab.r->state, VR_NORMAL);
    receive(&lab, (struct vr_header){.type = VR_START_VIEW_CHANGE, .replica = 0, .view = 1}, NULL);
    CHECK_INT(lab.r->view, 1);
    finish(&lab);
}

/* A replica that lost its log takes only the answer to its own question: an old start_view lacks
 * what it acknowledged since. */
TEST(a_lost_log_comes_back_only_by_a_fresh_answer)
{
    struct lab lab = {.durable = {.view = 1, .log_view = 1}, .uncertain = true};
    start(&lab, 0);
    struct log_end end = {.head = {.log_view = 1}};
    end.head.head_checksum = vr_genesis_checksum(1);
    struct vr_header h = view_message(VR_START_VIEW, 1, 1, &end);
    receive(&lab, h, &end);
    CHECK_INT(lab.r->state, VR_RECOVERING);
    h.nonce = 1234;
    receive(&lab, h, &end);
    CHECK(lab.r->state != VR_RECOVERING);
    finish(&lab);
}

/* Found by the simulator (seed 35): with half of its lost log back, a replica voted in the next
 * view change and an acknowledged entry was gone. */
TEST(half_a_log_has_no_vote)
{
    struct lab lab = {.durable = {.view = 1, .log_view = 1}, .uncertain = true};
    start(&lab, 0);
    struct log_end end = {.head = {.log_view = 1, .count = 1}};
    end.heads[0] = make_entry(1, 1, vr_genesis_checksum(1));
    end.head.head_checksum = end.heads[0].checksum;
    struct vr_header h = view_message(VR_START_VIEW, 1, 1, &end);
    h.nonce = 1234;
    receive(&lab, h, &end);
    CHECK(lab.r->install.active);
    receive(&lab,
            (struct vr_header){
                .type = VR_START_VIEW_CHANGE, .replica = 2, .view = 2, .flags = VR_FLAG_ENTERED},
            NULL);
    writes_end(&lab);
    CHECK(!sent(&lab, VR_DO_VIEW_CHANGE));
    CHECK_INT(lab.r->view, 1);
    finish(&lab);
}

/* VR Revisited's state transfer cuts the log to the commit number first: if the new log then does
 * not arrive, acknowledged entries are gone. */
TEST(nothing_is_cut_before_the_new_log_is_there)
{
    struct lab lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}, .count = 2};
    lab.entries[0] = make_entry(1, 0, vr_genesis_checksum(1));
    lab.entries[1] = make_entry(2, 0, lab.entries[0].checksum);
    start(&lab, 0);
    struct log_end end = {.head = {.log_view = 1, .count = 1}};
    struct vr_entry other = make_entry(1, 1, vr_genesis_checksum(1));
    end.heads[0] = other;
    end.head.head_checksum = other.checksum;
    receive(&lab, view_message(VR_START_VIEW, 1, 1, &end), &end);
    CHECK(lab.r->install.active);
    CHECK_INT(lab.r->op, 2);
    CHECK_INT(lab.r->log_view, 0);
    finish(&lab);
}

/* A primary that restarts may have sent entries that it never wrote: others may have committed
 * them, and it would give their numbers away again. */
TEST(a_restarted_primary_does_not_go_on)
{
    struct lab lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}};
    start(&lab, 0);
    CHECK_INT(lab.r->state, VR_VIEW_CHANGE);
    finish(&lab);
}

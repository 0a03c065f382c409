/* SPDX-License-Identifier: MIT */
/*
 * What an operation costs does not depend on how many there were before: no memory is taken after
 * the start, and the steps through the log, the messages and the writes of an operation are the
 * same at the beginning and a hundred thousand operations later.  Counted, not timed.
 */
#include "base/memory.h"
#include "test.h"
#include "vr/core/core.h"

#include <malloc.h>
#include <stdlib.h>

struct lone { /* a group of one: what it writes is committed */
    struct vr_replica *r;
    struct vr_update *u;
    uint64_t now_ns, session, messages, writes, bytes;
};

static void step(struct lone *l, struct vr_event event);

static void finish_writes(struct lone *l)
{
    struct vr_write writes[VR_UPDATE_WRITES];
    uint32_t count = l->u->write_count;
    memcpy(writes, l->u->writes, count * sizeof(writes[0]));
    l->u->message_count = l->u->write_count = 0;
    l->u->scratch_used = 0;
    for (uint32_t i = 0; i < count; i++)
        step(l, (struct vr_event){.kind = VR_EVENT_WRITTEN, .write = &writes[i]});
}

static void step(struct lone *l, struct vr_event event)
{
    event.now_ns = ++l->now_ns;
    vr_step(l->r, &event, l->u);
    for (uint32_t i = 0; i < l->u->message_count; i++) {
        const struct vr_message *m = &l->u->messages[i];
        struct vr_reply reply;
        if (m->header.type != VR_REPLY)
            continue;
        memcpy(&reply, m->first, sizeof(reply));
        l->session = reply.session;
    }
    l->messages += l->u->message_count;
    l->writes += l->u->write_count;
    for (uint32_t i = 0; i < l->u->write_count; i++)
        l->bytes += l->u->writes[i].size;
    finish_writes(l);
}

static void request(struct lone *l, uint32_t opcode, uint64_t number)
{
    struct {
        struct vr_request request;
        unsigned char data[64];
    } message = {.request = {7, l->session, number, opcode, 0}};
    char key = (char)('a' + number % 20);
    if (opcode == VR_OP_PUT)
        message.request.size = vr_kv_encode(message.data, &key, 1, NULL, 0, "value", 5);
    struct vr_header h = {.type = VR_REQUEST,
                          .client = 7,
                          .number = number,
                          .size = (uint32_t)vr_request_bytes(message.request.size)};
    step(l, (struct vr_event){.kind = VR_EVENT_MESSAGE, .header = &h, .body = &message});
    step(l, (struct vr_event){.kind = VR_EVENT_TURN});
}

static void start(struct lone *l, bool in_memory)
{
    struct vr_config config;
    vr_config_default(&config);
    config.replica_count = 1;
    config.in_memory = in_memory;
    config.slots = 64;
    config.checkpoint_every = 16;
    config.kv_capacity = 32;
    config.sessions = 4;
    config.batch_bytes = 512;
    struct vr_image image = {
        .durable = {.fresh = 1, .view_checksum = vr_genesis_checksum(config.cluster)}};
    *l = (struct lone){.u = memory_zalloc(1, sizeof(*l->u))};
    l->r = vr_replica_new(&config, &image, 1, 1);
    step(l, (struct vr_event){.kind = VR_EVENT_TURN});
    request(l, VR_OP_REGISTER, 0);
}

static void check_flat(bool in_memory)
{
    struct lone l;
    start(&l, in_memory);
    CHECK(l.session != 0);
    uint64_t number = 0, cost[2][4];
    struct mallinfo2 before = {0};
    for (unsigned sitting = 0; sitting < 2; sitting++) {
        /* As many as there are between checkpoints, many times: a period of everything. */
        while (number < 1600 + sitting * 100000)
            request(&l, VR_OP_PUT, ++number);
        if (sitting == 0) /* what is kept beside checkpoints has found its size */
            before = mallinfo2();
        uint64_t steps = l.r->counters.log_steps;
        l.messages = l.writes = l.bytes = 0;
        for (unsigned i = 0; i < 1600; i++)
            request(&l, VR_OP_PUT, ++number);
        cost[sitting][0] = l.messages;
        cost[sitting][1] = l.writes;
        cost[sitting][2] = l.bytes;
        cost[sitting][3] = l.r->counters.log_steps - steps;
    }
    struct mallinfo2 after = mallinfo2();
    CHECK_INT(l.r->counters.executed, number);
    CHECK_INT(l.r->commit, number + 1);
    for (unsigned i = 0; i < 4; i++)
        CHECK_INT(cost[1][i], cost[0][i]);
    CHECK(cost[1][3] <= 1600); /* the log is not walked through */
    CHECK_INT(after.uordblks, before.uordblks);
    vr_replica_free(l.r);
    free(l.u);
}

TEST(an_operation_costs_the_same_after_a_hundred_thousand)
{
    check_flat(false);
}

TEST(an_operation_in_memory_costs_the_same_after_a_hundred_thousand)
{
    check_flat(true);
}

/* The log is cut behind each checkpoint: what stands in it never exceeds its ring. */
TEST(the_log_is_cut_behind_checkpoints)
{
    struct lone l;
    start(&l, false);
    for (uint64_t number = 1; number <= 1000; number++) {
        request(&l, VR_OP_PUT, number);
        CHECK(l.r->op - l.r->durable.checkpoint_op <= 64);
    }
    CHECK(l.r->durable.checkpoint_op >= 1000 - 64);
    CHECK_INT(l.r->durable.checkpoint_op % 16, 0);
    vr_replica_free(l.r);
    free(l.u);
}

/* A request that comes again gets the stored answer and runs once. */
TEST(a_request_said_twice_runs_once)
{
    struct lone l;
    start(&l, false);
    request(&l, VR_OP_PUT, 1);
    uint64_t op = l.r->op, messages = l.messages;
    request(&l, VR_OP_PUT, 1);
    CHECK_INT(l.r->op, op);
    CHECK_INT(l.messages, messages + 1);
    CHECK_INT(l.r->counters.executed, 1);
    vr_replica_free(l.r);
    free(l.u);
}

/* Reads go through the log: there is no lease, so each takes an entry. */
TEST(a_read_takes_a_place_in_the_log)
{
    struct lone l;
    start(&l, false);
    uint64_t op = l.r->op;
    request(&l, VR_OP_GET, 1);
    CHECK_INT(l.r->op, op + 1);
    CHECK_INT(l.r->commit, op + 1);
    vr_replica_free(l.r);
    free(l.u);
}

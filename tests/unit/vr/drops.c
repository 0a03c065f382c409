/* SPDX-License-Identifier: MIT */
/*
 * Packets that are not obeyed: malformed ones, forged lengths, those of a foreign cluster, replayed
 * and stale ones.  Each comes as bytes through the door that a host's packets come through, and
 * must count once, under its own name, and change nothing.
 */
#include "lab.h"
#include "vr/core/packet.h"

#define SECOND_EPOCH (1ULL << VR_EPOCH_SHIFT)

struct door {
    struct lab lab;
    struct vr_packets packets;
    unsigned char bytes[2048]; /* a packet that is ready to come */
    size_t size;
};

static void open_door(struct door *d, uint8_t index)
{
    start(&d->lab, index);
    struct vr_keys keys = vr_keys_same(vr_key_public(1));
    vr_packets_init(&d->packets, &d->lab.r->config, &keys, 1400, 1);
}

static void close_door(struct door *d)
{
    vr_packets_done(&d->packets);
    finish(&d->lab);
}

/* Makes the packet; fields of the header that are not said are those of replica 1 in view 0. */
static void make(struct door *d, struct vr_header h, const void *first, size_t first_size,
                 const void *second, size_t second_size)
{
    h.cluster = 1;
    vr_seal(&h, &d->packets.keys[0].replica, first, first_size, second, second_size);
    memcpy(d->bytes, &h, sizeof(h));
    if (first_size)
        memcpy(d->bytes + sizeof(h), first, first_size);
    if (second_size)
        memcpy(d->bytes + sizeof(h) + first_size, second, second_size);
    d->size = sizeof(h) + first_size + second_size;
}

static void make_empty(struct door *d, struct vr_header h)
{
    make(d, h, NULL, 0, NULL, 0);
}

static bool come(struct door *d)
{
    struct vr_header h;
    const void *body;
    d->lab.u->message_count = d->lab.u->write_count = 0;
    if (!vr_packets_receive(&d->packets, d->bytes, d->size, &h, &body))
        return false;
    step(&d->lab, (struct vr_event){.kind = VR_EVENT_MESSAGE, .header = &h, .body = body});
    return true;
}

static void turn(struct door *d)
{
    step(&d->lab, (struct vr_event){.kind = VR_EVENT_TURN});
}

struct seen {
    uint64_t dropped[VR_DROP_COUNT];
    uint64_t op, durable_op, commit, commit_max, view, log_view, executed;
    uint32_t queue_count, queue_size, members;
    enum vr_state state;
};

static struct seen look(const struct door *d)
{
    const struct vr_replica *r = d->lab.r;
    struct seen s = {.op = r->op,
                     .durable_op = r->durable_op,
                     .commit = r->commit,
                     .commit_max = r->commit_max,
                     .view = r->view,
                     .log_view = r->log_view,
                     .executed = r->counters.executed,
                     .queue_count = r->queue_count,
                     .queue_size = r->queue_size,
                     .members = r->group.members,
                     .state = r->state};
    for (unsigned i = 1; i < VR_DROP_COUNT; i++)
        s.dropped[i] = d->packets.dropped[i] + r->counters.dropped[i];
    return s;
}

/* The packet comes, is dropped for this reason alone, and nothing comes of it but, perhaps, an
 * answer of the one type that is allowed (0: none). */
static void dropped(struct door *d, enum vr_drop why, enum vr_type allowed)
{
    struct seen before = look(d), after;
    come(d);
    after = look(d);
    for (unsigned i = 1; i < VR_DROP_COUNT; i++)
        if (after.dropped[i] != before.dropped[i] + (i == why))
            test_fail(__FILE__, __LINE__, "a drop as %s: counter %s went from %lu to %lu",
                      vr_drop_names[why], vr_drop_names[i], before.dropped[i], after.dropped[i]);
    CHECK_INT(after.op, before.op);
    CHECK_INT(after.durable_op, before.durable_op);
    CHECK_INT(after.commit, before.commit);
    CHECK_INT(after.commit_max, before.commit_max);
    CHECK_INT(after.view, before.view);
    CHECK_INT(after.log_view, before.log_view);
    CHECK_INT(after.executed, before.executed);
    CHECK_INT(after.queue_count, before.queue_count);
    CHECK_INT(after.queue_size, before.queue_size);
    CHECK_INT(after.members, before.members);
    CHECK_INT(after.state, before.state);
    CHECK_INT(d->lab.u->write_count, 0);
    for (uint32_t i = 0; i < d->lab.u->message_count; i++)
        CHECK_INT(d->lab.u->messages[i].header.type, allowed);
}

/* A backup of view 0 that has heard of nothing yet. */
static struct door backup(void)
{
    return (struct door){.lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}}};
}

static struct vr_header commit_of(uint8_t replica, uint64_t view)
{
    return (struct vr_header){
        .type = VR_COMMIT, .replica = replica, .view = view, .epoch = (uint16_t)vr_epoch_of(view)};
}

static void make_request(struct door *d, uint64_t session, uint64_t number, uint32_t opcode)
{
    struct vr_request q = {.client = 7, .session = session, .number = number, .opcode = opcode};
    make(d,
         (struct vr_header){
             .type = VR_REQUEST, .replica = VR_TO_CLIENT, .client = 7, .number = number},
         &q, sizeof(q), NULL, 0);
}

TEST(what_is_whole_is_let_in)
{
    struct door d = backup();
    open_door(&d, 1);
    make_empty(&d, commit_of(0, 0));
    CHECK(come(&d));
    struct seen s = look(&d);
    for (unsigned i = 1; i < VR_DROP_COUNT; i++)
        CHECK_INT(s.dropped[i], 0);
    CHECK(d.lab.r->ok_owed);
    close_door(&d);
}

TEST(malformed_packets_are_dropped)
{
    struct door d = backup();
    open_door(&d, 1);
    make_empty(&d, commit_of(0, 0));
    d.size = sizeof(struct vr_header) - 1;
    dropped(&d, VR_DROP_SHORT, 0);
    d.size = 0;
    dropped(&d, VR_DROP_SHORT, 0);
    make_empty(&d, commit_of(0, 0));
    d.bytes[offsetof(struct vr_header, magic)] ^= 1;
    dropped(&d, VR_DROP_MAGIC, 0);
    make_empty(&d, commit_of(0, 0));
    d.bytes[offsetof(struct vr_header, version)]++;
    dropped(&d, VR_DROP_VERSION, 0);
    make_empty(&d, (struct vr_header){.type = 0});
    dropped(&d, VR_DROP_TYPE, 0);
    make_empty(&d, (struct vr_header){.type = VR_TYPE_END});
    dropped(&d, VR_DROP_TYPE, 0);
    /* A type that there is, but that is no word to a replica. */
    make_empty(&d, (struct vr_header){.type = VR_EVICTION});
    dropped(&d, VR_DROP_TYPE, 0);
    close_door(&d);
}

TEST(a_damaged_packet_is_dropped)
{
    struct door d = backup();
    open_door(&d, 1);
    make_request(&d, 0, 0, VR_OP_REGISTER);
    d.bytes[offsetof(struct vr_header, op)] ^= 1;
    dropped(&d, VR_DROP_CHECKSUM, 0);
    make_request(&d, 0, 0, VR_OP_REGISTER);
    d.bytes[sizeof(struct vr_header)] ^= 1;
    dropped(&d, VR_DROP_CHECKSUM, 0);
    make_request(&d, 0, 0, VR_OP_REGISTER);
    d.bytes[offsetof(struct vr_header, checksum)] ^= 1;
    dropped(&d, VR_DROP_CHECKSUM, 0);
    /* Sealed by who does not know the secret. */
    make_empty(&d, commit_of(0, 0));
    d.packets.keys[0] = vr_keys_same(vr_key_secret(1, "open sesame", 11));
    dropped(&d, VR_DROP_CHECKSUM, 0);
    close_door(&d);
}

TEST(a_forged_length_is_dropped)
{
    struct door d = backup();
    open_door(&d, 1);
    make_request(&d, 0, 0, VR_OP_REGISTER);
    d.size -= 8;
    dropped(&d, VR_DROP_SIZE, 0);
    d.size += 16;
    dropped(&d, VR_DROP_SIZE, 0);
    uint32_t most = UINT32_MAX;
    memcpy(d.bytes + offsetof(struct vr_header, size), &most, sizeof(most));
    dropped(&d, VR_DROP_SIZE, 0);
    close_door(&d);
}

TEST(a_body_whose_lengths_lie_is_dropped)
{
    struct door d = backup();
    open_door(&d, 1);
    struct vr_request q = {.client = 7, .opcode = VR_OP_REGISTER, .size = UINT32_MAX};
    struct vr_header h = {.type = VR_REQUEST, .client = 7};
    make(&d, h, &q, sizeof(q), NULL, 0);
    dropped(&d, VR_DROP_BODY, 0);
    q.size = 8;
    make(&d, h, &q, sizeof(q), NULL, 0);
    dropped(&d, VR_DROP_BODY, 0);

    /* An entry that says it is longer, and one whose requests do. */
    struct vr_entry e = make_entry(1, 0, vr_genesis_checksum(1));
    h = (struct vr_header){.type = VR_PREPARE, .replica = 0, .op = 1};
    e.size = 64;
    e.checksum = vr_entry_checksum(&e);
    make(&d, h, &e, sizeof(e), NULL, 0);
    dropped(&d, VR_DROP_BODY, 0);
    e.size = sizeof(q);
    e.count = 1;
    e.body_checksum = vr_hash(&q, sizeof(q));
    e.checksum = vr_entry_checksum(&e);
    make(&d, h, &e, sizeof(e), &q, sizeof(q));
    dropped(&d, VR_DROP_BODY, 0);

    struct log_end end = {.head = {.count = 2}};
    h = (struct vr_header){.type = VR_START_VIEW, .view = 3, .op = 2};
    make(&d, h, &end.head, sizeof(end.head), end.heads, sizeof(end.heads[0]));
    dropped(&d, VR_DROP_BODY, 0);
    h.type = VR_DO_VIEW_CHANGE;
    end.head.count = UINT32_MAX;
    make(&d, h, &end.head, sizeof(end.head), end.heads, sizeof(end.heads));
    dropped(&d, VR_DROP_BODY, 0);
    close_door(&d);
}

TEST(a_forged_fragment_is_dropped)
{
    struct door d = backup();
    open_door(&d, 1);
    static const char piece[1336];
    struct vr_header h = {.type = VR_FRAGMENT, .view = 2, .op = 1, .commit = 2000};
    make(&d, h, NULL, 0, piece, 100); /* the first of two is as long as it can be */
    dropped(&d, VR_DROP_FRAGMENT, 0);
    h.commit = 1ULL << 40;
    make(&d, h, NULL, 0, piece, sizeof(piece));
    dropped(&d, VR_DROP_FRAGMENT, 0);
    h.commit = 2000;
    h.view = 2ULL << 32 | 2;
    make(&d, h, NULL, 0, piece, sizeof(piece));
    dropped(&d, VR_DROP_FRAGMENT, 0);
    close_door(&d);
}

TEST(a_foreign_cluster_is_not_heard)
{
    struct door d = backup();
    open_door(&d, 1);
    struct vr_header h = commit_of(0, 0);
    h.cluster = 2;
    vr_seal(&h, &d.packets.keys[0].replica, NULL, 0, NULL, 0);
    memcpy(d.bytes, &h, d.size = sizeof(h));
    dropped(&d, VR_DROP_CLUSTER, 0);
    close_door(&d);
}

TEST(nobody_speaks_for_who_is_not_in_the_group)
{
    struct door d = backup();
    open_door(&d, 1);
    make_empty(&d, commit_of(VR_NODES_MAX, 0));
    dropped(&d, VR_DROP_SENDER, 0);
    make_empty(&d, commit_of(1, 0)); /* itself */
    dropped(&d, VR_DROP_SENDER, 0);
    make_empty(&d, commit_of(5, 0));
    dropped(&d, VR_DROP_SENDER, 0);
    struct vr_header h = commit_of(0, 0); /* an epoch that is not its view's */
    h.epoch = 1;
    make_empty(&d, h);
    dropped(&d, VR_DROP_SENDER, 0);
    close_door(&d);
}

TEST(a_repeated_fragment_counts_as_replayed)
{
    struct door d = backup();
    open_door(&d, 1);
    static const char piece[1336];
    struct vr_header h = {.type = VR_FRAGMENT, .view = 2, .op = 1, .commit = 2000};
    make(&d, h, NULL, 0, piece, sizeof(piece));
    CHECK(!come(&d));
    for (unsigned i = 1; i < VR_DROP_COUNT; i++)
        CHECK_INT(d.packets.dropped[i], 0);
    dropped(&d, VR_DROP_REPLAYED, 0);
    close_door(&d);
}

TEST(a_repeated_prepare_counts_as_replayed)
{
    struct door d = backup();
    open_door(&d, 1);
    struct vr_entry e = make_entry(1, 0, vr_genesis_checksum(1));
    struct vr_header h = {.type = VR_PREPARE, .replica = 0, .op = 1};
    make(&d, h, &e, sizeof(e), NULL, 0);
    CHECK(come(&d));
    CHECK_INT(d.lab.r->op, 1);
    writes_end(&d.lab);
    CHECK_INT(d.lab.r->durable_op, 1);
    dropped(&d, VR_DROP_REPLAYED, 0);
    CHECK(d.lab.r->ok_owed); /* who sent it again has not heard the answer */
    /* Another entry at an op that is taken is not what was said before. */
    e.parent++;
    e.checksum = vr_entry_checksum(&e);
    make(&d, h, &e, sizeof(e), NULL, 0);
    dropped(&d, VR_DROP_STALE, 0);
    close_door(&d);
}

/* The primary of view 0 with client 7's session begun; returns its number. */
static uint64_t primary_with_session(struct door *d)
{
    open_door(d, 0);
    turn(d);
    writes_end(&d->lab);
    make_request(d, 0, 0, VR_OP_REGISTER);
    CHECK(come(d));
    CHECK_INT(d->lab.r->queue_count, 1);
    turn(d);
    CHECK(sent(&d->lab, VR_PREPARE));
    writes_end(&d->lab);
    make_empty(d, (struct vr_header){.type = VR_PREPARE_OK, .replica = 1, .op = 1});
    CHECK(come(d));
    CHECK_INT(d->lab.r->commit, 1);
    CHECK(sent(&d->lab, VR_REPLY));
    return 1ULL << 16;
}

static struct door first_primary(void)
{
    struct door d = backup();
    d.lab.durable.fresh = 1;
    return d;
}

TEST(a_repeated_request_counts_as_replayed)
{
    struct door d = first_primary();
    uint64_t session = primary_with_session(&d);
    make_request(&d, session, 5, VR_OP_NULL);
    CHECK(come(&d));
    CHECK_INT(d.lab.r->queue_count, 1);
    dropped(&d, VR_DROP_REPLAYED, 0); /* in the queue */
    turn(&d);
    writes_end(&d.lab);
    CHECK_INT(d.lab.r->op, 2);
    make_request(&d, session, 5, VR_OP_NULL);
    dropped(&d, VR_DROP_REPLAYED, 0); /* in the log */
    make_empty(&d, (struct vr_header){.type = VR_PREPARE_OK, .replica = 1, .op = 2});
    CHECK(come(&d));
    CHECK_INT(d.lab.r->commit, 2);
    /* Of the one that ran last the answer may be lost: it is said again, and that is no drop. */
    struct seen before = look(&d);
    make_request(&d, session, 5, VR_OP_NULL);
    CHECK(come(&d));
    CHECK(sent(&d.lab, VR_REPLY));
    struct seen after = look(&d);
    CHECK(memcmp(&before, &after, sizeof(before)) == 0);
    make_request(&d, session, 4, VR_OP_NULL);
    dropped(&d, VR_DROP_REPLAYED, 0); /* below the session's number */
    close_door(&d);
}

TEST(an_older_view_is_stale)
{
    struct door d = backup();
    d.lab.durable.view = d.lab.durable.log_view = 4;
    open_door(&d, 0);
    make_empty(&d, commit_of(2, 2)); /* who led view 2 */
    dropped(&d, VR_DROP_STALE, 0);
    struct vr_entry e = make_entry(1, 2, vr_genesis_checksum(1));
    make(&d, (struct vr_header){.type = VR_PREPARE, .replica = 2, .view = 2, .op = 1}, &e,
         sizeof(e), NULL, 0);
    dropped(&d, VR_DROP_STALE, 0);
    make_empty(&d, (struct vr_header){.type = VR_START_VIEW_CHANGE, .replica = 2, .view = 3});
    dropped(&d, VR_DROP_STALE, 0);
    close_door(&d);
}

TEST(an_older_epoch_is_stale)
{
    struct door d = backup();
    d.lab.durable.view = d.lab.durable.log_view = SECOND_EPOCH;
    d.lab.durable.group = (struct vr_group){
        .first_view = SECOND_EPOCH, .checksum = vr_genesis_checksum(1), .members = 7};
    open_door(&d, 1);
    make_empty(&d, commit_of(0, 3));
    dropped(&d, VR_DROP_STALE, VR_EPOCH); /* who is behind is told, and that is all */
    CHECK_INT(d.lab.u->message_count, 1);
    close_door(&d);
}

TEST(a_commit_of_who_does_not_lead_is_stale)
{
    struct door d = backup();
    open_door(&d, 1);
    struct vr_header h = commit_of(2, 0);
    h.op = h.commit = 9;
    make_empty(&d, h);
    dropped(&d, VR_DROP_STALE, 0);
    CHECK(!d.lab.r->ok_owed);
    struct vr_entry e = make_entry(1, 0, vr_genesis_checksum(1));
    make(&d, (struct vr_header){.type = VR_PREPARE, .replica = 2, .op = 1}, &e, sizeof(e), NULL, 0);
    dropped(&d, VR_DROP_STALE, 0);
    make_empty(&d, (struct vr_header){.type = VR_PREPARE_OK, .replica = 2}); /* to who does not */
    dropped(&d, VR_DROP_STALE, 0);
    close_door(&d);
}

TEST(a_late_do_view_change_is_stale)
{
    struct door d = first_primary();
    primary_with_session(&d);
    struct log_end end = {.head = {.head_checksum = vr_genesis_checksum(1)}};
    struct vr_header h = {.type = VR_DO_VIEW_CHANGE, .replica = 2};
    make(&d, h, &end.head, sizeof(end.head), NULL, 0);
    dropped(&d, VR_DROP_STALE, 0);
    CHECK(!d.lab.r->ends[2].there);
    /* And one for a view that another leads. */
    h.view = 1;
    make(&d, h, &end.head, sizeof(end.head), NULL, 0);
    dropped(&d, VR_DROP_STALE, 0);
    close_door(&d);
}

/* Who believed it would run entries that are not committed, or wait for what there never was. */
TEST(more_committed_than_there_is_is_dropped)
{
    struct door d = backup();
    open_door(&d, 1);
    make_empty(&d, (struct vr_header){.type = VR_COMMIT, .op = 3, .commit = 4});
    dropped(&d, VR_DROP_BODY, 0);
    struct vr_entry e = make_entry(1, 0, vr_genesis_checksum(1));
    struct vr_header h = {.type = VR_PREPARE, .op = 1, .commit = VR_OP_MAX + 1};
    make(&d, h, &e, sizeof(e), NULL, 0);
    dropped(&d, VR_DROP_BODY, 0);
    struct log_end end = {.head = {.head_checksum = e.checksum, .count = 1}, .heads = {e}};
    h = (struct vr_header){.type = VR_START_VIEW, .view = 3, .op = 1, .commit = 2};
    make(&d, h, &end.head, sizeof(end.head), end.heads, sizeof(end.heads[0]));
    dropped(&d, VR_DROP_BODY, 0);
    h.type = VR_DO_VIEW_CHANGE;
    make(&d, h, &end.head, sizeof(end.head), end.heads, sizeof(end.heads[0]));
    dropped(&d, VR_DROP_BODY, 0);
    CHECK_INT(d.lab.r->commit_max, 0);
    close_door(&d);
}

/* An acknowledgement of what this primary never sent is of another view's log. */
TEST(an_acknowledgement_of_what_is_not_there_is_stale)
{
    struct door d = first_primary();
    primary_with_session(&d);
    make_empty(&d, (struct vr_header){.type = VR_PREPARE_OK, .replica = 1, .op = 2});
    dropped(&d, VR_DROP_STALE, 0);
    close_door(&d);
}

/* The sum of a body stands in the packet for all to see, and a client may have a body that is a
 * header with checksum 0 sealed: with a secret its sum is not that header's checksum. */
TEST(no_bodys_sum_seals_a_header)
{
    struct vr_header wish = {.magic = VR_MAGIC,
                             .version = VR_VERSION,
                             .type = VR_COMMIT,
                             .cluster = 1,
                             .op = 9,
                             .commit = 9};
    struct door d = backup();
    open_door(&d, 1);
    for (unsigned secret = 0; secret < 2; secret++) {
        if (secret)
            d.packets.keys[0] = vr_keys_same(vr_key_secret(1, "open sesame", 11));
        struct vr_header carrier = {.type = VR_REQUEST, .cluster = 1}, forged = wish;
        vr_seal(&carrier, &d.packets.keys[0].replica, &wish, sizeof(wish), NULL, 0);
        forged.checksum = carrier.body_checksum;
        memcpy(d.bytes, &forged, d.size = sizeof(forged));
        if (secret) {
            dropped(&d, VR_DROP_CHECKSUM, 0);
            continue;
        }
        /* Without one, sums only find damage, and the wire is as it ever was. */
        struct vr_key key = vr_key_public(1), bodies = vr_key_of_bodies(&key);
        CHECK(memcmp(&key, &bodies, sizeof(key)) == 0);
        CHECK(carrier.body_checksum == vr_hash_keyed(&key, &wish, sizeof(wish)));
        struct vr_header out;
        CHECK_INT(vr_open_packet(d.bytes, d.size, &key, 1, &out), VR_DROP_NONE);
    }
    struct vr_key ours = d.packets.keys[0].replica, bodies = vr_key_of_bodies(&ours);
    CHECK(bodies.word[0] == (ours.word[0] ^ VR_KEY_BODIES) && bodies.word[1] == ours.word[1]);
    close_door(&d);
}

/* SPDX-License-Identifier: MIT */
/*
 * A replica that is fed with packets out of a fuzzer's input, for the fuzzer and for the test that
 * its corpus is what the names of its files say.
 *
 * The first byte says how the replica starts (enum feed_setup).  Then come commands: a byte of
 * enum feed_command, and for a packet its size (two bytes, little-endian) and its bytes, header and
 * body.  Unless it is fed raw, a packet is sealed, its body summed in the pieces of its type; what
 * else is made right on the way is said by the command's other bits.  What vr_packets_receive lets
 * in goes to vr_step; writes end when the commands say so; and whatever the replica sends must in
 * turn be let in by a peer.
 */
#ifndef ASSAY_FUZZ_VR_FEED_H
#define ASSAY_FUZZ_VR_FEED_H

#include "base/memory.h"
#include "vr/core/core_internal.h"
#include "vr/core/packet.h"

enum feed_setup {
    FEED_INDEX = 3, /* 0 to 2 */
    FEED_IN_MEMORY = 4,
    FEED_UNCERTAIN = 8, /* its log was lost */
    FEED_FRESH = 16,    /* formatted and never started: replica 0 leads at once */
    FEED_VIEW = 32,     /* in view 4, which 1 leads, instead of 0 */
    FEED_SECRET = 64,
};

enum feed_command {
    FEED_SEALED = 0,
    FEED_FRAGMENTED = 1, /* sealed, and sent in pieces */
    FEED_RAW = 2,        /* a datagram as it stands */
    FEED_TIME = 3,       /* no packet: time passes, and the replica has a turn */
    FEED_KIND = 3,
    /* Of packets. */
    FEED_PRESENT = 4,    /* its view counts from the replica's, its epoch is that view's */
    FEED_BODY = 8,       /* lengths, counts and sums inside the body are made right */
    FEED_NEXT = 16,      /* it follows on the replica's own log: op and parent */
    FEED_NO_WRITES = 32, /* what it has the replica write stays under way */
    FEED_BACKWARDS = 64, /* the pieces */
    FEED_TWICE = 128,    /* each piece, or the packet */
    /* Of time. */
    FEED_WAIT_SHIFT = 2, /* three bits: which of feed_waits */
    FEED_WRITES_FAIL = 32,
};

#define FEED_DATAGRAM 512u
#define FEED_CLUSTER 1u
#define FEED_COMMANDS_MAX 512u

struct feed {
    struct vr_config config;
    struct vr_packets packets, peer; /* the replica's, and of who gets what it sends */
    struct vr_replica *r;
    struct vr_update *u;
    uint64_t now_ns;
    struct vr_write writes[128]; /* under way */
    uint32_t write_count;
    /* What came of it. */
    uint64_t obeyed[VR_TYPE_END]; /* packets that reached the core */
    uint64_t sent[VR_TYPE_END];
    uint64_t whole; /* of these, put together from pieces */
};

static inline void feed_init(struct feed *f, unsigned setup)
{
    static struct vr_update update;
    static const struct vr_entry no_entries[1];
    *f = (struct feed){.u = &update, .now_ns = 1};
    f->config = (struct vr_config){.cluster = FEED_CLUSTER,
                                   .replica_count = 3,
                                   .index = (uint8_t)((setup & FEED_INDEX) % 3),
                                   .in_memory = setup & FEED_IN_MEMORY,
                                   .slots = 16,
                                   .checkpoint_every = 4,
                                   .pipeline = 4,
                                   .batch_bytes = 512,
                                   .sessions = 2,
                                   .kv_capacity = 2,
                                   .page_bytes = 512,
                                   .heartbeat_ns = 1000,
                                   .timeout_ns = 10000};
    struct vr_key key = setup & FEED_SECRET ? vr_key_secret(FEED_CLUSTER, "sesame", 6)
                                            : vr_key_public(FEED_CLUSTER);
    struct vr_keys keys = vr_keys_same(key);
    vr_packets_init(&f->packets, &f->config, &keys, FEED_DATAGRAM, 1);
    vr_packets_init(&f->peer, &f->config, &keys, FEED_DATAGRAM, 1);
    struct vr_image image = {.entries = no_entries, .uncertain = setup & FEED_UNCERTAIN};
    image.durable.view_checksum = vr_genesis_checksum(FEED_CLUSTER);
    image.durable.group = vr_group_first(&f->config);
    image.durable.fresh = setup & FEED_FRESH ? 1 : 0;
    image.durable.view = image.durable.log_view = setup & FEED_VIEW ? 4 : 0;
    f->r = vr_replica_new(&f->config, &image, 77, f->now_ns);
    f->u->message_count = f->u->write_count = 0;
    f->u->scratch_used = 0;
}

static inline void feed_done(struct feed *f)
{
    vr_replica_free(f->r);
    vr_packets_done(&f->packets);
    vr_packets_done(&f->peer);
}

struct feed_outgoing {
    struct feed *feed;
    bool whole;
};

static inline void feed_to_peer(void *context, uint8_t to, uint64_t client, const void *bytes,
                                size_t size)
{
    struct feed_outgoing *out = context;
    struct vr_header h;
    const void *body;
    (void)to, (void)client;
    assert(size <= FEED_DATAGRAM && !out->whole);
    out->whole = vr_packets_receive(&out->feed->peer, bytes, size, &h, &body);
}

/* Sends what the replica wants to send, and keeps what it wants to write. */
static inline void feed_act(struct feed *f)
{
    for (uint32_t i = 0; i < f->u->message_count; i++) {
        const struct vr_message *m = &f->u->messages[i];
        struct feed_outgoing out = {.feed = f};
        vr_packets_send(&f->packets, m, (struct vr_seal_choice){0}, feed_to_peer, &out);
        f->sent[m->header.type]++;
        /* Who asks from an older view, as who joins may, is sent entries that it cannot take. */
        assert(out.whole || (m->header.type == VR_PREPARE && m->header.flags & VR_FLAG_REPAIR));
    }
    for (uint32_t i = 0; i < f->u->write_count; i++) {
        assert(f->write_count < sizeof(f->writes) / sizeof(f->writes[0]));
        f->writes[f->write_count++] = f->u->writes[i];
    }
    f->u->message_count = f->u->write_count = 0;
    f->u->scratch_used = 0;
}

static inline void feed_step(struct feed *f, struct vr_event event)
{
    event.now_ns = f->now_ns;
    vr_step(f->r, &event, f->u);
    feed_act(f);
    const struct vr_replica *r = f->r;
    assert(r->commit <= r->op && r->durable_op <= r->op && r->log_view <= r->view);
    assert(r->queue_size <= 4 * r->config.batch_bytes && r->newest.op <= r->commit);
    /* What a host asks behind every step. */
    struct vr_expected expected;
    vr_deadline_ns(r);
    if (vr_expects(r, &expected))
        assert(expected.op == r->op + 1 && expected.last_op <= vr_log_limit(r));
}

/* Writes end, and those that these bring forth. */
static inline void feed_writes_end(struct feed *f, bool failed)
{
    for (unsigned rounds = 0; f->write_count && rounds < 64; rounds++) {
        struct vr_write w = f->writes[0];
        memmove(f->writes, f->writes + 1, --f->write_count * sizeof(w));
        feed_step(f, (struct vr_event){.kind = VR_EVENT_WRITTEN, .write = &w, .failed = failed});
    }
}

static inline void feed_time(struct feed *f, unsigned command)
{
    static const uint64_t feed_waits[8] = {0, 1, 250, 1000, 5000, 11000, 25000, 100000};
    f->now_ns += feed_waits[command >> FEED_WAIT_SHIFT & 7];
    feed_writes_end(f, command & FEED_WRITES_FAIL);
    feed_step(f, (struct vr_event){.kind = VR_EVENT_TURN});
}

/* ---- what is made right in a packet */

struct feed_packet {
    struct vr_header h;
    unsigned char body[8192];
    size_t size; /* of the body */
};

static inline size_t feed_first_piece(const struct feed_packet *p)
{
    size_t first = p->size;
    if (p->h.type == VR_PREPARE)
        first = sizeof(struct vr_entry);
    else if (p->h.type == VR_DO_VIEW_CHANGE || p->h.type == VR_START_VIEW)
        first = sizeof(struct vr_view_head);
    else if (p->h.type == VR_STATE_CHUNK)
        first = sizeof(struct vr_state_head);
    else if (p->h.type == VR_REPLY)
        first = sizeof(struct vr_reply);
    else if (p->h.type == VR_FRAGMENT)
        first = 0;
    return first < p->size ? first : p->size;
}

/* Makes these bytes one request, if they are not so many already. */
static inline uint32_t feed_mend_batch(unsigned char *bytes, size_t size, uint32_t count)
{
    struct vr_request q;
    if (vr_batch_valid(bytes, (uint32_t)size, count) || size < sizeof(q))
        return size < sizeof(q) ? 0 : count;
    memcpy(&q, bytes, sizeof(q));
    q.size = (uint32_t)(size - sizeof(q));
    memcpy(bytes, &q, sizeof(q));
    return 1;
}

static inline void feed_mend_request(struct feed_packet *p)
{
    struct vr_request q;
    if (p->size < sizeof(q))
        p->size = sizeof(q);
    p->size -= p->size % 8;
    feed_mend_batch(p->body, p->size, 1);
    memcpy(&q, p->body, sizeof(q));
    q.client = p->h.client;
    q.number = p->h.number;
    memcpy(p->body, &q, sizeof(q));
}

static inline void feed_mend_prepare(const struct feed *f, struct feed_packet *p, bool next)
{
    struct vr_entry e;
    if (p->size < sizeof(e))
        p->size = sizeof(e);
    p->size -= p->size % 8;
    if (p->size - sizeof(e) < sizeof(struct vr_request))
        p->size = sizeof(e);
    memcpy(&e, p->body, sizeof(e));
    e.op = p->h.op;
    if (next) {
        e.op = f->r->op + 1;
        e.parent = vr_checksum_at(f->r, f->r->op);
    }
    e.view = vr_min(e.view, p->h.view);
    e.size = (uint32_t)(p->size - sizeof(e));
    e.count = feed_mend_batch(p->body + sizeof(e), e.size, e.count);
    e.body_checksum = vr_hash(p->body + sizeof(e), e.size);
    e.checksum = vr_entry_checksum(&e);
    p->h.op = e.op;
    p->h.parent = e.parent;
    memcpy(p->body, &e, sizeof(e));
}

/* The log's end that another replica tells: its heads are linked, and where the replica has an
 * entry of that op and the command says so, it is that one. */
static inline void feed_mend_heads(const struct feed *f, struct feed_packet *p, bool next)
{
    struct vr_view_head head;
    if (p->size < sizeof(head))
        p->size = sizeof(head);
    p->size -= (p->size - sizeof(head)) % sizeof(struct vr_entry);
    memcpy(&head, p->body, sizeof(head));
    head.count = (uint32_t)((p->size - sizeof(head)) / sizeof(struct vr_entry));
    head.log_view = vr_min(head.log_view, p->h.view);
    if (next) {
        p->h.op = f->r->op + (p->h.op & 3);
        if (p->h.type == VR_START_VIEW)
            p->h.nonce = f->r->nonce;
    }
    p->h.op = vr_max(p->h.op, head.count);
    uint64_t before = p->h.op - head.count;
    uint64_t parent = next ? vr_checksum_at(f->r, before) : 0;
    for (uint32_t i = 0; i < head.count; i++) {
        struct vr_entry e;
        unsigned char *at = p->body + sizeof(head) + i * sizeof(e);
        memcpy(&e, at, sizeof(e));
        e.op = before + 1 + i;
        e.parent = parent ? parent : e.parent;
        e.checksum = vr_entry_checksum(&e);
        if (next && vr_known(f->r, e.op))
            e = vr_slot(f->r, e.op)->entry;
        parent = head.head_checksum = e.checksum;
        memcpy(at, &e, sizeof(e));
    }
    memcpy(p->body, &head, sizeof(head));
}

/* A page that was asked for is what was promised, as if its sender had said so from the beginning.
 */
static inline void feed_mend_page(const struct feed *f, const struct vr_state_head *head,
                                  const unsigned char *content)
{
    struct vr_arriving *a = &f->r->arriving;
    for (uint32_t i = 0; i < a->wish.count; i++)
        if (a->wish.kind == VR_STATE_PAGES && a->wish.items[i] == head->first) {
            uint64_t sum = vr_page_sum(head->first, content, f->r->pages.bytes);
            a->state.checksum += sum - a->wish_sums[i];
            a->wish_sums[i] = sum;
        }
}

static inline void feed_mend_chunk(const struct feed *f, struct feed_packet *p, bool next)
{
    struct vr_state_head head;
    if (p->size < sizeof(head))
        p->size = sizeof(head);
    memcpy(&head, p->body, sizeof(head));
    size_t size = p->size - sizeof(head);
    if (next)
        p->h.op = f->r->commit + 1 + (p->h.op & 7);
    if (head.kind == VR_STATE_GROUPS)
        head.count = (uint32_t)(size / sizeof(uint64_t));
    if (next && head.kind == VR_STATE_PAGES && size == f->r->pages.bytes)
        feed_mend_page(f, &head, p->body + sizeof(head));
    if (next && f->r->arriving_active && head.kind != VR_STATE_GROUPS) {
        head.checksum = f->r->arriving.state.checksum;
        head.size = (uint32_t)f->r->arriving.state.size;
    }
    memcpy(p->body, &head, sizeof(head));
}

static inline void feed_mend_epoch(const struct feed *f, struct feed_packet *p, bool next)
{
    struct vr_group group;
    p->size = sizeof(group);
    memcpy(&group, p->body, sizeof(group));
    if (next) {
        uint64_t epoch = vr_epoch_of(f->r->view) + 1;
        p->h.view = epoch << VR_EPOCH_SHIFT | (p->h.view & 3);
        p->h.epoch = (uint16_t)epoch;
        p->h.op = f->r->commit + (p->h.op & 3);
    }
    group.first_view = p->h.view;
    group.op = p->h.op;
    memcpy(p->body, &group, sizeof(group));
}

static inline void feed_mend(const struct feed *f, struct feed_packet *p, bool next)
{
    struct vr_reply reply;
    switch (p->h.type) {
    case VR_REQUEST:
        feed_mend_request(p);
        break;
    case VR_REPLY:
        if (p->size < sizeof(reply))
            p->size = sizeof(reply);
        memcpy(&reply, p->body, sizeof(reply));
        reply.size = (uint32_t)(p->size - sizeof(reply));
        memcpy(p->body, &reply, sizeof(reply));
        break;
    case VR_PREPARE:
        feed_mend_prepare(f, p, next);
        break;
    case VR_DO_VIEW_CHANGE:
    case VR_START_VIEW:
        feed_mend_heads(f, p, next);
        break;
    case VR_GET_STATE:
        p->size = sizeof(struct vr_state_wish);
        if (next)
            p->h.op = f->r->newest.op;
        break;
    case VR_STATE_CHUNK:
        feed_mend_chunk(f, p, next);
        break;
    case VR_EPOCH:
        feed_mend_epoch(f, p, next);
        break;
    case VR_STATUS_REPLY:
        p->size = sizeof(struct vr_status);
        break;
    case VR_FRAGMENT:
        break;
    default:
        p->size = 0;
        if (next && p->h.type == VR_PREPARE_OK)
            p->h.op = f->r->op;
    }
}

static inline void feed_make(const struct feed *f, struct feed_packet *p, unsigned command,
                             const uint8_t *data, size_t size)
{
    unsigned char header[sizeof(struct vr_header)] = {0};
    size_t most = vr_message_bytes_max(&f->config) - sizeof(header);
    memcpy(header, data, size < sizeof(header) ? size : sizeof(header));
    memset(p, 0, sizeof(*p));
    memcpy(&p->h, header, sizeof(header));
    p->size = size > sizeof(header) ? vr_min(size - sizeof(header), most) : 0;
    if (p->size)
        memcpy(p->body, data + sizeof(header), p->size);
    p->h.cluster = FEED_CLUSTER;
    p->h.type = (uint8_t)((p->h.type + (VR_TYPE_END - 2u)) % (VR_TYPE_END - 1u) + 1);
    if (p->h.type == VR_REQUEST || p->h.type == VR_STATUS)
        p->h.flags %= VR_ROLES; /* whose key it is */
    if (command & FEED_PRESENT && p->h.type != VR_FRAGMENT) {
        p->h.view = f->r->view + (p->h.view & 3);
        p->h.epoch = (uint16_t)vr_epoch_of(p->h.view);
    }
    if (command & FEED_BODY)
        feed_mend(f, p, command & FEED_NEXT);
    size_t first = feed_first_piece(p);
    vr_seal(&p->h, &f->packets.keys[0].replica, p->body, first, p->body + first, p->size - first);
}

/* ---- what is not fed; see vr-packet.c */

/* ---- feeding */

static inline void feed_datagram(struct feed *f, const void *bytes, size_t size)
{
    struct vr_header h;
    const void *body;
    if (!vr_packets_receive(&f->packets, bytes, size, &h, &body))
        return;
    assert(h.type != VR_FRAGMENT && vr_body_valid(&h, body));
    f->obeyed[h.type]++;
    f->whole += ((const unsigned char *)bytes)[offsetof(struct vr_header, type)] == VR_FRAGMENT;
    feed_step(f, (struct vr_event){.kind = VR_EVENT_MESSAGE, .header = &h, .body = body});
}

static inline void feed_pieces(struct feed *f, const struct feed_packet *p, unsigned command)
{
    static unsigned char message[sizeof(struct vr_header) + sizeof(p->body)];
    unsigned char piece[FEED_DATAGRAM];
    size_t size = sizeof(p->h) + p->size, piece_bytes = FEED_DATAGRAM - sizeof(p->h);
    memcpy(message, &p->h, sizeof(p->h));
    memcpy(message + sizeof(p->h), p->body, p->size);
    uint32_t count = vr_fragment_count(size, piece_bytes);
    uint64_t id = f->packets.next_fragment++;
    unsigned times = command & FEED_TWICE ? 2 : 1;
    for (uint32_t i = 0; i < count * times; i++) {
        uint32_t index = command & FEED_BACKWARDS ? count - 1 - i / times : i / times;
        size_t offset, length;
        struct vr_header h = vr_fragment_header(id, size, piece_bytes, index, &offset, &length);
        h.cluster = FEED_CLUSTER;
        h.replica = p->h.replica;
        vr_seal(&h, &f->packets.keys[0].replica, NULL, 0, message + offset, length);
        memcpy(piece, &h, sizeof(h));
        memcpy(piece + sizeof(h), message + offset, length);
        feed_datagram(f, piece, sizeof(h) + length);
    }
}

static inline void feed_packet(struct feed *f, unsigned command, const uint8_t *data, size_t size)
{
    static struct feed_packet p;
    static unsigned char bytes[sizeof(p.h) + sizeof(p.body)];
    unsigned times = command & FEED_TWICE ? 2 : 1;
    if ((command & FEED_KIND) == FEED_RAW) {
        /* Its own memory, so that reading behind it is seen. */
        unsigned char *copy = memory_alloc(size ? size : 1);
        memcpy(copy, data, size);
        feed_datagram(f, copy, size);
        free(copy);
    } else {
        feed_make(f, &p, command, data, size);
        if ((command & FEED_KIND) == FEED_FRAGMENTED) {
            feed_pieces(f, &p, command);
        } else {
            memcpy(bytes, &p.h, sizeof(p.h));
            memcpy(bytes + sizeof(p.h), p.body, p.size);
            for (unsigned i = 0; i < times; i++)
                feed_datagram(f, bytes, sizeof(p.h) + p.size);
        }
    }
    if (!(command & FEED_NO_WRITES))
        feed_writes_end(f, false);
}

/* All of an input but its first byte; so many commands at most, lest one input take long. */
static inline void feed_input(struct feed *f, const uint8_t *data, size_t size)
{
    for (unsigned i = 0; i < FEED_COMMANDS_MAX && size > 0; i++) {
        unsigned command = *data++;
        size--;
        if ((command & FEED_KIND) == FEED_TIME) {
            feed_time(f, command);
            continue;
        }
        if (size < 2)
            return;
        size_t length = vr_min((size_t)data[0] | (size_t)data[1] << 8, size - 2);
        feed_packet(f, command, data + 2, length);
        data += 2 + length;
        size -= 2 + length;
    }
}

#endif

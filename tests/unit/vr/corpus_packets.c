/* SPDX-License-Identifier: MIT */
/* The corpus of the fuzzer vr-packet: a file for each type of message, with what makes it count. */
#include "../../fuzz/vr-feed.h"
#include "corpus.h"

struct input {
    unsigned char bytes[1 << 14];
    size_t size;
};

#define FOLLOWING (FEED_SEALED | FEED_PRESENT | FEED_BODY | FEED_NEXT)

static void put(struct input *in, const void *bytes, size_t size)
{
    memcpy(in->bytes + in->size, bytes, size);
    in->size += size;
}

static void put_packet(struct input *in, unsigned command, struct vr_header h, const void *body,
                       size_t size)
{
    unsigned char start[3] = {(unsigned char)command, (unsigned char)(sizeof(h) + size),
                              (unsigned char)((sizeof(h) + size) >> 8)};
    put(in, start, sizeof(start));
    put(in, &h, sizeof(h));
    if (size)
        put(in, body, size);
}

static void put_time(struct input *in, unsigned wait)
{
    put(in, &(unsigned char){(unsigned char)(FEED_TIME | wait << FEED_WAIT_SHIFT)}, 1);
}

/* Its first superblock is on disk. */
static void put_start(struct input *in)
{
    put_time(in, 0);
    put_time(in, 0);
}

struct wish {
    struct vr_request request;
    unsigned char data[480];
};

/* Client 7's first requests: it registers, and puts a value of that many bytes. */
static size_t wish_of(struct wish *w, uint64_t number, size_t value_bytes)
{
    static const char value[VR_VALUE_BYTES_MAX];
    *w = (struct wish){.request = {.client = 7, .number = number, .opcode = VR_OP_REGISTER}};
    if (number) {
        w->request.opcode = VR_OP_PUT;
        w->request.session = 1 << 16;
        w->request.size = vr_kv_encode(w->data, "key", 3, NULL, 0, value, value_bytes);
    }
    return vr_request_bytes(w->request.size);
}

static void put_request(struct input *in, const struct wish *w)
{
    put_packet(in, FEED_SEALED | FEED_BODY,
               (struct vr_header){.type = VR_REQUEST, .client = 7, .number = w->request.number}, w,
               vr_request_bytes(w->request.size));
    put_time(in, 1);
    put_packet(in, FOLLOWING, (struct vr_header){.type = VR_PREPARE_OK, .replica = 1}, NULL, 0);
}

/* To the first primary. */
static void put_requests(struct input *in)
{
    struct wish w;
    put_start(in);
    for (uint64_t number = 0; number < 2; number++) {
        wish_of(&w, number, 7);
        put_request(in, &w);
    }
}

/* Every operation of the key-value store. */
static void put_operations(struct input *in)
{
    struct wish w;
    put_requests(in);
    static const struct {
        uint32_t opcode;
        const char *expect, *value;
    } operations[] = {{VR_OP_GET, "", ""},
                      {VR_OP_CAS, "", "other"},
                      {VR_OP_CAS, "\0\0\0\0\0\0\0", "new"},
                      {VR_OP_SCAN, "", ""},
                      {VR_OP_DELETE, "", ""}};
    for (uint64_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        wish_of(&w, i + 2, 0);
        w.request.opcode = operations[i].opcode;
        w.request.size = vr_kv_encode(w.data, "key", 3, operations[i].expect, i == 2 ? 7 : 0,
                                      operations[i].value, strlen(operations[i].value));
        put_request(in, &w);
    }
}

static void put_prepare(struct input *in, unsigned command, struct vr_header h, uint64_t number,
                        size_t value_bytes)
{
    struct {
        struct vr_entry entry;
        struct wish wish;
    } body = {.entry = {.count = 1, .parent = h.parent}};
    h.type = VR_PREPARE;
    size_t size = wish_of(&body.wish, number, value_bytes);
    put_packet(in, command, h, &body, sizeof(body.entry) + size);
}

/* To a backup of view 0: five entries, of which the last is not committed. */
static void put_prepares(struct input *in)
{
    for (uint64_t i = 0; i < 5; i++)
        put_prepare(in, FOLLOWING, (struct vr_header){.commit = i}, i, 7);
    for (unsigned i = 0; i < 4; i++) /* the checkpoint is written, and named */
        put_time(in, 1);
}

static void put_commit(struct input *in)
{
    put_packet(in, FOLLOWING, (struct vr_header){.type = VR_COMMIT, .op = 3, .commit = 3}, NULL, 0);
    put_time(in, 3);
}

static void put_start_view_change(struct input *in)
{
    for (uint8_t from = 0; from < 2; from++)
        put_packet(in, from ? FEED_SEALED : FEED_SEALED | FEED_PRESENT,
                   (struct vr_header){.type = VR_START_VIEW_CHANGE, .replica = from, .view = 1},
                   NULL, 0);
    put_time(in, 3);
}

/* The end of a log that is one entry longer, and then that entry. */
static void put_view(struct input *in, enum vr_type type, uint8_t from)
{
    struct {
        struct vr_view_head head;
        struct vr_entry heads[2];
    } end = {.head = {.count = 2}};
    put_prepare(in, FOLLOWING, (struct vr_header){.commit = 0}, 0, 0);
    put_packet(in, FOLLOWING,
               (struct vr_header){.type = (uint8_t)type, .replica = from, .view = 1, .op = 1}, &end,
               sizeof(end));
    put_time(in, 3);
    put_prepare(in, FOLLOWING, (struct vr_header){.replica = from, .flags = VR_FLAG_REPAIR}, 1, 7);
    put_time(in, 3);
}

static void put_do_view_change(struct input *in)
{
    put_view(in, VR_DO_VIEW_CHANGE, 0);
}

static void put_start_view(struct input *in)
{
    put_view(in, VR_START_VIEW, 1);
}

/* The view's log has another entry where the replica has one that was not committed. */
static void put_other_entry(struct input *in)
{
    struct {
        struct vr_view_head head;
        struct vr_entry entry;
    } end = {.head = {.count = 1}};
    struct vr_header h = {.replica = 1, .op = 1, .flags = VR_FLAG_REPAIR};
    h.parent = vr_genesis_checksum(FEED_CLUSTER);
    put_prepare(in, FOLLOWING, (struct vr_header){.commit = 0}, 0, 0);
    put_packet(in, FEED_PRESENT | FEED_BODY,
               (struct vr_header){.type = VR_START_VIEW, .replica = 1, .view = 1, .op = 1}, &end,
               sizeof(end));
    /* Once to have it closed on disk, and once to have it replaced. */
    for (unsigned i = 0; i < 2; i++) {
        put_prepare(in, FEED_PRESENT | FEED_BODY, h, 1, 7);
        put_time(in, 3);
    }
}

static void put_get_view(struct input *in)
{
    put_start(in);
    put_packet(in, FOLLOWING, (struct vr_header){.type = VR_GET_VIEW, .replica = 2, .nonce = 5},
               NULL, 0);
}

static void put_get_prepare(struct input *in)
{
    put_requests(in);
    put_packet(in, FOLLOWING,
               (struct vr_header){.type = VR_GET_PREPARE, .replica = 2, .op = 1, .commit = 2}, NULL,
               0);
}

static void put_get_state(struct input *in)
{
    put_prepares(in);
    struct vr_state_wish wish = {.kind = VR_STATE_PAGES, .count = 1};
    put_packet(in, FOLLOWING, (struct vr_header){.type = VR_GET_STATE, .replica = 2}, &wish,
               sizeof(wish));
}

struct chunk {
    struct vr_state_head head;
    unsigned char bytes[4096];
};

static void put_chunk(struct input *in, struct chunk *c, enum vr_state_kind kind, uint32_t first,
                      const void *bytes, size_t size)
{
    c->head.kind = kind;
    c->head.first = first;
    memcpy(c->bytes, bytes, size);
    put_packet(in, FOLLOWING, (struct vr_header){.type = VR_STATE_CHUNK, .op = 3}, c,
               sizeof(c->head) + size);
}

/* The state behind the first four of put_prepares, as it is asked for; spoil changes its page 0. */
static void put_state(struct input *in, void (*spoil)(unsigned char *page))
{
    static struct input others;
    static struct chunk c;
    struct feed f;
    others.size = 0;
    put_prepares(&others);
    feed_init(&f, 1);
    feed_input(&f, others.bytes, others.size);
    CHECK_INT(f.r->newest.op, 4);
    const struct vr_pages *p = &f.r->pages;
    c.head = (struct vr_state_head){.entry_checksum = f.r->newest.entry_checksum,
                                    .checksum = f.r->newest.checksum,
                                    .size = (uint32_t)f.r->newest.size};
    CHECK(c.head.size <= vr_pages_in_group(p));
    put_chunk(in, &c, VR_STATE_GROUPS, 0, p->groups, sizeof(uint64_t));
    put_time(in, 3);
    put_chunk(in, &c, VR_STATE_SUMS, 0, p->sums, c.head.size * sizeof(uint64_t));
    put_time(in, 3);
    for (uint32_t page = c.head.size; page-- > 0;) {
        unsigned char content[4096];
        if (!p->sums[page])
            continue;
        memcpy(content, vr_pages_newest(p, page), p->bytes);
        if (page == 0 && spoil)
            spoil(content);
        put_chunk(in, &c, VR_STATE_PAGES, page, content, p->bytes);
    }
    for (unsigned i = 0; i < 4; i++)
        put_time(in, 3);
    feed_done(&f);
}

static void put_state_chunks(struct input *in)
{
    put_state(in, NULL);
}

static void put_reply(struct input *in)
{
    struct vr_reply reply = {.status = VR_OK};
    put_packet(in, FOLLOWING, (struct vr_header){.type = VR_REPLY}, &reply, sizeof(reply));
}

static void put_eviction(struct input *in)
{
    put_packet(in, FOLLOWING, (struct vr_header){.type = VR_EVICTION}, NULL, 0);
}

static void put_status(struct input *in)
{
    put_packet(in, FOLLOWING, (struct vr_header){.type = VR_STATUS, .client = 7}, NULL, 0);
}

static void put_status_reply(struct input *in)
{
    put_packet(in, FOLLOWING, (struct vr_header){.type = VR_STATUS_REPLY}, NULL, 0);
}

static void put_epoch(struct input *in)
{
    struct vr_group group = {.members = 0xb, .prior = 7};
    group.checksum = vr_genesis_checksum(FEED_CLUSTER);
    put_packet(in, FOLLOWING,
               (struct vr_header){.type = VR_EPOCH, .flags = VR_FLAG_HAS | VR_FLAG_STARTED}, &group,
               sizeof(group));
    put_time(in, 3);
}

static void put_reconfiguration(struct input *in)
{
    struct vr_reconfiguration next = {.members = 3};
    struct wish w;
    put_start(in);
    wish_of(&w, 0, 0);
    put_request(in, &w);
    wish_of(&w, 1, 0);
    w.request.opcode = VR_OP_RECONFIGURE;
    memcpy(w.data, &next, w.request.size = sizeof(next));
    put_request(in, &w);
    put_start(in);
    put_start(in);
}

/* A message in pieces that the program itself has made and sealed, fed as they are. */
static void put_raw_piece(void *context, uint8_t to, uint64_t client, const void *bytes,
                          size_t size)
{
    struct input *in = context;
    unsigned char start[3] = {FEED_RAW, (unsigned char)size, (unsigned char)(size >> 8)};
    (void)to, (void)client;
    put(in, start, sizeof(start));
    put(in, bytes, size);
}

static void put_fragments(struct input *in)
{
    struct feed f;
    struct wish w;
    struct vr_entry e = {.op = 1, .parent = vr_genesis_checksum(FEED_CLUSTER), .count = 1};
    wish_of(&w, 1, 440);
    e.size = (uint32_t)vr_request_bytes(w.request.size);
    e.body_checksum = vr_hash(&w, e.size);
    e.checksum = vr_entry_checksum(&e);
    struct vr_message m = {.first = &e, .first_size = sizeof(e), .second = &w};
    m.second_size = e.size;
    m.header = (struct vr_header){.type = VR_PREPARE, .cluster = FEED_CLUSTER, .op = 1};
    feed_init(&f, 0);
    vr_packets_send(&f.packets, &m, (struct vr_seal_choice){0}, put_raw_piece, in);
    feed_done(&f);
}

static void put_fragmented_prepare(struct input *in)
{
    put_prepare(in, FOLLOWING | FEED_FRAGMENTED | FEED_BACKWARDS | FEED_TWICE,
                (struct vr_header){.commit = 0}, 1, 440);
}

/* What only a faulty member sends: it is dropped, and counted. */

/* A log that wins its view without what is committed. */
static void put_short_log(struct input *in)
{
    struct vr_view_head head = {.log_view = 1};
    put_prepares(in);
    put_packet(in, FEED_SEALED, (struct vr_header){.type = VR_DO_VIEW_CHANGE, .view = 1}, &head,
               sizeof(head));
    put_start(in);
}

static void put_reconfiguration_prepare(struct input *in, uint64_t commit)
{
    struct vr_reconfiguration next = {.members = 3};
    struct {
        struct vr_entry entry;
        struct wish wish;
    } body = {.entry = {.count = 1}};
    wish_of(&body.wish, 9, 0);
    body.wish.request.opcode = VR_OP_RECONFIGURE;
    memcpy(body.wish.data, &next, body.wish.request.size = sizeof(next));
    put_packet(in, FOLLOWING, (struct vr_header){.type = VR_PREPARE, .commit = commit}, &body,
               sizeof(body.entry) + vr_request_bytes(sizeof(next)));
}

/* An entry behind the one that ends the epoch. */
static void put_behind_fence(struct input *in)
{
    put_prepare(in, FOLLOWING, (struct vr_header){.commit = 0}, 0, 0);
    put_reconfiguration_prepare(in, 1);
    put_prepare(in, FOLLOWING, (struct vr_header){.commit = 2}, 10, 7);
}

static void other_table(unsigned char *page)
{
    page[sizeof(struct vr_group) + sizeof(uint32_t)]++;
}

static void nobody(unsigned char *page)
{
    memset(page + offsetof(struct vr_group, members), 0, sizeof(uint32_t));
}

/* A state whose sum is right and whose table of sessions is of another size. */
static void put_other_state(struct input *in)
{
    put_state(in, other_table);
}

/* A state with nobody in its group, and then a reconfiguration. */
static void put_state_of_nobody(struct input *in)
{
    put_state(in, nobody);
    put_reconfiguration_prepare(in, 5);
}

static void put_last_state(struct input *in)
{
    put_state(in, NULL);
    unsigned char *at = in->bytes + 1;
    at[0] &= (unsigned char)~FEED_NEXT;
    memset(at + 3 + offsetof(struct vr_header, op), 0xff, sizeof(uint64_t));
}

/* A log's end at the last number there is, told to who has uncommitted entries of its own. */
static void put_last_end(struct input *in)
{
    struct vr_view_head head = {.log_view = 0};
    put_prepare(in, FOLLOWING, (struct vr_header){.commit = 0}, 2, 7);
    put_packet(in, FEED_SEALED,
               (struct vr_header){.type = VR_START_VIEW, .replica = 1, .view = 1, .op = UINT64_MAX},
               &head, sizeof(head));
}

static const struct packet_file {
    const char *name;
    enum vr_type type; /* that reaches the core; 0: none */
    unsigned char setup;
    void (*put)(struct input *in);
    /* What must come of it. */
    enum vr_type sent; /* 0: nothing in particular */
    uint64_t op, commit, view, whole;
    enum vr_state state;
} packet_files[] = {
    {"request", VR_REQUEST, FEED_FRESH, put_requests, VR_REPLY, 2, 2, 0, 0, VR_NORMAL},
    {"request-in-memory", VR_REQUEST, FEED_FRESH | FEED_IN_MEMORY | FEED_SECRET, put_requests,
     VR_REPLY, 2, 2, 0, 0, VR_NORMAL},
    {"operations", VR_REQUEST, FEED_FRESH, put_operations, VR_REPLY, 7, 7, 0, 0, VR_NORMAL},
    {"reply", VR_REPLY, 1, put_reply, 0, 0, 0, 0, 0, VR_NORMAL},
    {"prepare", VR_PREPARE, 1, put_prepares, VR_PREPARE_OK, 5, 4, 0, 0, VR_NORMAL},
    {"prepare-ok", VR_PREPARE_OK, FEED_FRESH, put_requests, VR_PREPARE, 2, 2, 0, 0, VR_NORMAL},
    {"commit", VR_COMMIT, 1, put_commit, VR_GET_PREPARE, 0, 0, 0, 0, VR_NORMAL},
    {"start-view-change", VR_START_VIEW_CHANGE, 2, put_start_view_change, VR_DO_VIEW_CHANGE, 0, 0,
     1, 0, VR_VIEW_CHANGE},
    {"do-view-change", VR_DO_VIEW_CHANGE, 1, put_do_view_change, VR_START_VIEW, 2, 0, 1, 0,
     VR_NORMAL},
    {"start-view", VR_START_VIEW, 2, put_start_view, VR_PREPARE_OK, 2, 0, 1, 0, VR_NORMAL},
    {"start-view-replacing", VR_START_VIEW, 2, put_other_entry, VR_PREPARE_OK, 1, 0, 1, 0,
     VR_NORMAL},
    {"start-view-recovering", VR_START_VIEW, 2 | FEED_UNCERTAIN, put_start_view, VR_GET_PREPARE, 1,
     0, 1, 0, VR_VIEW_CHANGE},
    {"get-view", VR_GET_VIEW, FEED_FRESH, put_get_view, VR_START_VIEW, 0, 0, 0, 0, VR_NORMAL},
    {"get-prepare", VR_GET_PREPARE, FEED_FRESH, put_get_prepare, VR_PREPARE, 2, 2, 0, 0, VR_NORMAL},
    {"get-state", VR_GET_STATE, 1, put_get_state, VR_STATE_CHUNK, 5, 4, 0, 0, VR_NORMAL},
    {"state-chunks", VR_STATE_CHUNK, 2, put_state_chunks, VR_GET_STATE, 4, 4, 0, 0, VR_NORMAL},
    {"eviction", VR_EVICTION, 1, put_eviction, 0, 0, 0, 0, 0, VR_NORMAL},
    {"fragment", VR_PREPARE, 1, put_fragments, 0, 1, 0, 0, 1, VR_NORMAL},
    {"fragmented-prepare", VR_PREPARE, 1, put_fragmented_prepare, 0, 1, 0, 0, 1, VR_NORMAL},
    {"status", VR_STATUS, 1, put_status, VR_STATUS_REPLY, 0, 0, 0, 0, VR_NORMAL},
    {"status-reply", VR_STATUS_REPLY, 1, put_status_reply, 0, 0, 0, 0, 0, VR_NORMAL},
    {"epoch", VR_EPOCH, 1, put_epoch, 0, 0, 0, 1ULL << VR_EPOCH_SHIFT, 0, VR_NORMAL},
    {"reconfiguration", VR_REQUEST, FEED_FRESH, put_reconfiguration, VR_START_VIEW, 2, 2,
     1ULL << VR_EPOCH_SHIFT, 0, VR_NORMAL},
    {"faulty-short-log", VR_PREPARE, 1, put_short_log, 0, 5, 4, 1, 0, VR_VIEW_CHANGE},
    {"faulty-behind-fence", VR_PREPARE, 1, put_behind_fence, 0, 2, 2, 1ULL << VR_EPOCH_SHIFT, 0,
     VR_NORMAL},
    {"faulty-other-state", 0, 2, put_other_state, 0, 0, 0, 0, 0, VR_NORMAL},
    {"faulty-state-of-nobody", VR_PREPARE, 2, put_state_of_nobody, 0, 1, 1, 0, 0, VR_NORMAL},
    {"last-state", 0, 2, put_last_state, 0, 0, 0, 0, 0, VR_NORMAL},
    {"last-end", VR_PREPARE, 2, put_last_end, 0, 1, 0, 0, 0, VR_NORMAL},
};
#define EACH_PACKET_FILE(p)                          \
    for (const struct packet_file *p = packet_files; \
         p < packet_files + sizeof(packet_files) / sizeof(*p); p++)

static void check_packets(const struct packet_file *p, const unsigned char *bytes, size_t size)
{
    struct feed f;
    if (size == 0)
        return;
    feed_init(&f, bytes[0]);
    feed_input(&f, bytes + 1, size - 1);
    const struct vr_replica *r = f.r;
    if ((p->type && !f.obeyed[p->type]) || (p->sent && !f.sent[p->sent]) || r->op != p->op ||
        r->commit != p->commit || r->view != p->view || r->state != p->state ||
        (f.whole > 0) != (p->whole > 0))
        test_fail(__FILE__, __LINE__,
                  "%s: %lu of its type obeyed, %lu of the other sent, op %lu, commit %lu, view "
                  "%lx, state %d, %lu from pieces" AGAIN,
                  p->name, f.obeyed[p->type], f.sent[p->sent], r->op, r->commit, r->view,
                  (int)r->state, f.whole);
    feed_done(&f);
}

TEST(each_packet_made_now_does_what_its_name_says)
{
    static struct input in;
    EACH_PACKET_FILE(p)
    {
        in.bytes[0] = p->setup;
        in.size = 1;
        p->put(&in);
        check_packets(p, in.bytes, in.size);
        write_file("vr-packet", p->name, in.bytes, in.size);
    }
}

TEST(each_packet_of_the_corpus_does_what_its_name_says)
{
    static unsigned char bytes[1 << 16];
    EACH_PACKET_FILE(p)
    check_packets(p, bytes, read_file("vr-packet", p->name, bytes, sizeof(bytes)));
}

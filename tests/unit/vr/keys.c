/* SPDX-License-Identifier: MIT */
/* Who may do what: keys of roles, what they open, and files with keys. */
#include "vr/net/keys.h"
#include "base/fd.h"
#include "base/memory.h"
#include "test.h"
#include "vr/core/packet.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct vr_keys keys_of(const char *secret)
{
    return vr_keys_secret(vr_key_secret(1, secret, strlen(secret)));
}

static bool same(const struct vr_key *a, const struct vr_key *b)
{
    return a->word[0] == b->word[0] || a->word[1] == b->word[1]; /* or half of it */
}

TEST(no_two_roles_have_one_key)
{
    struct vr_keys a = keys_of("open sesame"), b = keys_of("open sesamo");
    const struct vr_key *all[] = {&a.replica, &a.clients[0], &a.clients[1], &a.clients[2],
                                  &b.replica, &b.clients[0], &b.clients[1], &b.clients[2]};
    for (unsigned i = 0; i < 8; i++)
        for (unsigned j = 0; j < i; j++)
            CHECK(!same(all[i], all[j]));
}

TEST(lower_keys_follow_from_higher_ones)
{
    struct vr_keys whole = keys_of("open sesame"), part = {0};
    vr_keys_set_role(&part, VR_ROLE_WRITE, whole.clients[VR_ROLE_WRITE]);
    CHECK(same(&part.clients[VR_ROLE_READ], &whole.clients[VR_ROLE_READ]));
    CHECK_INT(part.clients[VR_ROLE_ADMIN].word[0], 0);
    CHECK_INT(part.replica.word[0], 0);
}

/* ---- a client and a replica */

static const struct vr_config config = {
    .cluster = 1, .replica_count = 3, .batch_bytes = 512, .page_bytes = 512};

struct wire {
    struct vr_packets client, replica;
    unsigned char bytes[2][700];
    size_t sizes[2], count;
};

static void open_wire(struct wire *w, enum vr_role role, const char *of_client,
                      const char *of_replica)
{
    struct vr_keys client = keys_of(of_client), replica = keys_of(of_replica), known = {0};
    struct vr_config of = config;
    *w = (struct wire){.count = 0};
    vr_packets_init(&w->replica, &of, &replica, 700, 1);
    of.index = VR_TO_CLIENT;
    vr_keys_set_role(&known, role, client.clients[role]);
    vr_packets_init(&w->client, &of, &known, 700, 1);
    w->client.own.role = (uint8_t)role;
}

static void close_wire(struct wire *w)
{
    vr_packets_done(&w->client);
    vr_packets_done(&w->replica);
}

static void carry(void *context, uint8_t to, uint64_t client, const void *bytes, size_t size)
{
    struct wire *w = context;
    (void)to, (void)client;
    memcpy(w->bytes[w->count], bytes, size);
    w->sizes[w->count++] = size;
}

static bool arrives(struct wire *w, struct vr_packets *at)
{
    struct vr_header h;
    const void *body;
    bool whole = false;
    for (size_t i = 0; i < w->count; i++)
        whole = vr_packets_receive(at, w->bytes[i], w->sizes[i], &h, &body);
    w->count = 0;
    return whole;
}

static void ask(struct wire *w, enum vr_type type, uint32_t opcode, uint32_t size)
{
    uint64_t body[110] = {0};
    struct vr_request request = {5, 0, 1, opcode, size};
    struct vr_message m = {.header = {.type = (uint8_t)type,
                                      .replica = VR_TO_CLIENT,
                                      .cluster = 1,
                                      .client = 5,
                                      .number = 1},
                           .first = body};
    memcpy(body, &request, sizeof(request));
    if (type == VR_REQUEST)
        m.first_size = (uint32_t)vr_request_bytes(size);
    else if (type == VR_GET_STATE)
        m.first_size = sizeof(struct vr_state_wish);
    vr_packets_send(&w->client, &m, w->client.own, carry, w);
}

TEST(a_role_may_do_its_part_and_no_more)
{
    static const struct {
        enum vr_type type;
        uint32_t opcode;
        enum vr_role least;
    } wishes[] = {{VR_STATUS, 0, VR_ROLE_READ},
                  {VR_REQUEST, VR_OP_REGISTER, VR_ROLE_READ},
                  {VR_REQUEST, VR_OP_GET, VR_ROLE_READ},
                  {VR_REQUEST, VR_OP_SCAN, VR_ROLE_READ},
                  {VR_REQUEST, VR_OP_PUT, VR_ROLE_WRITE},
                  {VR_REQUEST, VR_OP_CAS, VR_ROLE_WRITE},
                  {VR_REQUEST, VR_OP_DELETE, VR_ROLE_WRITE},
                  {VR_REQUEST, 63, VR_ROLE_WRITE}, /* what there is not */
                  {VR_REQUEST, VR_OP_RECONFIGURE, VR_ROLE_ADMIN},
                  {VR_GET_STATE, 0, VR_ROLE_ADMIN}};
    for (unsigned role = 0; role < VR_ROLES; role++)
        for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
            struct wire w;
            open_wire(&w, (enum vr_role)role, "open sesame", "open sesame");
            for (uint32_t size = 0; size <= 800; size += 800) { /* in one packet, and in two */
                bool may = role <= wishes[i].least;
                ask(&w, wishes[i].type, wishes[i].opcode, size);
                CHECK_INT(arrives(&w, &w.replica), may);
                CHECK_INT(w.replica.from.role, role);
                if (!may)
                    CHECK(w.replica.dropped[VR_DROP_PERMISSION] > 0);
            }
            close_wire(&w);
        }
}

TEST(a_role_cannot_claim_another)
{
    struct wire w;
    open_wire(&w, VR_ROLE_READ, "open sesame", "open sesame");
    /* The header says write, and the sum is made with what it has. */
    w.client.own.role = VR_ROLE_WRITE;
    w.client.keys[0].clients[VR_ROLE_WRITE] = w.client.keys[0].clients[VR_ROLE_READ];
    ask(&w, VR_REQUEST, VR_OP_PUT, 0);
    CHECK(!arrives(&w, &w.replica));
    CHECK_INT(w.replica.dropped[VR_DROP_CHECKSUM], 1);
    /* Nor is it a replica: not even as an administrator. */
    struct vr_keys keys = keys_of("open sesame");
    struct vr_header h = {.type = VR_COMMIT, .cluster = 1, .replica = 0};
    for (unsigned role = 0; role < VR_ROLES; role++) {
        vr_seal(&h, &keys.clients[role], NULL, 0, NULL, 0);
        carry(&w, 0, 0, &h, sizeof(h));
        CHECK(!arrives(&w, &w.replica));
    }
    CHECK_INT(w.replica.dropped[VR_DROP_CHECKSUM], 4);
    close_wire(&w);
}

static void answer(struct wire *w, struct vr_seal_choice seal)
{
    struct vr_reply reply = {0};
    struct vr_message m = {.to = VR_TO_CLIENT,
                           .header = {.type = VR_REPLY, .cluster = 1, .client = 5},
                           .first = &reply,
                           .first_size = sizeof(reply)};
    vr_packets_send(&w->replica, &m, seal, carry, w);
}

TEST(answers_have_the_key_of_the_question)
{
    struct wire w;
    open_wire(&w, VR_ROLE_READ, "open sesame", "open sesame");
    ask(&w, VR_REQUEST, VR_OP_GET, 0);
    CHECK(arrives(&w, &w.replica));
    answer(&w, w.replica.from);
    CHECK(arrives(&w, &w.client));
    answer(&w, (struct vr_seal_choice){0, VR_ROLE_WRITE});
    CHECK(!arrives(&w, &w.client));
    close_wire(&w);
}

TEST(keys_are_changed_while_both_are_accepted)
{
    struct wire w;
    struct vr_keys old = keys_of("old secret");
    open_wire(&w, VR_ROLE_WRITE, "old secret", "new secret");
    ask(&w, VR_REQUEST, VR_OP_PUT, 0);
    CHECK(!arrives(&w, &w.replica));
    vr_packets_accept(&w.replica, &old);
    ask(&w, VR_REQUEST, VR_OP_PUT, 800);
    CHECK(arrives(&w, &w.replica));
    CHECK_INT(w.replica.from.set, 1);
    answer(&w, w.replica.from);
    CHECK(arrives(&w, &w.client));
    /* And between replicas. */
    struct vr_header h = {.type = VR_COMMIT, .cluster = 1};
    vr_seal(&h, &old.replica, NULL, 0, NULL, 0);
    carry(&w, 0, 0, &h, sizeof(h));
    CHECK(arrives(&w, &w.replica));
    close_wire(&w);
}

/* ---- files */

TEST(a_key_of_a_role_is_a_line)
{
    struct vr_key_file whole, part;
    struct error err = {0};
    CHECK_INT(vr_key_file_parse(&whole, "0123456789abcdef", 16, "f", 7, &err), 0);
    CHECK(whole.complete);
    for (unsigned role = 0; role < VR_ROLES; role++) {
        CLEANUP(strbuf_done) struct strbuf line = {0};
        vr_key_file_put_role(&whole, (enum vr_role)role, 7, &line);
        CHECK_INT(vr_key_file_parse(&part, line.data, line.length, "f", 7, &err), 0);
        CHECK_INT(part.role, role);
        CHECK(!part.complete);
        CHECK(same(&part.keys.clients[VR_ROLE_READ], &whole.keys.clients[VR_ROLE_READ]));
        CHECK(!same(&part.keys.replica, &whole.keys.replica));
        CHECK_INT(vr_key_file_parse(&part, line.data, line.length, "f", 8, &err), -EINVAL);
    }
    static const char *const wrong[] = {"assay-vr-key ", "assay-vr-key read 7 12",
                                        "assay-vr-key king 7 00112233445566778899aabbccddeeff",
                                        "too short"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK_INT(vr_key_file_parse(&part, wrong[i], strlen(wrong[i]), "f", 7, &err), -EINVAL);
}

TEST(a_key_is_made_once_and_kept_private)
{
    struct vr_key_file first, second;
    struct error err = {0};
    struct stat st;
    bool made = false;
    char path[] = "/tmp/vr-key-XXXXXX";
    int fd = mkstemp(path);
    close(fd);
    unlink(path);
    CHECK_INT(vr_key_file_read(&first, path, 7, &err), -ENOENT);
    CHECK_INT(vr_key_file_make(path, &made, &err), 0);
    CHECK(made);
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    CHECK_INT(vr_key_file_read(&first, path, 7, &err), 0);
    CHECK_INT(vr_key_file_make(path, &made, &err), 0);
    CHECK(!made);
    CHECK_INT(vr_key_file_read(&second, path, 7, &err), 0);
    CHECK(same(&first.keys.replica, &second.keys.replica));
    for (unsigned bit = 0; bit < 6; bit++) {
        chmod(path, 0600 | 1u << bit);
        CHECK_INT(vr_key_file_read(&second, path, 7, &err), -EPERM);
    }
    unlink(path);
}

/* SPDX-License-Identifier: MIT */
/* The file of a backup, and the copy of a state that goes into it. */
#include "vr/client/backup.h"
#include "lab.h"
#include "vr/core/copy.h"

#include <errno.h>
#include <unistd.h>

static struct vr_bytes text(const char *words)
{
    return (struct vr_bytes){words, strlen(words)};
}

static size_t write_pairs(const char *path, uint32_t count)
{
    static struct vr_backup_writer w;
    struct error err = {0};
    char key[16], value[VR_VALUE_BYTES_MAX + 1];
    memset(value, 'v', sizeof(value));
    CHECK_INT(vr_backup_create(&w, path, 7, 99, count, &err), 0);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(key, sizeof(key), "key %06u", i);
        CHECK_INT(vr_backup_add(&w, text(key), (struct vr_bytes){value, i % 512}, &err), 0);
    }
    CHECK_INT(vr_backup_commit(&w, &err), 0);
    vr_backup_abandon(&w);
    struct strbuf bytes = {0};
    CHECK_INT(file_read(path, &bytes, &err), 0);
    size_t size = bytes.length;
    strbuf_done(&bytes);
    return size;
}

/* How many pairs it has, or the error. */
static int read_pairs(FILE *in)
{
    static struct vr_backup_reader b;
    struct error err = {0};
    struct vr_bytes key, value;
    int count = 0, result = vr_backup_read_head(&b, in, "it", &err);
    while (!result && (result = vr_backup_next(&b, &key, &value, &err)) == 1) {
        char expected[16];
        snprintf(expected, sizeof(expected), "key %06d", count);
        CHECK_INT(memcmp(key.at, expected, key.size), 0);
        CHECK_INT(value.size, (unsigned)count % 512);
        result = 0;
        count++;
    }
    return result ? result : count;
}

TEST(what_was_written_is_read)
{
    const uint32_t counts[] = {0, 1, 700};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        write_pairs("backup", counts[i]);
        FILE *in = fopen("backup", "re");
        CHECK_INT(read_pairs(in), (int)counts[i]);
        fclose(in);
        unlink("backup");
    }
}

TEST(no_cut_and_no_flipped_bit_passes)
{
    size_t size = write_pairs("backup", 5);
    struct strbuf whole = {0};
    struct error err = {0};
    CHECK_INT(file_read("backup", &whole, &err), 0);
    for (size_t cut = 1; cut < size; cut++) {
        FILE *in = fmemopen(whole.data, cut, "r");
        CHECK_INT(read_pairs(in), -EBADMSG);
        fclose(in);
    }
    for (size_t bit = 0; bit < 8 * size; bit++) {
        whole.data[bit / 8] ^= (char)(1 << bit % 8);
        FILE *in = fmemopen(whole.data, size, "r");
        CHECK_INT(read_pairs(in), -EBADMSG);
        fclose(in);
        whole.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    strbuf_done(&whole);
    unlink("backup");
}

/* ---- a copy of a group of one */

static void alone(struct vr_config *config)
{
    config->replica_count = 1;
    config->in_memory = true;
    config->kv_capacity = 64;
}

static void small(struct vr_config *config)
{
    alone(config);
    config->kv_capacity = 32;
}

struct source {
    struct lab lab;
    uint64_t session, number;
};

/* Writes end, and what they bring forth. */
static void live(struct source *s)
{
    for (unsigned i = 0; i < 4; i++) {
        writes_end(&s->lab);
        step(&s->lab, (struct vr_event){.kind = VR_EVENT_TURN});
    }
    writes_end(&s->lab);
}

static void ask_for(struct source *s, uint32_t opcode, const void *data, uint32_t size)
{
    uint64_t body[128] = {0};
    struct vr_request q = {5, s->session, s->number, opcode, size};
    memcpy(body, &q, sizeof(q));
    if (size)
        memcpy((char *)body + sizeof(q), data, size);
    struct vr_header h = {.type = VR_REQUEST,
                          .replica = VR_TO_CLIENT,
                          .client = 5,
                          .number = s->number,
                          .op = s->session,
                          .size = (uint32_t)vr_request_bytes(size)};
    receive(&s->lab, h, body);
    live(s);
    s->number++;
}

static void put(struct source *s, unsigned key, const char *value)
{
    unsigned char data[256];
    char name[16];
    snprintf(name, sizeof(name), "key %03u", key);
    ask_for(s, VR_OP_PUT, data,
            vr_kv_encode(data, name, strlen(name), NULL, 0, value, strlen(value)));
}

static void source_start(struct source *s)
{
    *s = (struct source){
        .lab = {.durable = {.view_checksum = vr_genesis_checksum(1), .fresh = VR_FRESH_FOUNDED},
                .config = alone}};
    start(&s->lab, 0);
    live(s);
    ask_for(s, VR_OP_REGISTER, NULL, 0);
    s->session = s->lab.r->commit << 16;
}

/* Question and answers until the copy is whole, or nothing moves; between them the source lives. */
static bool copy_all(struct source *s, struct vr_copy *copy, bool busy)
{
    struct vr_message m;
    for (unsigned round = 0; vr_copy_ask(copy, &m); round++) {
        if (round == 200)
            return false;
        struct vr_state_wish wish;
        memcpy(&wish, m.first, sizeof(wish));
        m.header.client = 9;
        m.header.size = sizeof(wish);
        receive(&s->lab, m.header, &wish);
        for (uint32_t i = 0; i < s->lab.u->message_count; i++) {
            const struct vr_message *answer = &s->lab.u->messages[i];
            if (answer->to != VR_TO_CLIENT || answer->header.type != VR_STATE_CHUNK)
                continue;
            CHECK_INT(answer->header.client, 9);
            unsigned char body[8192];
            struct vr_header h = answer->header;
            h.size = answer->first_size + answer->second_size;
            memcpy(body, answer->first, answer->first_size);
            if (answer->second_size)
                memcpy(body + answer->first_size, answer->second, answer->second_size);
            vr_copy_take(copy, &h, body);
        }
        for (unsigned i = 0; busy && round < 20 && i < 17; i++)
            put(s, i, "newer");
    }
    return true;
}

struct found {
    unsigned count, newer;
};

static bool count_pair(void *context, struct vr_bytes key, struct vr_bytes value)
{
    struct found *f = context;
    CHECK_INT(key.size, 7);
    f->count++;
    f->newer += value.size == 5;
    return true;
}

TEST(a_copy_is_whole_also_when_checkpoints_pass_it)
{
    for (unsigned busy = 0; busy < 2; busy++) {
        struct source s;
        struct found found = {0};
        source_start(&s);
        for (unsigned i = 0; i < 40; i++)
            put(&s, i, "old");
        CHECK_INT(s.lab.r->newest.op >= 32, 1);
        struct vr_copy *copy = vr_copy_new(&s.lab.r->config);
        CHECK_INT(copy_all(&s, copy, busy), 1);
        vr_copy_each(copy, count_pair, &found);
        CHECK_INT(found.count, vr_copy_keys(copy));
        CHECK_INT(found.count >= 31, 1);
        CHECK_INT(vr_copy_op(copy) <= s.lab.r->newest.op, 1);
        CHECK_INT(busy ? found.newer > 0 : found.newer == 0, 1);
        vr_copy_free(copy);
        finish(&s.lab);
    }
}

TEST(a_copy_with_other_settings_is_refused)
{
    struct source s;
    source_start(&s);
    for (unsigned i = 0; i < 40; i++)
        put(&s, i, "old");
    struct vr_config config = s.lab.r->config;
    small(&config);
    struct vr_copy *copy = vr_copy_new(&config);
    CHECK_INT(copy_all(&s, copy, false), 0);
    CHECK_INT(vr_copy_refused(copy) > 0, 1);
    vr_copy_free(copy);
    finish(&s.lab);
}

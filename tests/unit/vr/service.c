/* SPDX-License-Identifier: MIT */
/* The key-value store and the client table: what they answer, and that saving loses nothing. */
#include "vr/core/service.h"
#include "test.h"
#include "vr/core/sessions.h"

#include <stdio.h>
#include <stdlib.h>

static enum vr_result call(struct vr_service *s, uint32_t opcode, const char *key,
                           const char *expect, const char *value, char *out)
{
    unsigned char data[1200];
    uint32_t size =
        vr_kv_encode(data, key, strlen(key), expect, strlen(expect), value, strlen(value));
    enum vr_result result = vr_service_execute(s, opcode, data, size, out, &size);
    out[size] = 0;
    return result;
}

static struct vr_service *make(struct vr_pages *pages, uint32_t capacity)
{
    vr_pages_init(pages, 1 + vr_service_pages(4064, capacity), 4064);
    return vr_service_new(capacity, pages, 1);
}

static const unsigned char *read_page(const void *context, uint32_t page)
{
    return vr_pages_at(context, page);
}

TEST(operations_answer_as_documented)
{
    char out[VR_RESULT_BYTES_MAX + 1];
    struct vr_pages pages;
    struct vr_service *s = make(&pages, 2);
    CHECK_INT(call(s, VR_OP_GET, "a", "", "", out), VR_NOT_FOUND);
    CHECK_INT(call(s, VR_OP_PUT, "a", "", "1", out), VR_OK);
    CHECK_INT(call(s, VR_OP_GET, "a", "", "", out), VR_OK);
    CHECK_STR(out, "1");
    CHECK_INT(call(s, VR_OP_CAS, "a", "2", "3", out), VR_CONFLICT);
    CHECK_STR(out, "1");
    CHECK_INT(call(s, VR_OP_CAS, "a", "", "3", out), VR_CONFLICT);
    CHECK_INT(call(s, VR_OP_CAS, "a", "1", "3", out), VR_OK);
    CHECK_INT(call(s, VR_OP_CAS, "b", "x", "3", out), VR_NOT_FOUND);
    CHECK_INT(call(s, VR_OP_CAS, "b", "", "4", out), VR_OK);
    CHECK_INT(call(s, VR_OP_PUT, "c", "", "5", out), VR_FULL);
    CHECK_INT(call(s, VR_OP_DELETE, "a", "", "", out), VR_OK);
    CHECK_INT(call(s, VR_OP_DELETE, "a", "", "", out), VR_NOT_FOUND);
    CHECK_INT(call(s, VR_OP_PUT, "c", "", "5", out), VR_OK);
    CHECK_INT(call(s, 99, "c", "", "5", out), VR_INVALID);
    vr_service_free(s);
    vr_pages_done(&pages);
}

TEST(a_service_goes_on_from_its_pages)
{
    char out[VR_RESULT_BYTES_MAX + 1], key[16];
    unsigned char root[VR_SERVICE_ROOT_BYTES];
    struct vr_pages a, b;
    struct vr_service *s = make(&a, 100), *other = make(&b, 100);
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        CHECK_INT(call(s, VR_OP_PUT, key, "", key, out), VR_OK);
    }
    for (int i = 0; i < 100; i += 3) {
        snprintf(key, sizeof(key), "k%d", i);
        CHECK_INT(call(s, VR_OP_DELETE, key, "", "", out), VR_OK);
    }
    vr_service_save(s, root);
    memcpy(b.memory, a.memory, (size_t)a.count * a.bytes);
    CHECK(vr_service_root_valid(other, root, read_page, &b));
    vr_service_load(other, root);
    CHECK_INT(vr_service_count(other), 66);
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        CHECK_INT(call(other, VR_OP_GET, key, "", "", out), i % 3 ? VR_OK : VR_NOT_FOUND);
    }
    /* What cannot be a root is none: its first word is the page, its third how many are used. */
    for (unsigned word = 0; word < 4; word++) {
        unsigned char wrong[VR_SERVICE_ROOT_BYTES];
        memcpy(wrong, root, sizeof(wrong));
        memset(wrong + 4 * word, 0xff, 4);
        CHECK(!vr_service_root_valid(other, wrong, read_page, &b));
    }
    vr_service_free(s);
    vr_service_free(other);
    vr_pages_done(&a);
    vr_pages_done(&b);
}

TEST(the_oldest_session_gives_way)
{
    struct vr_sessions t;
    struct vr_session evicted;
    struct vr_pages pages;
    vr_pages_init(&pages, vr_sessions_pages(480, 2), 480);
    vr_sessions_init(&t, 2, &pages, 0);
    vr_sessions_begin(&t, 10, 1, &evicted);
    vr_sessions_begin(&t, 20, 2, &evicted);
    CHECK_INT(evicted.client, 0);
    vr_sessions_find(&t, 10)->number = 99; /* busy, and oldest all the same */
    vr_sessions_begin(&t, 30, 3, &evicted);
    CHECK_INT(evicted.client, 10);
    CHECK_INT(evicted.session, 1);
    CHECK(!vr_sessions_find(&t, 10));
    CHECK_INT(vr_sessions_find(&t, 20)->session, 2);
    CHECK_INT(vr_sessions_find(&t, 30)->session, 3);
    /* And they are found again in their pages. */
    struct vr_session *s = vr_sessions_find(&t, 30);
    s->number = 4;
    s->size = 700;
    memset(s->result, 'r', s->size);
    vr_sessions_keep(&t, s);
    vr_sessions_keep(&t, vr_sessions_find(&t, 20));
    struct vr_sessions other;
    vr_sessions_init(&other, 2, &pages, 0);
    CHECK(vr_sessions_valid(&other, 2, read_page, &pages));
    vr_sessions_load(&other, 2);
    s = vr_sessions_find(&other, 30);
    CHECK(s && s->number == 4 && s->size == 700 && s->result[699] == 'r');
    CHECK(!vr_sessions_valid(&other, 3, read_page, &pages));
    vr_sessions_done(&other);
    vr_sessions_done(&t);
    vr_pages_done(&pages);
}

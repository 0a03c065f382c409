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

TEST(operations_answer_as_documented)
{
    char out[VR_RESULT_BYTES_MAX + 1];
    struct vr_service *s = vr_service_new(2);
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
}

TEST(saved_state_depends_on_content_only)
{
    char out[VR_RESULT_BYTES_MAX + 1], key[8];
    struct vr_service *a = vr_service_new(100), *b = vr_service_new(100);
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        call(a, VR_OP_PUT, key, "", key, out);
        snprintf(key, sizeof(key), "k%d", 99 - i);
        call(b, VR_OP_PUT, key, "", key, out);
    }
    for (int i = 0; i < 100; i += 3) {
        snprintf(key, sizeof(key), "k%d", i);
        CHECK_INT(call(a, VR_OP_DELETE, key, "", "", out), VR_OK);
        CHECK_INT(call(b, VR_OP_DELETE, key, "", "", out), VR_OK);
    }
    unsigned char *x = malloc(vr_service_bytes_max(a)), *y = malloc(vr_service_bytes_max(b));
    size_t x_size = vr_service_save(a, x), y_size = vr_service_save(b, y);
    CHECK_INT(x_size, y_size);
    CHECK(memcmp(x, y, x_size) == 0);
    struct vr_service *c = vr_service_new(100);
    CHECK(vr_service_load(c, x, x_size));
    CHECK_INT(vr_service_save(c, y), x_size);
    CHECK(memcmp(x, y, x_size) == 0);
    CHECK(!vr_service_load(c, x, x_size - 1));
    CHECK_INT(vr_service_count(c), 0);
    free(x);
    free(y);
    vr_service_free(a);
    vr_service_free(b);
    vr_service_free(c);
}

TEST(the_oldest_session_gives_way)
{
    struct vr_sessions t;
    struct vr_session evicted;
    vr_sessions_init(&t, 2);
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
    vr_sessions_done(&t);
}

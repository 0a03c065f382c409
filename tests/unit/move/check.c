/* SPDX-License-Identifier: MIT */
/* Messages are made and checked: in pieces, in fields, changed, missing and out of order. */
#include "check.h"
#include "settings.h"
#include "test.h"

#include <errno.h>
#include <stdlib.h>

struct fixture {
    struct settings settings;
    struct counts counts;
    atomic_bool stop;
    struct link link;
};

static void fixture_init(struct fixture *f, size_t message_bytes)
{
    *f = (struct fixture){0};
    settings_defaults(&f->settings);
    f->link = (struct link){.settings = &f->settings,
                            .transport = TRANSPORT_TCP,
                            .message_bytes = message_bytes,
                            .stop = &f->stop,
                            .counts = &f->counts,
                            .limit = UINT64_MAX,
                            .fill = true,
                            .source = {.file_fd = -1}};
}

TEST(messages_are_all_different)
{
    char a[64], b[64];
    message_make(a, sizeof(a), 1);
    message_make(b, sizeof(b), 2);
    for (size_t i = 16; i < sizeof(a); i += 8)
        CHECK(memcmp(a + i, b + i, 8) != 0);
    CHECK(message_checksum(a, sizeof(a)) != message_checksum(b, sizeof(b)));
}

/* Every single bit that changes is seen. */
TEST(a_changed_bit_is_seen)
{
    struct error err;
    struct fixture f;
    fixture_init(&f, 37);
    for (size_t bit = 0; bit < 37 * 8; bit++) {
        char message[37];
        struct check *c = check_new(&f.link, true);
        message_make(message, sizeof(message), 0);
        message[bit / 8] = (char)(message[bit / 8] ^ (1 << bit % 8));
        CHECK_INT(check_bytes(c, &f.link, message, sizeof(message), &err), -EBADMSG);
        check_free(c);
    }
}

/* The stream may be cut anywhere. */
TEST(pieces_of_any_size_are_put_together)
{
    enum { COUNT = 20, SIZE = 48 };
    struct error err;
    struct fixture f;
    fixture_init(&f, SIZE);
    char stream[COUNT * SIZE];
    for (uint64_t i = 0; i < COUNT; i++)
        message_make(stream + i * SIZE, SIZE, i);
    for (size_t piece = 1; piece <= sizeof(stream); piece++) {
        struct check *c = check_new(&f.link, true);
        for (size_t at = 0; at < sizeof(stream); at += piece) {
            size_t left = sizeof(stream) - at;
            CHECK_INT(check_bytes(c, &f.link, stream + at, left < piece ? left : piece, &err), 0);
        }
        CHECK_INT(c->verified, COUNT);
        CHECK_INT(c->partial_bytes, 0);
        check_free(c);
    }
}

TEST(order_counts_in_a_stream_and_gaps_in_datagrams)
{
    struct error err = {0};
    struct fixture f;
    char message[32];
    fixture_init(&f, sizeof(message));
    struct check *c = check_new(&f.link, true);
    message_make(message, sizeof(message), 3);
    CHECK_INT(check_bytes(c, &f.link, message, sizeof(message), &err), -EBADMSG);
    CHECK_CONTAINS(err.message, "message 3 arrived where 0 was expected");
    check_free(c);

    f.link.transport = TRANSPORT_UDP;
    c = check_new(&f.link, true);
    CHECK_INT(check_bytes(c, &f.link, message, sizeof(message), &err), 0);
    CHECK_INT(count_read(&f.counts.lost), 3);
    CHECK_INT(check_bytes(c, &f.link, message, sizeof(message), &err), -EBADMSG); /* again */
    CHECK_INT(check_bytes(c, &f.link, message, 20, &err), -EBADMSG);
    check_free(c);
}

/* A message in fields is the same message; the fields do not touch. */
TEST(fields_hold_the_message)
{
    struct error err = {0};
    struct fixture f;
    fixture_init(&f, 1001);
    f.settings.fields = 7;
    CHECK_INT(source_open(&f.link, SOURCE_FIELDS, 3, false, &err), 0);
    for (size_t slot = 0; slot < 3; slot++)
        source_fill(&f.link, slot);
    struct check *c = check_new(&f.link, true);
    const char *before = NULL;
    for (size_t slot = 0; slot < 3; slot++)
        for (size_t i = 0; i < 7; i++) {
            const struct iovec *piece = source_pieces(&f.link, slot) + i;
            CHECK(!before || (const char *)piece->iov_base >= before + 64);
            before = (const char *)piece->iov_base + piece->iov_len;
            CHECK_INT(check_bytes(c, &f.link, piece->iov_base, piece->iov_len, &err), 0);
        }
    CHECK_INT(c->verified, 3);
    check_free(c);
    source_close(&f.link);
}

TEST(layouts_are_as_said)
{
    struct error err = {0};
    struct fixture f;
    fixture_init(&f, 100);
    CHECK_INT(source_open(&f.link, SOURCE_PACKED, 5, false, &err), 0);
    CHECK((char *)source_pieces(&f.link, 4)->iov_base == f.link.source.base + 400);
    source_close(&f.link);
    CHECK_INT(source_open(&f.link, SOURCE_ALIGNED, 5, true, &err), 0);
    CHECK((uintptr_t)source_pieces(&f.link, 3)->iov_base % 4096 == 0);
    CHECK(f.link.source.file_fd >= 0);
    source_paint(&f.link, 'x');
    CHECK(*(char *)source_pieces(&f.link, 2)->iov_base == 'x');
    source_close(&f.link);
}

/* Without verification the check remembers where the bytes lay and what they were. */
TEST(a_look_counts_paint)
{
    struct error err = {0};
    struct fixture f;
    fixture_init(&f, 16);
    struct check *c = check_new(&f.link, false);
    CHECK_INT(check_bytes(c, &f.link, "AAB", 3, &err), 0);
    CHECK_INT(c->painted['A'], 2);
    CHECK_INT(c->painted['B'], 1);
    CHECK_INT(c->view_bytes, 3);
    check_free(c);
}

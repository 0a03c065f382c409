/* SPDX-License-Identifier: MIT */
#include "elf/build_id.h"
#include "base/memory.h"
#include "test.h"

static const unsigned char notes[] = {
    4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 'L', 'i', 'n', 0, 1, 2, 3, 4, /* another note */
    4, 0, 0, 0, 6, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 9, 8, 7, 6, 5, 4, 0, 0,
};

TEST(the_note_is_found_among_others)
{
    struct build_id id;
    CHECK(build_id_in_notes(notes, sizeof(notes), &id));
    CHECK_INT(id.size, 6);
    CHECK_INT(id.bytes[0], 9);
    CHECK_INT(id.bytes[5], 4);
}

TEST(notes_that_are_cut_short_have_none)
{
    struct build_id id;
    for (size_t size = 0; size < sizeof(notes); size++) /* the last two bytes only pad it */
        CHECK(build_id_in_notes(notes, size, &id) == (size >= sizeof(notes) - 2));
}

TEST(lengths_in_notes_are_not_trusted)
{
    struct build_id id;
    for (size_t at = 0; at < sizeof(notes); at += 4) {
        unsigned char copy[sizeof(notes)];
        memcpy(copy, notes, sizeof(notes));
        memset(copy + at, 0xff, 4);
        build_id_in_notes(copy, sizeof(copy), &id); /* the sanitizers watch */
    }
}

TEST(a_file_that_is_no_program_has_none)
{
    struct build_id id;
    CHECK(!build_id_of_file("/etc/passwd", &id));
    CHECK(!build_id_of_file("/nonexistent", &id));
    CHECK(!build_id_of_file("/dev/null", &id));
    CHECK(!build_id_of_file("/", &id));
}

TEST(names_and_ids_that_need_padding)
{
    /* A note of another kind first, with a name that needs padding. */
    static const unsigned char padded[] = {
        6, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 'L', 'i', 'n', 'u', 'x',  0,    0,    0,    9, 9, 0, 0,
        4, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0,   0xde, 0xad, 0xbe, 0xef, 1, 0, 0, 0};
    struct build_id id;
    char hex[BUILD_ID_TEXT];
    CHECK(build_id_in_notes(padded, sizeof(padded), &id));
    CHECK_STR(build_id_format(&id, hex), "deadbeef01");
    /* Every shorter text is refused or, once the five bytes are there, gives the same. */
    for (size_t length = 0; length < sizeof(padded); length++) {
        CLEANUP(memory_freep) unsigned char *copy = memory_alloc(length + 1);
        memcpy(copy, padded, length);
        CHECK(build_id_in_notes(copy, length, &id) == (length >= 45));
    }
}

TEST(lengths_near_the_end_of_the_range_do_not_wrap)
{
    static const unsigned char huge[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                         0xff, 3,    0,    0,    0,    'G',  'N'};
    struct build_id id;
    CHECK(!build_id_in_notes(huge, sizeof(huge), &id));
}

/* SPDX-License-Identifier: MIT */
#include "sampler/buildid.h"
#include "base/memory.h"
#include "test.h"

#include <unistd.h>

static const unsigned char notes[] = {
    4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 'L', 'i', 'n', 0, 1, 2, 3, 4, /* another note */
    4, 0, 0, 0, 6, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 9, 8, 7, 6, 5, 4, 0, 0,
};

TEST(the_note_is_found_among_others)
{
    struct buildid id;
    CHECK(buildid_from_notes(notes, sizeof(notes), &id));
    CHECK_INT(id.size, 6);
    CHECK_INT(id.bytes[0], 9);
    CHECK_INT(id.bytes[5], 4);
}

TEST(notes_that_are_cut_short_have_none)
{
    struct buildid id;
    for (size_t size = 0; size < sizeof(notes); size++)
        CHECK(!buildid_from_notes(notes, size, &id));
}

TEST(lengths_in_notes_are_not_trusted)
{
    struct buildid id;
    for (size_t at = 0; at < sizeof(notes); at += 4) {
        unsigned char copy[sizeof(notes)];
        memcpy(copy, notes, sizeof(notes));
        memset(copy + at, 0xff, 4);
        buildid_from_notes(copy, sizeof(copy), &id); /* the sanitizers watch */
    }
}

TEST(a_file_that_is_no_program_has_none)
{
    struct buildid id;
    CHECK(!buildid_of_file("/etc/passwd", &id));
    CHECK(!buildid_of_file("/nonexistent", &id));
    CHECK(!buildid_of_file("/dev/null", &id));
    CHECK(!buildid_of_file("/", &id));
}

TEST(the_first_build_id_of_a_name_stays)
{
    struct buildid_table t = {0};
    const struct buildid a = {2, {1, 1}}, b = {2, {2, 2}};
    buildid_table_add(&t, "/bin/x", 2, NULL);
    CHECK_INT(buildid_table_find(&t, "/bin/x")->size, 0);
    buildid_table_add(&t, "/bin/x", 2, &a);
    buildid_table_add(&t, "/bin/x", 2, &b);
    buildid_table_add(&t, "//anon", 2, &b);
    for (unsigned i = 0; i < 1000; i++) {
        CLEANUP(memory_freep) char *name = memory_printf("/lib/%u", i);
        buildid_table_add(&t, name, 2, NULL);
    }
    CHECK_INT(t.count, 1001);
    CHECK_INT(buildid_table_find(&t, "/bin/x")->bytes[0], 1);
    CHECK(!buildid_table_find(&t, "//anon"));
    buildid_table_done(&t);
}

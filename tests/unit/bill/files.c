/* SPDX-License-Identifier: MIT */
/* Which file a wait was for. */
#include "bill/files.h"
#include "test.h"

#include <sys/syscall.h>

TEST(what_was_seen_during_the_wait_counts_most)
{
    struct files *f = files_new();
    files_add(f, 10, 10, 3, 1000, "/a");
    files_add(f, 10, 11, 3, 2000, "/b");
    CHECK_STR(files_name(f, 10, 10, 3, 900, 1100), "/a");
    CHECK_STR(files_name(f, 10, 11, 3, 1900, 2100), "/b");
    CHECK(!files_name(f, 10, 11, 3, 2900, 3100)); /* it was two files */
    CHECK(!files_name(f, 12, 12, 3, 900, 1100));
    CHECK(!files_name(NULL, 10, 10, 3, 900, 1100));
    files_free(f);
}

TEST(a_descriptor_that_was_always_one_file_is_that_file)
{
    struct files *f = files_new();
    files_add(f, 10, 10, 4, 1000, "/a");
    files_add(f, 10, 11, 4, 2000, "/a");
    CHECK_STR(files_name(f, 10, 12, 4, 5000, 6000), "/a");
    CHECK(!files_name(f, 10, 12, 5, 5000, 6000));
    files_free(f);
}

TEST(calls_without_a_descriptor_have_no_file)
{
    CHECK(files_has_descriptor(SYS_fsync));
    CHECK(!files_has_descriptor(SYS_futex));
    CHECK(!files_has_descriptor(-1));
}

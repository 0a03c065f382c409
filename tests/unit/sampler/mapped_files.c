/* SPDX-License-Identifier: MIT */
#include "sampler/mapped_files.h"
#include "base/memory.h"
#include "test.h"

TEST(the_first_build_id_of_a_name_stays)
{
    struct mapped_files t = {0};
    const struct build_id a = {2, {1, 1}}, b = {2, {2, 2}};
    mapped_files_add(&t, "/bin/x", 2, NULL);
    CHECK_INT(mapped_files_find(&t, "/bin/x")->size, 0);
    mapped_files_add(&t, "/bin/x", 2, &a);
    mapped_files_add(&t, "/bin/x", 2, &b);
    mapped_files_add(&t, "//anon", 2, &b);
    for (unsigned i = 0; i < 1000; i++) {
        CLEANUP(memory_freep) char *name = memory_printf("/lib/%u", i);
        mapped_files_add(&t, name, 2, NULL);
    }
    CHECK_INT(t.count, 1001);
    CHECK_INT(mapped_files_find(&t, "/bin/x")->bytes[0], 1);
    CHECK(!mapped_files_find(&t, "//anon"));
    mapped_files_done(&t);
}

/* SPDX-License-Identifier: MIT */
#include "exact/functions.h"
#include "base/fd.h"
#include "base/memory.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static void read_text(struct exact_functions *f, const char *text)
{
    char path[] = "/tmp/assay-unit-XXXXXX";
    struct error err;
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    CHECK_INT(exact_functions_read(f, path, &err), 0);
    unlink(path);
}

TEST(equal_functions_are_one_and_the_largest_comes_first)
{
    struct exact_functions f;
    read_text(&f, "5 a.so\tf\n7 b.so\tf\n40 a.so\tg h\n3 a.so\tf\n");
    CHECK_INT(f.count, 3);
    CHECK_INT(f.instructions, 55);
    CHECK_STR(f.items[0].name, "g h");
    CHECK_STR(f.items[1].module, "a.so");
    CHECK_INT(f.items[1].instructions, 8);
    exact_functions_done(&f);
}

TEST(changes_add_up_and_leave_out_what_did_not_change)
{
    struct exact_functions base, new;
    read_text(&base, "100 p\tgone\n50 p\tsame\n10 p\tgrows\n");
    read_text(&new, "50 p\tsame\n300 p\tgrows\n1 p\tcomes\n");
    CLEANUP(exact_changes_done) struct exact_changes c;
    exact_changes_find(&c, &base, &new);
    CHECK_INT(c.count, 3);
    CHECK_STR(c.items[0].name, "grows");
    CHECK_STR(c.items[1].name, "gone");
    CHECK_INT(c.items[1].new, 0);
    int64_t sum = 0;
    for (size_t i = 0; i < c.count; i++)
        sum += (int64_t)(c.items[i].new - c.items[i].base);
    CHECK_INT(sum, (int64_t)(new.instructions - base.instructions));
    exact_functions_done(&base);
    exact_functions_done(&new);
}

TEST(what_is_no_file_of_counts_is_refused)
{
    struct exact_counts c = {0};
    struct error err;
    char path[] = "/tmp/assay-unit-XXXXXX";
    int fd = mkstemp(path);
    /* Killed before its first instruction: empty, or without the mark yet. */
    CHECK_INT(exact_counts_add(&c, path, &err), 0);
    CHECK(ftruncate(fd, EXACT_FILE_BYTES) == 0);
    CHECK_INT(exact_counts_add(&c, path, &err), 0);
    CHECK_INT(c.process_count, 0);
    CHECK(ftruncate(fd, 100) == 0 && pwrite(fd, "x", 1, 0) == 1);
    CHECK_INT(exact_counts_add(&c, path, &err), -EBADMSG);
    CHECK(ftruncate(fd, EXACT_FILE_BYTES) == 0); /* the right size and another mark */
    CHECK_INT(exact_counts_add(&c, path, &err), -EBADMSG);
    CHECK_INT(c.process_count, 0);
    /* The mark, and numbers that lie. */
    struct exact_head head = {.magic = EXACT_MAGIC,
                              .block_count = UINT32_MAX,
                              .module_count = UINT32_MAX,
                              .slots = UINT32_MAX,
                              .rest = 7};
    CHECK(pwrite(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head));
    struct exact_module module = {.path = UINT32_MAX};
    CHECK(pwrite(fd, &module, sizeof(module), EXACT_MODULES_AT) == (ssize_t)sizeof(module));
    CHECK_INT(exact_counts_add(&c, path, &err), 0);
    CHECK_INT(c.instructions, 7);
    exact_counts_done(&c);
    close(fd);
    unlink(path);
}

/* SPDX-License-Identifier: MIT */
#include "vm/cpio.h"
#include "base/memory.h"
#include "test.h"

#include <stdlib.h>
#include <sys/stat.h>

/* An entry as a kernel reads it. */
struct entry {
    unsigned inode, mode, links, size, name_size;
    const char *name, *content;
};

static unsigned field(const char *head, int index)
{
    char digits[9];
    memcpy(digits, head + 6 + 8 * index, 8);
    digits[8] = '\0';
    return (unsigned)strtoul(digits, NULL, 16);
}

static size_t padded(size_t at)
{
    return (at + 3) & ~(size_t)3;
}

/* The entry at *at, which moves behind it; false when it is none. */
static bool read_entry(const struct strbuf *bytes, size_t *at, struct entry *e)
{
    const char *head = bytes->data + *at;
    if (bytes->length - *at < 110 || strncmp(head, "070701", 6) != 0)
        return false;
    *e = (struct entry){field(head, 0),
                        field(head, 1),
                        field(head, 4),
                        field(head, 6),
                        field(head, 11),
                        head + 110,
                        NULL};
    size_t content = padded(*at + 110 + e->name_size);
    e->content = bytes->data + content;
    *at = padded(content + e->size);
    return *at <= bytes->length && e->name[e->name_size - 1] == '\0';
}

TEST(files_come_behind_their_folders)
{
    struct error err;
    CLEANUP(cpio_done) struct cpio c = {0};
    CHECK_INT(cpio_file(&c, "/a/b/tool", 0755, "12345", 5, &err), 0);
    CHECK_INT(cpio_file(&c, "/a/data", 0644, NULL, 0, &err), 0);
    CHECK_INT(cpio_link(&c, "/a/link", "/a/b/tool", &err), 0);
    cpio_finish(&c);
    static const struct {
        const char *name, *content;
        unsigned mode;
    } expected[] = {{"a", "", S_IFDIR | 0755},
                    {"a/b", "", S_IFDIR | 0755},
                    {"a/b/tool", "12345", S_IFREG | 0755},
                    {"a/data", "", S_IFREG | 0644},
                    {"a/link", "/a/b/tool", S_IFLNK | 0777},
                    {"TRAILER!!!", "", 0}};
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++) {
        struct entry e = {0};
        CHECK(read_entry(&c.bytes, &at, &e));
        CHECK_STR(e.name, expected[i].name);
        CHECK_INT(e.mode, expected[i].mode);
        CHECK_INT(e.size, strlen(expected[i].content));
        CHECK(memcmp(e.content, expected[i].content, e.size) == 0);
        CHECK_INT(e.inode, expected[i].mode ? i + 1 : 0);
    }
    CHECK_INT(at, c.bytes.length);
}

TEST(a_folder_is_there_once)
{
    struct error err;
    CLEANUP(cpio_done) struct cpio c = {0};
    CHECK_INT(cpio_folder(&c, "/x/y", &err), 0);
    size_t length = c.bytes.length;
    CHECK_INT(cpio_folder(&c, "/x", &err), 0);
    CHECK_INT(cpio_folder(&c, "/x/y", &err), 0);
    CHECK_INT(c.bytes.length, length);
}

TEST(paths_that_are_none_are_refused)
{
    static const char *const bad[] = {"",    "/",     "x",    "x/y",   "//x",
                                      "/x/", "/x//y", "/./x", "/x/..", "/../x"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct error err = {0};
        CLEANUP(cpio_done) struct cpio c = {0};
        CHECK(cpio_file(&c, bad[i], 0644, "", 0, &err) < 0);
        CHECK_INT(c.bytes.length, 0);
        CHECK(strstr(err.message, "must start with /") != NULL);
    }
}

TEST(a_file_that_is_not_there_is_an_error)
{
    struct error err = {0};
    CLEANUP(cpio_done) struct cpio c = {0};
    CHECK(cpio_copy(&c, "/x", 0644, "/nowhere/at/all", &err) < 0);
    CHECK(strstr(err.message, "/nowhere/at/all") != NULL);
}

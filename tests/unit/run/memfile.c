/* SPDX-License-Identifier: MIT */
/* Files in memory that commands write to: what is kept of them, and what memory they take. */
#include "run/memfile.h"
#include "base/fd.h"
#include "base/memory.h"
#include "test.h"

#include <sys/stat.h>

static size_t memory_of(int fd)
{
    struct stat st;
    fstat(fd, &st);
    return (size_t)st.st_blocks * 512;
}

static void fill(int fd, size_t size)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    for (size_t i = 0; text.length < size; i++)
        strbuf_printf(&text, "%zu\n", i);
    CHECK_INT(fd_write_all(fd, text.data, text.length), 0);
}

TEST(heads_and_tails_are_read)
{
    CLEANUP(fd_closep) int fd = memfile_open("test", NULL);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CHECK(fd >= 10);
    CHECK(!memfile_read_tail(fd, 10, &text));
    CHECK_INT(text.length, 0);
    CHECK_INT(fd_write_all(fd, "hello world", 11), 0);
    CHECK(memfile_read_tail(fd, 5, &text));
    CHECK_STR(strbuf_text(&text), "world");
    CHECK(!memfile_read_head(fd, 100, &text));
    CHECK_STR(strbuf_text(&text), "worldhello world");
    memfile_reset(fd);
    CHECK_INT(fd_write_all(fd, "again", 5), 0);
    strbuf_clear(&text);
    CHECK(!memfile_read_head(fd, 5, &text));
    CHECK_STR(strbuf_text(&text), "again");
}

TEST(what_is_not_kept_takes_no_memory)
{
    CLEANUP(fd_closep) int fd = memfile_open("test", NULL);
    CLEANUP(strbuf_done) struct strbuf before = {0}, after = {0};
    fill(fd, 20 << 20);
    CHECK(memory_of(fd) >= 20 << 20);
    CHECK(memfile_read_tail(fd, 65536, &before));
    memfile_trim(fd, 0, 65536);
    CHECK(memory_of(fd) < 1 << 20);
    CHECK(memfile_read_tail(fd, 65536, &after));
    CHECK_STR(strbuf_text(&after), strbuf_text(&before));
    /* The writer goes on where it was. */
    CHECK_INT(fd_write_all(fd, "end", 3), 0);
    strbuf_clear(&after);
    CHECK(memfile_read_tail(fd, 3, &after));
    CHECK_STR(strbuf_text(&after), "end");
    memfile_reset(fd);
    CHECK_INT(memory_of(fd), 0);
}

TEST(a_head_survives_the_trimming)
{
    CLEANUP(fd_closep) int fd = memfile_open("test", NULL);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    fill(fd, 5 << 20);
    memfile_trim(fd, 65536, 0);
    CHECK(memory_of(fd) < 1 << 20);
    CHECK(memfile_read_head(fd, 6, &text));
    CHECK_STR(strbuf_text(&text), "0\n1\n2\n");
}

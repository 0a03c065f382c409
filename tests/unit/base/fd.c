/* SPDX-License-Identifier: MIT */
#include "base/fd.h"
#include "base/memory.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static char folder[] = "/tmp/assay-fd-XXXXXX";

static char *in_folder(const char *name)
{
    static bool made;
    if (!made)
        made = mkdtemp(folder) != NULL;
    return memory_printf("%s/%s", folder, name);
}

TEST(a_result_appears_only_when_committed)
{
    struct error err;
    CLEANUP(memory_freep) char *path = in_folder("result");
    struct outfile o;
    CHECK_INT(outfile_open(&o, path, &err), 0);
    CHECK_INT(outfile_write(&o, "half", 4, &err), 0);
    CHECK(access(path, F_OK) < 0);
    CLEANUP(memory_freep) char *temporary = memory_strdup(o.temporary_path);
    CHECK(access(temporary, F_OK) == 0);
    outfile_done(&o);
    CHECK(access(path, F_OK) < 0);
    CHECK(access(temporary, F_OK) < 0);

    CHECK_INT(file_write(path, "whole", 5, &err), 0);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CHECK_INT(file_read(path, &text, &err), 0);
    CHECK_STR(strbuf_text(&text), "whole");
}

TEST(a_link_stays_a_link)
{
    struct error err;
    CLEANUP(memory_freep) char *path = in_folder("target");
    CLEANUP(memory_freep) char *link_path = in_folder("link");
    CHECK_INT(file_write(path, "old", 3, &err), 0);
    CHECK_INT(chmod(path, 0640), 0);
    CHECK_INT(symlink(path, link_path), 0);
    CHECK_INT(file_write(link_path, "new", 3, &err), 0);
    struct stat st;
    CHECK_INT(lstat(link_path, &st), 0);
    CHECK(S_ISLNK(st.st_mode));
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0640);
    CHECK_INT(st.st_size, 3);
}

TEST(a_full_disk_is_explained)
{
    struct error err;
    CHECK_INT(file_write("/dev/full", "x", 1, &err), -ENOSPC);
    CHECK_CONTAINS(err.message, "the disk is full");
    CHECK_CONTAINS(err.message, "/dev/full");
}

TEST(a_missing_folder_is_named)
{
    struct error err;
    CHECK_INT(file_write("/nonexistent-folder/x", "x", 1, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "/nonexistent-folder/x");
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CHECK_INT(file_read("/nonexistent-folder/x", &text, &err), -ENOENT);
}

TEST(temporary_files_go_where_they_can_be_written)
{
    char *before = getenv("TMPDIR");
    CLEANUP(memory_freep) char *kept = before ? memory_strdup(before) : NULL;
    setenv("TMPDIR", "/nonexistent/folder", 1);
    CHECK_STR(temporary_folder(), "/tmp");
    setenv("TMPDIR", "", 1);
    CHECK_STR(temporary_folder(), "/tmp");
    setenv("TMPDIR", "/tmp/.", 1);
    CHECK_STR(temporary_folder(), "/tmp/.");
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
}

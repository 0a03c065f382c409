/* SPDX-License-Identifier: MIT */
#include "store/spool.h"
#include "base/memory.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE "postgresql://someone@db.example/assay"

static char folder[64];

/* Each test begins with an empty folder that does not exist yet. */
static void use_fresh_folder(void)
{
    static int number;
    char path[128];
    if (!folder[0]) {
        strcpy(folder, "/tmp/assay-spool-XXXXXX");
        CHECK(mkdtemp(folder) != NULL);
    }
    snprintf(path, sizeof(path), "%s/%d/deep", folder, number++);
    setenv("ASSAY_SPOOL", path, 1);
}

__attribute__((destructor)) static void clean_up(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    if (folder[0] && system(command) != 0)
        perror(folder);
}

static void add(struct spool *spool, const char *text)
{
    struct error err = {0};
    CLEANUP(strbuf_done) struct strbuf record = {0};
    record_put_text(&record, text);
    record_put_i64(&record, -5);
    record_put_double(&record, 0.1);
    CHECK_INT(spool_add(spool, &record, &err), 0);
}

static char *only_path(void)
{
    struct error err = {0};
    char **paths = NULL;
    size_t count = 0;
    CHECK_INT(spool_list(PLACE, &paths, &count, &err), 0);
    CHECK_INT(count, 1);
    char *path = count == 1 ? paths[0] : memory_strdup("");
    free(paths);
    return path;
}

/* How many records are read; the last return value goes to ret_code. */
static int count_records(const char *path, int *ret_code)
{
    struct error err = {0};
    struct spool spool;
    CLEANUP(strbuf_done) struct strbuf content = {0}, record = {0};
    size_t position = 0;
    int count = 0;
    CHECK_INT(spool_take(&spool, path, &err), 0);
    CHECK_INT(spool_read(&spool, &content, &position, &err), 0);
    while ((*ret_code = spool_next(&content, &position, &record, &err)) > 0)
        count++;
    spool_close(&spool);
    return count;
}

TEST(records_come_back)
{
    use_fresh_folder();
    struct error err = {0};
    struct spool spool, other;
    CHECK_INT(spool_create(&spool, PLACE, &err), 0);
    add(&spool, "first");
    add(&spool, NULL);
    CLEANUP(memory_freep) char *path = only_path();
    struct stat st;
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    CHECK_INT(spool_take(&other, path, &err), -EBUSY); /* its writer has it */
    CLEANUP(strbuf_done) struct strbuf content = {0}, record = {0};
    size_t position = 0;
    CHECK_INT(spool_read(&spool, &content, &position, &err), 0);
    CHECK_INT(spool_next(&content, &position, &record, &err), 1);
    struct record_reader r = {.at = record.data, .end = record.data + record.length};
    CHECK_STR(record_text(&r), "first");
    CHECK_INT(record_i64(&r), -5);
    CHECK_NEAR(record_double(&r), 0.1, 0);
    CHECK(!r.bad);
    CHECK_INT(record_i64(&r), 0); /* beyond the end */
    CHECK(r.bad);
    CHECK_INT(spool_next(&content, &position, &record, &err), 1);
    r = (struct record_reader){.at = record.data, .end = record.data + record.length};
    CHECK(record_text(&r) == NULL);
    CHECK_INT(spool_next(&content, &position, &record, &err), 0);
    spool_remove(&spool);
    CHECK_INT(spool_take(&other, path, &err), -ENOENT);
}

TEST(files_of_other_places_are_not_listed)
{
    use_fresh_folder();
    struct error err = {0};
    struct spool spool;
    char **paths = NULL;
    size_t count = 7;
    CHECK_INT(spool_list(PLACE, &paths, &count, &err), 0); /* no folder yet */
    CHECK_INT(count, 0);
    CHECK_INT(spool_create(&spool, "postgresql://elsewhere/x", &err), 0);
    CHECK_INT(spool_list(PLACE, &paths, &count, &err), 0);
    CHECK_INT(count, 0);
    spool_remove(&spool);
}

TEST(the_end_may_be_cut_but_the_middle_not)
{
    use_fresh_folder();
    struct error err = {0};
    struct spool spool;
    CHECK_INT(spool_create(&spool, PLACE, &err), 0);
    add(&spool, "one");
    add(&spool, "two");
    add(&spool, "three");
    spool_close(&spool);
    CLEANUP(memory_freep) char *path = only_path();
    struct stat st;
    int code = 0;
    CHECK_INT(count_records(path, &code), 3);
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(truncate(path, st.st_size - 3), 0);
    CHECK_INT(count_records(path, &code), 2);
    CHECK_INT(code, 0);
    /* Each byte of the first record but the first line's, in turn: its head or what it holds. */
    size_t start = strlen("assay spool 1\n" PLACE "\n");
    int fd = open(path, O_RDWR | O_CLOEXEC);
    for (size_t at = start; at < start + 50; at++) {
        unsigned char byte, wrong;
        CHECK_INT(pread(fd, &byte, 1, (off_t)at), 1);
        wrong = byte ^ 0x81;
        CHECK_INT(pwrite(fd, &wrong, 1, (off_t)at), 1);
        CHECK_INT(count_records(path, &code), 0);
        CHECK_INT(code, -EBADMSG);
        CHECK_INT(pwrite(fd, &byte, 1, (off_t)at), 1);
    }
    close(fd);
}

TEST(no_folder_is_told)
{
    struct error err = {0};
    struct spool spool;
    setenv("ASSAY_SPOOL", "/proc/no/such", 1);
    CHECK(spool_create(&spool, PLACE, &err) < 0);
    CHECK_CONTAINS(err.message, "/proc/no/such");
}

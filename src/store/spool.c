/* SPDX-License-Identifier: MIT */
/* See spool.h. */
#include "store/spool.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/sha256.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define FIRST_LINE "assay spool 1\n"
#define SUFFIX ".spool"

/* Before each record: its size, then the beginning of the SHA-256 of it, in hexadecimal digits. */
struct head {
    uint64_t size;
    char sum[16];
};
static_assert(sizeof(struct head) == 24, "the head is written as it is");

char *spool_folder(void)
{
    const char *own = getenv("ASSAY_SPOOL"), *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    if (own && *own)
        return memory_strdup(own);
    if (state && state[0] == '/')
        return memory_printf("%s/assay/spool", state);
    return home && home[0] == '/' ? memory_printf("%s/.local/state/assay/spool", home) : NULL;
}

/* With all folders above it. */
static int make_folder(const char *path, struct error *err)
{
    CLEANUP(memory_freep) char *part = memory_strdup(path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(part, 0777); /* the last one tells */
        *slash = '/';
    }
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_errno(err, -errno, "%s", path);
    return 0;
}

static void checksum(const void *bytes, size_t size, char sum[static 16])
{
    char hex[65];
    struct sha256 h;
    sha256_start(&h);
    sha256_add(&h, bytes, size);
    sha256_end(&h, hex);
    memcpy(sum, hex, 16);
}

/* Files of one place begin alike, so that others need not be opened. */
static void prefix_of(const char *place, char prefix[static 18])
{
    checksum(place, strlen(place), prefix);
    prefix[16] = '-';
    prefix[17] = '\0';
}

int spool_create(struct spool *spool, const char *place, struct error *err)
{
    CLEANUP(memory_freep) char *folder = spool_folder();
    if (!folder)
        return error_set(err, -ENOENT, "there is no directory for it: set ASSAY_SPOOL or HOME");
    int r = make_folder(folder, err);
    if (r < 0)
        return r;
    char prefix[18];
    prefix_of(place, prefix);
    char *path = memory_printf("%s/%sXXXXXX" SUFFIX, folder, prefix);
    int fd = mkostemps(path, (int)strlen(SUFFIX), O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) {
        r = error_errno(err, -errno, "%s", path);
        fd_closep(&fd);
        free(path);
        return r;
    }
    CLEANUP(strbuf_done) struct strbuf start = {0};
    strbuf_printf(&start, FIRST_LINE "%s\n", place);
    r = fd_write_all(fd, start.data, start.length);
    CLEANUP(fd_closep) int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0 && (fsync(fd) < 0 || folder_fd < 0 || fsync(folder_fd) < 0))
        r = -errno;
    *spool = (struct spool){.fd = fd, .path = path};
    if (r < 0) {
        error_errno(err, r, "%s", path);
        spool_remove(spool);
    }
    return r;
}

int spool_create_at(struct spool *spool, const char *path, const char *uuid, struct error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return error_errno(err, -errno, "%s", path);
    CLEANUP(strbuf_done) struct strbuf start = {0};
    strbuf_printf(&start, FIRST_LINE "%s\n", uuid);
    int r = fd_write_all(fd, start.data, start.length);
    if (r < 0) {
        close(fd);
        return error_errno(err, r, "%s", path);
    }
    *spool = (struct spool){.fd = fd, .path = memory_strdup(path)};
    return 0;
}

int spool_open(struct spool *spool, const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, -errno, "%s", path);
    *spool = (struct spool){.fd = fd, .path = memory_strdup(path)};
    return 0;
}

int spool_take(struct spool *spool, const char *path, struct error *err)
{
    CLEANUP(fd_closep) int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    if (fd < 0)
        return error_errno(err, -errno, "%s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, -EBUSY, "%s: its writer is still running", path);
    if (fstat(fd, &st) < 0 || st.st_nlink == 0) /* another was quicker */
        return error_set(err, -ENOENT, "%s: delivered in the meantime", path);
    *spool = (struct spool){.fd = fd, .path = memory_strdup(path)};
    fd = -1;
    return 0;
}

int spool_add(struct spool *spool, const struct strbuf *record, struct error *err)
{
    struct head head = {.size = record->length};
    checksum(record->data, record->length, head.sum);
    CLEANUP(strbuf_done) struct strbuf bytes = {0};
    strbuf_append(&bytes, (const char *)&head, sizeof(head));
    strbuf_append(&bytes, record->data, record->length);
    off_t before = lseek(spool->fd, 0, SEEK_END);
    int r = fd_write_all(spool->fd, bytes.data, bytes.length);
    if (r == 0 && fdatasync(spool->fd) < 0)
        r = -errno;
    if (r < 0 && ftruncate(spool->fd, before) < 0) /* half a record would hide later ones */
        return error_errno(err, r, "%s, which is now damaged at its end", spool->path);
    return r < 0 ? error_errno(err, r, "%s", spool->path) : 0;
}

int spool_read(struct spool *spool, struct strbuf *ret_content, size_t *ret_position,
               struct error *err)
{
    char block[65536];
    off_t at = 0;
    ssize_t got;
    while ((got = pread(spool->fd, block, sizeof(block), at)) > 0) {
        strbuf_append(ret_content, block, (size_t)got);
        at += got;
    }
    if (got < 0)
        return error_errno(err, -errno, "%s", spool->path);
    const char *text = strbuf_text(ret_content), *end = NULL;
    if (str_has_prefix(text, FIRST_LINE))
        end = strchr(text + strlen(FIRST_LINE), '\n');
    if (!end && ret_content->length)
        return error_set(err, -EINVAL, "%s: not a spool file of this version of assay",
                         spool->path);
    *ret_position = end ? (size_t)(end + 1 - text) : 0;
    return 0;
}

/* Whether a whole record begins there. */
static bool is_record(const char *bytes, size_t left)
{
    struct head head;
    char sum[16];
    if (left < sizeof(head))
        return false;
    memcpy(&head, bytes, sizeof(head));
    if (head.size > left - sizeof(head))
        return false;
    checksum(bytes + sizeof(head), head.size, sum);
    return memcmp(sum, head.sum, sizeof(sum)) == 0;
}

/* What is no record at the end of the file is one that its writer did not finish; but where another
 * one follows, the file is damaged. */
static int end_or_damage(const struct strbuf *content, size_t position, struct error *err)
{
    for (size_t at = position + 1; at < content->length; at++)
        if (is_record(content->data + at, content->length - at))
            return error_set(err, -EBADMSG, "damaged at byte %zu", position);
    return 0;
}

int spool_next(const struct strbuf *content, size_t *position, struct strbuf *ret_record,
               struct error *err)
{
    struct head head;
    const char *bytes = content->data + *position;
    if (*position >= content->length)
        return 0;
    if (!is_record(bytes, content->length - *position))
        return end_or_damage(content, *position, err);
    memcpy(&head, bytes, sizeof(head));
    strbuf_clear(ret_record);
    strbuf_append(ret_record, bytes + sizeof(head), head.size);
    *position += sizeof(head) + head.size;
    return 1;
}

void spool_remove(struct spool *spool)
{
    unlink(spool->path);
    spool_close(spool);
}

void spool_close(struct spool *spool)
{
    fd_closep(&spool->fd);
    free(spool->path);
    *spool = (struct spool){.fd = -1};
}

int spool_list(const char *place, char ***ret_paths, size_t *ret_count, struct error *err)
{
    CLEANUP(memory_freep) char *folder = spool_folder();
    char prefix[18], **paths = NULL;
    size_t count = 0, capacity = 0;
    DIR *directory = folder ? opendir(folder) : NULL;
    if (folder && !directory && errno != ENOENT)
        return error_errno(err, -errno, "%s", folder);
    prefix_of(place, prefix);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (str_has_prefix(entry->d_name, prefix) && str_has_suffix(entry->d_name, SUFFIX))
            ARRAY_PUSH(paths, count, capacity) = memory_printf("%s/%s", folder, entry->d_name);
    if (directory)
        closedir(directory);
    *ret_paths = paths;
    *ret_count = count;
    return 0;
}

/* ---- records ---- */

void record_put_i64(struct strbuf *record, int64_t value)
{
    strbuf_append(record, (const char *)&value, sizeof(value));
}

void record_put_double(struct strbuf *record, double value)
{
    strbuf_append(record, (const char *)&value, sizeof(value));
}

void record_put_bytes(struct strbuf *record, const void *bytes, size_t size)
{
    record_put_i64(record, bytes ? (int64_t)size : -1);
    if (bytes)
        strbuf_append(record, bytes, size);
}

void record_put_text(struct strbuf *record, const char *text)
{
    record_put_bytes(record, text, text ? strlen(text) + 1 : 0);
}

static const char *take(struct record_reader *r, size_t size)
{
    if (r->bad || size > (size_t)(r->end - r->at)) {
        r->bad = true;
        return NULL;
    }
    r->at += size;
    return r->at - size;
}

int64_t record_i64(struct record_reader *r)
{
    int64_t value = 0;
    const char *bytes = take(r, sizeof(value));
    if (bytes)
        memcpy(&value, bytes, sizeof(value));
    return value;
}

double record_double(struct record_reader *r)
{
    double value = 0;
    const char *bytes = take(r, sizeof(value));
    if (bytes)
        memcpy(&value, bytes, sizeof(value));
    return value;
}

const void *record_bytes(struct record_reader *r, size_t *ret_size)
{
    int64_t size = record_i64(r);
    *ret_size = 0;
    if (size < 0)
        return NULL;
    const char *bytes = take(r, (size_t)size);
    if (bytes)
        *ret_size = (size_t)size;
    return bytes;
}

const char *record_text(struct record_reader *r)
{
    size_t size;
    const char *text = record_bytes(r, &size);
    if (text && (size == 0 || text[size - 1] != '\0')) {
        r->bad = true;
        return NULL;
    }
    return text;
}

size_t record_count(struct record_reader *r, size_t least_bytes)
{
    int64_t count = record_i64(r);
    if (count < 0 || (uint64_t)count > (uint64_t)(r->end - r->at) / least_bytes) {
        r->bad = true;
        return 0;
    }
    return (size_t)count;
}

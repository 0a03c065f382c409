/* SPDX-License-Identifier: MIT */
/* Files: see fd.h. */
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define FILE_BYTES_MAX (64u << 20)

int file_read_at(int dir_fd, const char *path, struct strbuf *out, struct error *err)
{
    CLEANUP(fd_closep) int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, -errno, "%s", path);
    char block[65536];
    for (;;) {
        ssize_t got = read(fd, block, sizeof(block));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_errno(err, -errno, "reading %s", path);
        if (got == 0)
            break;
        if (out->length + (size_t)got > FILE_BYTES_MAX)
            return error_set(err, -EFBIG, "%s is larger than %u MiB", path, FILE_BYTES_MAX >> 20);
        strbuf_append(out, block, (size_t)got);
    }
    strbuf_append(out, "", 0);
    return 0;
}

const char *temporary_folder(void)
{
    const char *given = getenv("TMPDIR");
    return given && *given && access(given, W_OK | X_OK) == 0 ? given : "/tmp";
}

int file_read(const char *path, struct strbuf *out, struct error *err)
{
    return file_read_at(AT_FDCWD, path, out, err);
}

bool file_read_line(const char *path, char *line, size_t size)
{
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || size == 0)
        return false;
    ssize_t got = read(fd, line, size - 1);
    if (got < 0)
        return false;
    line[got] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return true;
}

bool file_read_i64(const char *path, int64_t *ret_value)
{
    char line[64], *end;
    if (!file_read_line(path, line, sizeof(line)))
        return false;
    errno = 0;
    long long value = strtoll(line, &end, 10);
    if (end == line || errno)
        return false;
    *ret_value = value;
    return true;
}

int mount_privately(const char *kind)
{
    CLEANUP(fd_closep) int context = (int)syscall(SYS_fsopen, kind, FSOPEN_CLOEXEC);
    if (context < 0)
        return -errno;
    if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    int fd = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

int open_trace_events(void)
{
    static const char *const places[] = {"/sys/kernel/tracing/events",
                                         "/sys/kernel/debug/tracing/events"};
    int code = -ENOENT;
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        int fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
            return fd;
        if (errno == EACCES)
            code = -EACCES;
    }
    CLEANUP(fd_closep) int root = mount_privately("tracefs");
    if (root >= 0) {
        int fd = openat(root, "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd >= 0 ? fd : -errno;
    }
    return root == -EPERM ? -EACCES : code;
}

bool read_trace_event_id(const char *event, uint64_t *ret_id)
{
    CLEANUP(fd_closep) int events = open_trace_events();
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CLEANUP(memory_freep) char *path = memory_printf("%s/id", event);
    struct error ignored;
    if (events < 0 || file_read_at(events, path, &text, &ignored) < 0)
        return false;
    *ret_id = strtoull(strbuf_text(&text), NULL, 10);
    return *ret_id > 0;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    remove(path);
    return 0;
}

void file_remove_tree(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int fd_write_all(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length) {
        ssize_t put = write(fd, at, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        at += put;
        length -= (size_t)put;
    }
    return 0;
}

static int explain_write(const struct outfile *o, int code, struct error *err)
{
    if (code == -ENOSPC || code == -EDQUOT)
        return error_set(
            err, code,
            "writing %s: the disk is full; free some space or choose another file with -o",
            o->path);
    if (code == -EROFS)
        return error_set(err, code,
                         "writing %s: the file system is read-only; choose another file with -o",
                         o->path);
    return error_errno(err, code, "writing %s", o->path);
}

/* The standard stream that is this very file, -1 for none: written by another way, the report and
 * what the command writes there would overwrite each other. */
static int same_stream(const struct stat *file)
{
    struct stat st;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino)
            return fd;
    return -1;
}

/* Where a link leads to, also when nothing is there yet.  The caller frees it. */
static char *follow_links(const char *path)
{
    char *place = realpath(path, NULL);
    if (place)
        return place;
    place = memory_strdup(path);
    for (int i = 0; i < 8; i++) {
        char target[PATH_MAX];
        ssize_t length = readlink(place, target, sizeof(target) - 1);
        if (length < 0)
            break;
        target[length] = '\0';
        const char *slash = strrchr(place, '/');
        char *next = target[0] == '/' || !slash
                         ? memory_strdup(target)
                         : memory_printf("%.*s/%s", (int)(slash - place), place, target);
        free(place);
        place = next;
    }
    return place;
}

/* A file that is there and must stay the same file: it has other names or another owner. */
static bool must_stay(const struct stat *st)
{
    return st->st_nlink > 1 || st->st_uid != geteuid();
}

/* Opens a file of its own beside the place, or the file itself where it has to be that one or
 * where the folder takes no new file.  Returns the descriptor or a negative errno. */
static int open_regular(struct outfile *o, const struct stat *st)
{
    char *place = follow_links(o->path);
    free(o->path);
    o->path = place;
    if (st && access(o->path, W_OK) < 0)
        return -errno;
    if (!st || !must_stay(st)) {
        o->temporary_path = memory_printf("%s.XXXXXX", o->path);
        int fd = mkostemp(o->temporary_path, O_CLOEXEC);
        if (fd >= 0)
            return fd;
        int code = -errno;
        free(o->temporary_path);
        o->temporary_path = NULL;
        if (!st || (code != -EACCES && code != -EPERM))
            return code;
    }
    o->in_place = true;
    int fd = open(o->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

static int open_output(struct outfile *o)
{
    struct stat st;
    bool is_there = stat(o->path, &st) == 0;
    int stream = str_eq(o->path, "-") ? STDOUT_FILENO : is_there ? same_stream(&st) : -1;
    if (stream < 0 && (!is_there || S_ISREG(st.st_mode)))
        return open_regular(o, is_there ? &st : NULL);
    int fd = stream >= 0 ? fcntl(stream, F_DUPFD_CLOEXEC, 3)
                         : open(o->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

int outfile_open(struct outfile *o, const char *path, struct error *err)
{
    *o = (struct outfile){.fd = -1, .path = memory_strdup(path)};
    int r = open_output(o);
    if (r < 0) {
        explain_write(o, r, err);
        outfile_done(o);
        return r;
    }
    o->fd = r;
    return 0;
}

int outfile_write(struct outfile *o, const void *bytes, size_t length, struct error *err)
{
    /* What a file held that is written in place is kept until there is something new. */
    if (o->in_place && ftruncate(o->fd, 0) < 0)
        return explain_write(o, -errno, err);
    o->in_place = false;
    int r = fd_write_all(o->fd, bytes, length);
    return r < 0 ? explain_write(o, r, err) : 0;
}

int outfile_commit(struct outfile *o, struct error *err)
{
    if (!o->temporary_path)
        return 0;
    mode_t mask = umask(0);
    umask(mask);
    struct stat st;
    mode_t mode = stat(o->path, &st) == 0 ? st.st_mode & 0777 : 0666 & ~mask;
    if (fchmod(o->fd, mode) < 0 || fsync(o->fd) < 0 || rename(o->temporary_path, o->path) < 0)
        return explain_write(o, -errno, err);
    free(o->temporary_path);
    o->temporary_path = NULL;
    return 0;
}

void outfile_done(struct outfile *o)
{
    if (o->temporary_path)
        unlink(o->temporary_path);
    free(o->temporary_path);
    free(o->path);
    fd_closep(&o->fd);
    *o = (struct outfile){.fd = -1};
}

int file_write(const char *path, const void *bytes, size_t length, struct error *err)
{
    CLEANUP(outfile_done) struct outfile o;
    int r = outfile_open(&o, path, err);
    if (r < 0)
        return r;
    r = outfile_write(&o, bytes, length, err);
    if (r < 0)
        return r;
    return outfile_commit(&o, err);
}

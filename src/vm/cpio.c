/* SPDX-License-Identifier: MIT */
/* See cpio.h. */
#include "vm/cpio.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <sys/stat.h>

enum { PATH_LENGTH_MAX = 4000 };

static void pad(struct cpio *c)
{
    strbuf_pad(&c->bytes, '\0', -c->bytes.length & 3);
}

/* Thirteen numbers of eight hexadecimal digits, the name with its zero, the content; name and
 * content each padded to four bytes. */
static void append(struct cpio *c, const char *name, unsigned mode, const void *bytes,
                   size_t length)
{
    bool is_trailer = mode == 0;
    const uint32_t fields[13] = {
        [0] = is_trailer ? 0 : ++c->inode,
        [1] = mode,
        [4] = S_ISDIR(mode) ? 2 : 1, /* links */
        [6] = (uint32_t)length,
        [11] = (uint32_t)strlen(name) + 1,
    };
    strbuf_puts(&c->bytes, "070701");
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++)
        strbuf_printf(&c->bytes, "%08x", fields[i]);
    strbuf_append(&c->bytes, name, strlen(name) + 1);
    pad(c);
    if (length)
        strbuf_append(&c->bytes, bytes, length);
    pad(c);
}

/* Absolute, without empty, "." and ".." parts. */
static bool is_plain(const char *path)
{
    if (path[0] != '/' || !path[1] || strlen(path) > PATH_LENGTH_MAX)
        return false;
    for (const char *part = path + 1;; part++) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.') ||
            (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += length;
        if (!*part)
            return true;
    }
}

static int check_path(const char *path, struct error *err)
{
    return is_plain(path) ? 0
                          : error_set(err, -EINVAL,
                                      "'%s' is not a valid path in the machine; it must start with "
                                      "/ and contain no empty part, . or ..",
                                      path);
}

static bool has_folder(const struct cpio *c, const char *path)
{
    for (size_t i = 0; i < c->folder_count; i++)
        if (str_eq(c->folders[i], path))
            return true;
    return false;
}

int cpio_folder(struct cpio *c, const char *path, struct error *err)
{
    int r = check_path(path, err);
    for (size_t end = 1; r == 0 && path[end - 1]; end++) {
        end += strcspn(path + end, "/");
        char *part = memory_strndup(path, end);
        if (has_folder(c, part)) {
            free(part);
        } else {
            ARRAY_PUSH(c->folders, c->folder_count, c->folder_capacity) = part;
            append(c, part + 1, S_IFDIR | 0755, NULL, 0);
        }
        if (!path[end])
            break;
    }
    return r;
}

/* A file or a link, and the folders above it. */
static int add(struct cpio *c, const char *path, unsigned mode, const void *bytes, size_t length,
               struct error *err)
{
    int r = check_path(path, err);
    if (r == 0 && length > UINT32_MAX)
        r = error_set(err, -EFBIG, "%s is too big for the machine's file system", path);
    const char *slash = r == 0 ? strrchr(path, '/') : NULL;
    if (slash && slash > path) {
        CLEANUP(memory_freep) char *folder = memory_strndup(path, (size_t)(slash - path));
        r = cpio_folder(c, folder, err);
    }
    if (r == 0)
        append(c, path + 1, mode, bytes, length);
    return r;
}

int cpio_file(struct cpio *c, const char *path, unsigned mode, const void *bytes, size_t length,
              struct error *err)
{
    return add(c, path, S_IFREG | (mode & 07777), bytes, length, err);
}

int cpio_link(struct cpio *c, const char *path, const char *target, struct error *err)
{
    return add(c, path, S_IFLNK | 0777, target, strlen(target), err);
}

int cpio_copy(struct cpio *c, const char *path, unsigned mode, const char *source,
              struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf content = {0};
    int r = file_read(source, &content, err);
    return r < 0 ? r : cpio_file(c, path, mode, content.data, content.length, err);
}

void cpio_finish(struct cpio *c)
{
    append(c, "TRAILER!!!", 0, NULL, 0);
}

void cpio_done(struct cpio *c)
{
    strbuf_done(&c->bytes);
    for (size_t i = 0; i < c->folder_count; i++)
        free(c->folders[i]);
    free(c->folders);
    *c = (struct cpio){0};
}

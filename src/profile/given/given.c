/* SPDX-License-Identifier: MIT */
/* See given.h. */
#include "profile/given/given.h"
#include "base/fd.h"
#include "base/memory.h"
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#if HAVE_ZLIB
#include <zlib.h>
#endif

enum { HEAD_BYTES = 8192, UNPACKED_MAX = 1 << 29, PROTO_SAMPLE_TYPE = 1 << 3 | 2 };

static bool is_gzip(const char *bytes, size_t length)
{
    return length > 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

/* The first line is a stack with its count behind the last blank. */
static bool is_folded(const char *bytes, size_t length)
{
    bool is_marked = length > 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0; /* as UTF-8 */
    size_t start = is_marked ? 3 : 0, end = start, at;
    while (end < length && bytes[end] != '\n') {
        if (iscntrl((unsigned char)bytes[end]) && bytes[end] != '\t' && bytes[end] != '\r')
            return false;
        end++;
    }
    while (end > start && bytes[end - 1] == '\r')
        end--;
    for (at = end; at > start && isdigit((unsigned char)bytes[at - 1]); at--)
        ;
    /* Not JSON, HTML or XML, which may end so as well. */
    return at > start + 1 && at < end && bytes[at - 1] == ' ' && !strchr("{[<#", bytes[start]);
}

/* A profile.proto begins with the types of its values: small messages. */
static bool is_proto(const char *bytes, size_t length)
{
    return length > 4 && bytes[0] == PROTO_SAMPLE_TYPE && bytes[1] > 0 && bytes[1] < 32 &&
           (bytes[2] == 1 << 3 || bytes[2] == 2 << 3);
}

enum given_kind given_kind_of(const char *path)
{
    char head[HEAD_BYTES];
    struct stat st;
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return GIVEN_NONE;
    ssize_t got = read(fd, head, sizeof(head));
    size_t length = got > 0 ? (size_t)got : 0;
    if (is_gzip(head, length) || is_proto(head, length))
        return GIVEN_PPROF;
    return is_folded(head, length) ? GIVEN_FOLDED : GIVEN_NONE;
}

#if HAVE_ZLIB
static int unpack(const char *bytes, size_t length, struct strbuf *out, struct error *err)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)bytes, .avail_in = (uInt)length};
    unsigned char chunk[64 << 10];
    int r = Z_OK;
    if (length > UINT32_MAX || inflateInit2(&z, 15 + 16) != Z_OK)
        return error_set(err, -EFBIG, "too large to be unpacked");
    while (r == Z_OK && out->length <= UNPACKED_MAX) {
        z.next_out = chunk;
        z.avail_out = sizeof(chunk);
        r = inflate(&z, Z_NO_FLUSH);
        strbuf_append(out, (char *)chunk, sizeof(chunk) - z.avail_out);
    }
    size_t at = length - z.avail_in;
    inflateEnd(&z);
    if (r == Z_STREAM_END)
        return 0;
    if (r == Z_OK)
        return error_set(err, -EFBIG, "more than %d MiB when unpacked", UNPACKED_MAX >> 20);
    if (r == Z_BUF_ERROR)
        return error_set(err, -EINVAL, "the file is cut short: it ends within packed data");
    return error_set(err, -EINVAL, "byte %zu: the packed data is damaged", at);
}
#else
static int unpack(const char *bytes, size_t length, struct strbuf *out, struct error *err)
{
    (void)bytes, (void)length, (void)out;
    return error_set(err, -ENOTSUP,
                     "assay was built without zlib and cannot unpack this; use gzip -d first");
}
#endif

static int check(const struct given *g, struct error *err)
{
    if (!g->sample_count)
        return error_set(err, -ENODATA, "there are no samples in it");
    return 0;
}

int given_read(struct given *ret_given, enum given_kind kind, const char *bytes, size_t length,
               struct error *err)
{
    struct given g = {0};
    CLEANUP(strbuf_done) struct strbuf unpacked = {0};
    int r = 0;
    if (is_gzip(bytes, length)) {
        r = unpack(bytes, length, &unpacked, err);
        bytes = strbuf_text(&unpacked);
        length = unpacked.length;
        kind = is_folded(bytes, length) ? GIVEN_FOLDED : GIVEN_PPROF;
    }
    if (r == 0)
        r = kind == GIVEN_FOLDED ? given_read_folded(&g, bytes, length, err)
                                 : given_read_pprof(&g, bytes, length, err);
    if (r == 0)
        r = check(&g, err);
    if (r < 0)
        given_done(&g);
    else
        *ret_given = g;
    return r;
}

void given_done(struct given *g)
{
    free(g->events);
    free(g->frames);
    free(g->locations);
    free(g->chain);
    free(g->samples);
    free(g->values);
    arena_done(&g->arena);
    *g = (struct given){0};
}

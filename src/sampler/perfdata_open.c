/* SPDX-License-Identifier: MIT */
/* Opening perf.data: the header, the attributes, the files of a folder: see perfdata.h. */
#include "base/fd.h"
#include "base/memory.h"
#include "sampler/perfdata_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#define QUEUE_BYTES_DEFAULT ((size_t)256 << 20)
#define QUEUE_BYTES_MIN (4 * CHUNK_BYTES)

int perfdata_pread(int fd, void *bytes, size_t size, uint64_t offset)
{
    char *at = bytes;
    if (offset > INT64_MAX || size > INT64_MAX - offset)
        return -ENODATA;
    while (size) {
        ssize_t got = pread(fd, at, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            return -ENODATA;
        at += got;
        size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return 0;
}

/* Reads exactly that much from a pipe or file at its position. */
static int read_exactly(int fd, void *bytes, size_t size)
{
    char *at = bytes;
    while (size) {
        ssize_t got = read(fd, at, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            return -ENODATA;
        at += got;
        size -= (size_t)got;
    }
    return 0;
}

static int check_magic(const struct perfdata *p, uint64_t magic, struct error *err)
{
    if (magic == PERFDATA_MAGIC)
        return 0;
    if (magic == PERFDATA_MAGIC_SWAPPED)
        return error_set(
            err, -EINVAL,
            "%s was recorded on a big-endian machine, which assay cannot read; 'perf script' can",
            p->name);
    if (magic == PERFDATA_MAGIC_OLD)
        return error_set(err, -EINVAL,
                         "%s has the format used before Linux 2.6.36, which assay cannot read",
                         p->name);
    return error_set(err, -EINVAL, "%s is not a perf.data file: it does not start with PERFILE2",
                     p->name);
}

/* The attributes of one event and its ids; ids_left bounds what all events may have together. */
static int read_attr(struct perfdata *p, int fd, const unsigned char *bytes, size_t size,
                     uint64_t *ids_left, struct error *err)
{
    struct perfdata_section ids;
    size_t attr_size = size - sizeof(ids);
    uint32_t own_size;
    memcpy(&ids, bytes + attr_size, sizeof(ids));
    memcpy(&own_size, bytes + offsetof(struct perf_event_attr, size), sizeof(own_size));
    if (own_size >= PERFDATA_ATTR_SIZE_MIN && own_size < attr_size)
        attr_size = own_size;
    struct perfdata_event_entry *entry = events_add(&p->events, bytes, attr_size);
    if (!ids.size)
        return 0;
    if (ids.size % 8 || ids.size / 8 > *ids_left || ids.offset > p->file_size ||
        ids.size > p->file_size - ids.offset) {
        perfdata_complain(p, "the IDs of event %zu are outside the file", entry->event.index);
        return 0;
    }
    *ids_left -= ids.size / 8;
    CLEANUP(memory_freep) uint64_t *list = memory_alloc(ids.size);
    int r = perfdata_pread(fd, list, ids.size, ids.offset);
    if (r < 0)
        return error_errno(err, r, "reading %s", p->name);
    events_add_ids(&p->events, entry, list, ids.size / 8);
    return 0;
}

static int read_attrs(struct perfdata *p, int fd, const struct perfdata_file_header *header,
                      struct error *err)
{
    const struct perfdata_section *attrs = &header->attrs;
    uint64_t size = header->attr_size, ids_left = p->file_size / 8;
    if (size < PERFDATA_ATTR_SIZE_MIN + sizeof(*attrs) || size > 4096)
        return error_set(err, -EINVAL, "%s is damaged: its attributes have the size %" PRIu64,
                         p->name, size);
    if (attrs->offset > p->file_size || attrs->size > p->file_size - attrs->offset)
        return error_set(err, -EINVAL,
                         "%s is damaged or truncated: its attributes are outside the file",
                         p->name);
    unsigned char bytes[4096];
    for (uint64_t i = 0; i < attrs->size / size; i++) {
        int r = perfdata_pread(fd, bytes, size, attrs->offset + i * size);
        if (r < 0)
            return error_errno(err, r, "reading %s", p->name);
        r = read_attr(p, fd, bytes, size, &ids_left, err);
        if (r < 0)
            return r;
    }
    if (!p->events.count)
        return error_set(err, -EINVAL, "%s contains no events; did the recording fail to start?",
                         p->name);
    return 0;
}

static struct source *add_source(struct perfdata *p, int fd, bool owns_fd)
{
    p->sources = memory_resize(p->sources, p->source_count + 1, sizeof(*p->sources));
    struct source *s = &p->sources[p->source_count++];
    *s = (struct source){.fd = fd, .owns_fd = owns_fd};
    s->window.pool = s->unpacked.pool = &p->pool;
    return s;
}

/*
 * Where the data ends: where the header says, or at the end of a file that was cut short.  perf
 * leaves the size 0 until the end of a recording; assay puts it right once a second, but has no
 * features before the end.
 */
static void set_limits(struct perfdata *p, struct source *s,
                       const struct perfdata_file_header *header)
{
    const struct perfdata_section *data = &header->data;
    const uint64_t *f = header->features;
    uint64_t there = p->file_size - data->offset;
    s->is_seekable = true;
    s->offset = s->window.start_offset = data->offset;
    s->limit = p->file_size;
    p->info.is_complete = data->size && (f[0] | f[1] | f[2] | f[3]);
    if (data->size > there) {
        p->losses.bytes_missing = data->size - there;
        perfdata_complain(p, "the file is truncated: %" PRIu64 " of %" PRIu64 " bytes of data",
                          there, data->size);
    } else if (!p->info.is_complete) {
        perfdata_complain(p, "the recording was not finished: its header is incomplete");
    } else {
        s->limit = data->offset + data->size;
    }
    p->bytes_total += s->limit - s->offset;
}

static int open_file(struct perfdata *p, int fd, bool owns_fd, struct error *err)
{
    struct perfdata_file_header header;
    struct source *s = add_source(p, fd, owns_fd);
    int r = perfdata_pread(fd, &header, sizeof(header), 0);
    if (r < 0)
        return error_set(err, r, "%s is too short for a perf.data file", p->name);
    r = read_attrs(p, fd, &header, err);
    if (r < 0)
        return r;
    if (header.data.offset > p->file_size || header.data.offset < sizeof(header.magic))
        return error_set(err, -EINVAL, "%s is damaged: its data is outside the file", p->name);
    if (header.data.size > INT64_MAX)
        return error_set(err, -EINVAL, "%s is damaged: the size of its data is invalid", p->name);
    set_limits(p, s, &header);
    if (!p->info.is_complete || p->losses.bytes_missing)
        return 0; /* the features stand behind the data */
    return features_read_table(p, fd, &header, err);
}

static int open_descriptor(struct perfdata *p, int fd, bool owns_fd, struct error *err)
{
    struct stat st;
    uint64_t head[2];
    if (fstat(fd, &st) < 0)
        return error_errno(err, -errno, "%s", p->name);
    p->info.is_pipe = !S_ISREG(st.st_mode);
    p->file_size = p->info.is_pipe ? 0 : (uint64_t)st.st_size;
    if (!p->info.is_pipe && !st.st_size)
        return error_set(err, -ENODATA, "%s is empty: did the recording fail?", p->name);
    int r = p->info.is_pipe ? read_exactly(fd, head, sizeof(head))
                            : perfdata_pread(fd, head, sizeof(head), 0);
    if (r == -ENODATA)
        return error_set(err, r, "%s is too short for a perf.data file", p->name);
    if (r < 0)
        return error_errno(err, r, "reading %s", p->name);
    r = check_magic(p, head[0], err);
    if (r < 0)
        return r;
    if (head[1] != PERFDATA_PIPE_HEADER_SIZE) {
        if (p->info.is_pipe)
            return error_set(
                err, -ESPIPE,
                "%s is a perf.data file read from a pipe; name the file, or record with '-o -'",
                p->name);
        return open_file(p, fd, owns_fd, err);
    }
    /* A pipe's stream, perhaps kept in a file. */
    struct source *s = add_source(p, fd, owns_fd);
    s->window.start_offset = PERFDATA_PIPE_HEADER_SIZE;
    s->is_seekable = !p->info.is_pipe;
    s->offset = PERFDATA_PIPE_HEADER_SIZE;
    s->limit = p->file_size;
    p->bytes_total = s->is_seekable ? s->limit - s->offset : 0;
    p->info.is_pipe = true;
    p->info.is_complete = true;
    return 0;
}

/* perf record --threads makes a folder: "data" with the header, "data.0" and so on with records. */
static int open_folder(struct perfdata *p, int folder_fd, struct error *err)
{
    int fd = openat(folder_fd, "data", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, -errno, "%s is a directory, but not one of perf's: data", p->name);
    int r = open_descriptor(p, fd, true, err);
    if (r < 0) {
        if (!p->source_count)
            close(fd);
        return r;
    }
    for (unsigned i = 0;; i++) {
        char name[32];
        struct stat st;
        snprintf(name, sizeof(name), "data.%u", i);
        fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            return 0;
        if (fd < 0)
            return error_errno(err, -errno, "%s/%s", p->name, name);
        struct source *s = add_source(p, fd, true);
        if (fstat(fd, &st) < 0)
            return error_errno(err, -errno, "%s/%s", p->name, name);
        s->is_seekable = true;
        s->limit = st.st_size > 0 ? (uint64_t)st.st_size : 0;
        p->bytes_total += s->limit;
    }
}

static struct perfdata *reader_new(const char *name, const struct perfdata_options *options)
{
    struct perfdata *p = memory_zalloc(1, sizeof(*p));
    p->name = memory_strdup(name);
    if (options)
        p->options = *options;
    if (!p->options.queue_bytes_max)
        p->options.queue_bytes_max = QUEUE_BYTES_DEFAULT;
    if (p->options.queue_bytes_max < QUEUE_BYTES_MIN)
        p->options.queue_bytes_max = QUEUE_BYTES_MIN;
    return p;
}

int perfdata_open_fd(struct perfdata **ret_reader, int fd, const char *name,
                     const struct perfdata_options *options, struct error *err)
{
    struct perfdata *p = reader_new(name, options);
    int r = open_descriptor(p, fd, false, err);
    if (r < 0) {
        perfdata_free(p);
        return r;
    }
    *ret_reader = p;
    return 0;
}

int perfdata_open(struct perfdata **ret_reader, const char *path,
                  const struct perfdata_options *options, struct error *err)
{
    if (str_eq(path, "-"))
        return perfdata_open_fd(ret_reader, STDIN_FILENO, "standard input", options, err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return error_set(err, -ENOENT, "%s: no such file; 'assay record' creates one", path);
    if (fd < 0)
        return error_errno(err, -errno, "%s", path);
    struct stat st;
    struct perfdata *p = reader_new(path, options);
    bool is_folder = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    int r = is_folder ? open_folder(p, fd, err) : open_descriptor(p, fd, true, err);
    if (is_folder || (r < 0 && !p->source_count))
        close(fd);
    if (r < 0) {
        perfdata_free(p);
        return r;
    }
    *ret_reader = p;
    return 0;
}

void perfdata_free(struct perfdata *p)
{
    if (!p)
        return;
    if (p->pinned)
        chunk_unpin(&p->pool, p->pinned);
    for (size_t i = 0; i < p->source_count; i++) {
        struct source *s = &p->sources[i];
        for (size_t k = s->queue.given; k < s->queue.count; k++)
            chunk_unpin(&p->pool, s->queue.entries[k].record);
        queue_done(&s->queue);
        window_done(&s->window);
        window_done(&s->unpacked);
        unpack_done(s);
        if (s->owns_fd)
            close(s->fd);
    }
    chunk_pool_done(&p->pool);
    features_done(p);
    group_done(&p->group);
    events_done(&p->events);
    arena_done(&p->arena);
    strbuf_done(&p->trouble);
    free(p->sources);
    free(p->name);
    free(p);
}

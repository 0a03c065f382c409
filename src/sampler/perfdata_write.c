/* SPDX-License-Identifier: MIT */
/* Writing perf.data: see perfdata_write.h. */
#include "sampler/perfdata_write.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define NAME_ALIGN 64 /* perf pads the strings of its headers to this */
#define FEATURES_ROOM (32u << 10)

static int explain(const struct perfdata_writer *w, int code, struct error *err)
{
    if (code == -ENOSPC || code == -EDQUOT)
        return error_set(
            err, code,
            "writing %s: the disk is full; free some space or choose another file with -o",
            w->path);
    if (code == -EFBIG)
        return error_set(err, code, "writing %s: the file reached the file size limit (ulimit -f)",
                         w->path);
    if (code == -EPIPE)
        return error_set(err, code, "writing %s: the reader of the pipe is gone", w->path);
    return error_errno(err, code, "writing %s", w->path);
}

void perfdata_put_u32(struct strbuf *b, uint32_t value)
{
    strbuf_append(b, (const char *)&value, sizeof(value));
}

void perfdata_put_u64(struct strbuf *b, uint64_t value)
{
    strbuf_append(b, (const char *)&value, sizeof(value));
}

static size_t padded_size(const char *text)
{
    return (strlen(text) + NAME_ALIGN) / NAME_ALIGN * NAME_ALIGN;
}

void perfdata_put_string(struct strbuf *b, const char *text)
{
    size_t length = strlen(text), padded = padded_size(text);
    perfdata_put_u32(b, (uint32_t)padded);
    strbuf_append(b, text, length);
    strbuf_pad(b, '\0', padded - length);
}

void perfdata_put_build_id(struct strbuf *b, uint16_t cpumode, const uint8_t *id, size_t id_size,
                           const char *filename)
{
    size_t length = strlen(filename), padded = padded_size(filename);
    struct perfdata_build_id_record record = {
        .header = {.type = PERFDATA_HEADER_BUILD_ID,
                   .misc = cpumode | PERFDATA_MISC_BUILD_ID_SIZE,
                   .size = (uint16_t)(sizeof(record) + padded)},
        .pid = -1,
        .size = (uint8_t)id_size,
    };
    if (id_size > sizeof(record.build_id) || sizeof(record) + padded > UINT16_MAX)
        return;
    memcpy(record.build_id, id, id_size);
    strbuf_append(b, (const char *)&record, sizeof(record));
    strbuf_append(b, filename, length);
    strbuf_pad(b, '\0', padded - length);
}

void perfdata_put_event_desc(struct strbuf *b, const struct perfdata_writer_event *events,
                             size_t event_count)
{
    perfdata_put_u32(b, (uint32_t)event_count);
    perfdata_put_u32(b, sizeof(struct perf_event_attr));
    for (size_t i = 0; i < event_count; i++) {
        strbuf_append(b, (const char *)&events[i].attr, sizeof(events[i].attr));
        perfdata_put_u32(b, (uint32_t)events[i].id_count);
        perfdata_put_string(b, events[i].name);
        strbuf_append(b, (const char *)events[i].ids, events[i].id_count * sizeof(uint64_t));
    }
}

struct strbuf *perfdata_writer_feature(struct perfdata_writer *w, enum perfdata_feature bit)
{
    /* In the order of their bits, as the table in the file wants them. */
    size_t at = w->feature_count;
    ARRAY_PUSH(w->features, w->feature_count, w->feature_capacity) =
        (struct perfdata_writer_feature){0};
    while (at > 0 && w->features[at - 1].bit > bit) {
        w->features[at] = w->features[at - 1];
        at--;
    }
    w->features[at] = (struct perfdata_writer_feature){.bit = bit};
    return &w->features[at].bytes;
}

/* The header, the ids of all events, the attributes; the data follows. */
static void put_file_head(struct perfdata_writer *w, struct strbuf *out,
                          const struct perfdata_writer_event *events, size_t event_count)
{
    size_t id_count = 0, attr_size = sizeof(struct perf_event_attr);
    for (size_t i = 0; i < event_count; i++)
        id_count += events[i].id_count;
    size_t entry_size = attr_size + sizeof(struct perfdata_section);
    struct perfdata_file_header *h = &w->header;
    *h = (struct perfdata_file_header){
        .magic = PERFDATA_MAGIC, .size = sizeof(*h), .attr_size = entry_size};
    h->attrs.offset = sizeof(*h) + id_count * sizeof(uint64_t);
    h->attrs.size = event_count * entry_size;
    h->data.offset = h->attrs.offset + h->attrs.size;
    strbuf_append(out, (const char *)h, sizeof(*h));
    for (size_t i = 0; i < event_count; i++)
        strbuf_append(out, (const char *)events[i].ids, events[i].id_count * sizeof(uint64_t));
    uint64_t ids_offset = sizeof(*h);
    for (size_t i = 0; i < event_count; i++) {
        struct perfdata_section ids = {ids_offset, events[i].id_count * sizeof(uint64_t)};
        strbuf_append(out, (const char *)&events[i].attr, attr_size);
        strbuf_append(out, (const char *)&ids, sizeof(ids));
        ids_offset += ids.size;
    }
}

static void put_pipe_head(struct strbuf *out, const struct perfdata_writer_event *events,
                          size_t event_count)
{
    perfdata_put_u64(out, PERFDATA_MAGIC);
    perfdata_put_u64(out, PERFDATA_PIPE_HEADER_SIZE);
    for (size_t i = 0; i < event_count; i++) {
        struct perf_event_header head = {.type = PERFDATA_HEADER_ATTR};
        size_t ids_size = events[i].id_count * sizeof(uint64_t);
        size_t ids_room = (UINT16_MAX - sizeof(head) - sizeof(events[i].attr)) & ~(size_t)7;
        if (ids_size > ids_room)
            ids_size = ids_room; /* a record holds no more: 8,000 instances */
        head.size = (uint16_t)(sizeof(head) + sizeof(events[i].attr) + ids_size);
        strbuf_append(out, (const char *)&head, sizeof(head));
        strbuf_append(out, (const char *)&events[i].attr, sizeof(events[i].attr));
        strbuf_append(out, (const char *)events[i].ids, ids_size);
    }
}

/* A record with the event's name, for files whose features were never written. */
static void put_name(struct strbuf *out, const struct perfdata_writer_event *e)
{
    size_t length = strlen(e->name), padded = (length + 8) / 8 * 8;
    struct perf_event_header head = {.type = PERFDATA_EVENT_UPDATE};
    if (!e->id_count || length > 4096)
        return;
    head.size = (uint16_t)(sizeof(head) + 16 + padded);
    strbuf_append(out, (const char *)&head, sizeof(head));
    perfdata_put_u64(out, PERFDATA_UPDATE_NAME);
    perfdata_put_u64(out, e->ids[0]);
    strbuf_append(out, e->name, length);
    strbuf_pad(out, '\0', padded - length);
}

/* A recording that is there keeps living as PATH.old, as perf does it. */
static int open_output(struct perfdata_writer *w, struct error *err)
{
    struct stat st;
    if (str_eq(w->path, "-")) {
        if (isatty(STDOUT_FILENO))
            return error_set(err, -EINVAL,
                             "-o - writes samples to standard output, which is a terminal; "
                             "redirect it to a pipe or a file");
        w->is_pipe = true;
        w->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    } else if (stat(w->path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        w->is_pipe = true;
        w->fd = open(w->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } else {
        if (stat(w->path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size) {
            CLEANUP(memory_freep) char *old = memory_printf("%s.old", w->path);
            rename(w->path, old);
        }
        w->fd = open(w->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    }
    return w->fd < 0 ? explain(w, -errno, err) : 0;
}

/* Takes an output that is open: the header, the attributes and the names. */
static int write_head(struct perfdata_writer *w, const struct perfdata_writer_event *events,
                      size_t event_count, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf head = {0}, names = {0};
    if (w->is_pipe)
        put_pipe_head(&head, events, event_count);
    else
        put_file_head(w, &head, events, event_count);
    int r = fd_write_all(w->fd, head.data, head.length);
    if (r < 0)
        return explain(w, r, err);
    for (size_t i = 0; i < event_count; i++)
        put_name(&names, &events[i]);
    return perfdata_writer_append(w, names.data, names.length, err);
}

int perfdata_writer_open(struct perfdata_writer *w, const char *path,
                         const struct perfdata_writer_event *events, size_t event_count,
                         struct error *err)
{
    *w = (struct perfdata_writer){.fd = -1, .path = memory_strdup(path)};
    int r = open_output(w, err);
    if (r == 0)
        r = write_head(w, events, event_count, err);
    if (r < 0)
        perfdata_writer_done(w);
    return r;
}

int perfdata_writer_open_fd(struct perfdata_writer *w, int fd, const char *path,
                            const struct perfdata_writer_event *events, size_t event_count,
                            struct error *err)
{
    *w = (struct perfdata_writer){.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3), .path = memory_strdup(path)};
    int r = w->fd < 0 ? explain(w, -errno, err) : write_head(w, events, event_count, err);
    if (r < 0)
        perfdata_writer_done(w);
    return r;
}

/* Takes away what was written of something that did not fit whole. */
static int roll_back(struct perfdata_writer *w, int code, struct error *err)
{
    if (!w->is_pipe) {
        off_t end = (off_t)(w->header.data.offset + w->data_size);
        if (ftruncate(w->fd, end) == 0)
            lseek(w->fd, end, SEEK_SET);
        perfdata_writer_checkpoint(w, NULL);
    }
    return explain(w, code, err);
}

int perfdata_writer_append(struct perfdata_writer *w, const void *bytes, size_t size,
                           struct error *err)
{
    int r = fd_write_all(w->fd, bytes, size);
    if (r < 0)
        return roll_back(w, r, err);
    w->data_size += size;
    return 0;
}

/* How many of the vector's first `size` bytes are whole records, and how many of these are samples.
 * A record may run from one part into the next, its header does not. */
static size_t whole_records(const struct iovec *vector, size_t count, size_t size,
                            uint64_t *ret_samples)
{
    size_t whole = 0, part_start = 0;
    for (size_t i = 0; i < count; i++) {
        size_t part_end = part_start + vector[i].iov_len;
        while (whole < part_end) {
            struct perf_event_header head;
            if (part_end - whole < sizeof(head))
                return whole;
            memcpy(&head, (const char *)vector[i].iov_base + (whole - part_start), sizeof(head));
            if (head.size < sizeof(head) || head.size > size - whole)
                return whole;
            whole += head.size;
            *ret_samples += head.type == PERF_RECORD_SAMPLE;
        }
        part_start = part_end;
    }
    return whole;
}

/* Keeps the whole records of what was written, less some room for the features. */
static int keep_records(struct perfdata_writer *w, const struct iovec *vector, size_t count,
                        size_t written, int code, struct error *err)
{
    if (!w->is_pipe && written > FEATURES_ROOM)
        w->data_size += whole_records(vector, count, written - FEATURES_ROOM, &w->kept_samples);
    return roll_back(w, code, err);
}

int perfdata_writer_append_vector(struct perfdata_writer *w, const struct iovec *vector,
                                  size_t count, struct error *err)
{
    size_t index = 0, offset = 0, written = 0;
    while (index < count) {
        struct iovec batch[64];
        size_t batch_count = 0;
        for (size_t i = index; i < count && batch_count < ARRAY_COUNT(batch); i++)
            batch[batch_count++] = vector[i];
        batch[0].iov_base = (char *)batch[0].iov_base + offset;
        batch[0].iov_len -= offset;
        ssize_t put = writev(w->fd, batch, (int)batch_count);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return keep_records(w, vector, count, written, -errno, err);
        written += (size_t)put;
        offset += (size_t)put;
        while (index < count && offset >= vector[index].iov_len)
            offset -= vector[index++].iov_len;
    }
    w->data_size += written;
    return 0;
}

int perfdata_writer_checkpoint(struct perfdata_writer *w, struct error *err)
{
    if (w->is_pipe || w->checkpoint_size == w->data_size)
        return 0;
    off_t at = offsetof(struct perfdata_file_header, data.size);
    if (pwrite(w->fd, &w->data_size, sizeof(w->data_size), at) != sizeof(w->data_size))
        return explain(w, errno ? -errno : -EIO, err);
    w->checkpoint_size = w->data_size;
    return 0;
}

static int finish_pipe(struct perfdata_writer *w, struct error *err)
{
    for (size_t i = 0; i < w->feature_count; i++) {
        const struct perfdata_writer_feature *f = &w->features[i];
        size_t padding = -f->bytes.length & 7;
        struct perf_event_header head = {.type = PERFDATA_HEADER_FEATURE};
        size_t size = sizeof(head) + sizeof(uint64_t) + f->bytes.length + padding;
        if (size > UINT16_MAX || f->bit == PERFDATA_FEATURE_ASSAY)
            continue; /* too long for a record; or one that perf takes for damage in a stream */
        head.size = (uint16_t)size;
        CLEANUP(strbuf_done) struct strbuf record = {0};
        strbuf_append(&record, (const char *)&head, sizeof(head));
        perfdata_put_u64(&record, f->bit);
        strbuf_append(&record, f->bytes.data, f->bytes.length);
        strbuf_pad(&record, '\0', padding);
        int r = perfdata_writer_append(w, record.data, record.length, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int finish_file(struct perfdata_writer *w, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    uint64_t at = w->header.data.offset + w->data_size;
    uint64_t offset = at + w->feature_count * sizeof(struct perfdata_section);
    struct perfdata_file_header header = w->header;
    header.data.size = w->data_size;
    for (size_t i = 0; i < w->feature_count; i++) {
        const struct perfdata_writer_feature *f = &w->features[i];
        header.features[f->bit / 64] |= 1ULL << f->bit % 64;
        perfdata_put_u64(&out, offset);
        perfdata_put_u64(&out, f->bytes.length);
        offset += f->bytes.length;
    }
    for (size_t i = 0; i < w->feature_count; i++)
        strbuf_append(&out, w->features[i].bytes.data, w->features[i].bytes.length);
    int r = fd_write_all(w->fd, out.data, out.length);
    if (r < 0)
        return roll_back(w, r, err); /* the data without them is still of use */
    if (pwrite(w->fd, &header, sizeof(header), 0) != sizeof(header))
        return explain(w, errno ? -errno : -EIO, err);
    return 0;
}

int perfdata_writer_finish(struct perfdata_writer *w, struct error *err)
{
    return w->is_pipe ? finish_pipe(w, err) : finish_file(w, err);
}

void perfdata_writer_done(struct perfdata_writer *w)
{
    for (size_t i = 0; i < w->feature_count; i++)
        strbuf_done(&w->features[i].bytes);
    free(w->features);
    free(w->path);
    fd_closep(&w->fd);
    *w = (struct perfdata_writer){.fd = -1};
}

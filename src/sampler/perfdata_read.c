/* SPDX-License-Identifier: MIT */
/* Opening perf.data and giving its records one by one: see perfdata.h. */
#include "base/fd.h"
#include "base/memory.h"
#include "config.h"
#include "sampler/perfdata_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#define QUEUE_BYTES_DEFAULT ((size_t)256 << 20)
#define QUEUE_BYTES_MIN (4 * CHUNK_BYTES)
#define TRACING_BYTES_MAX ((uint64_t)64 << 20)

void perfdata_complain(struct perfdata *p, const char *format, ...)
{
    char words[512];
    va_list args;
    if (p->trouble.length > 2000)
        return;
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    if (p->trouble.length)
        strbuf_puts(&p->trouble, "; ");
    strbuf_puts(&p->trouble, words);
}

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
        return error_set(err, -EINVAL,
                         "%s was recorded on a big-endian machine, which assay does not read; "
                         "'perf script' reads it",
                         p->name);
    if (magic == PERFDATA_MAGIC_OLD)
        return error_set(err, -EINVAL,
                         "%s has the format of perf before Linux 2.6.36, which assay does not read",
                         p->name);
    return error_set(err, -EINVAL, "%s is no perf.data file: it does not start with PERFILE2",
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
        perfdata_complain(p, "the ids of event %zu lie outside the file", entry->event.index);
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
                         "%s is damaged or cut short: its attributes lie outside the file",
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
        return error_set(err, -EINVAL, "%s names no events: the recording failed at its start?",
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

/* Where the data ends: where the header says, or at the end of a file that was cut short. */
static void set_limits(struct perfdata *p, struct source *s, const struct perfdata_section *data)
{
    s->is_seekable = true;
    s->offset = s->window.start_offset = data->offset;
    p->info.is_complete = data->size > 0;
    uint64_t there = p->file_size - data->offset;
    if (!data->size) {
        s->limit = p->file_size;
        perfdata_complain(p, "the recording was not finished: its header lacks the data's size");
    } else if (data->size > there) {
        s->limit = p->file_size;
        p->losses.bytes_missing = data->size - there;
        perfdata_complain(p, "the file is cut short: %" PRIu64 " of %" PRIu64 " bytes of data",
                          there, data->size);
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
        return error_set(err, -EINVAL, "%s is damaged: its data lies outside the file", p->name);
    if (header.data.size > INT64_MAX)
        return error_set(err, -EINVAL, "%s is damaged: the size of its data makes no sense",
                         p->name);
    set_limits(p, s, &header.data);
    if (!header.data.size || p->losses.bytes_missing)
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
            return error_set(err, -ESPIPE,
                             "%s is a perf.data file that comes through a pipe; name the file, or "
                             "record with '-o -'",
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
        return error_errno(err, -errno, "%s is a folder, but not one of perf's: data", p->name);
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
        return error_set(err, -ENOENT, "%s: no such file; 'assay record' makes one", path);
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
    events_done(&p->events);
    arena_done(&p->arena);
    strbuf_done(&p->trouble);
    free(p->sources);
    free(p->name);
    free(p);
}

/* Brings more bytes into the source's window; false at its end or when reading failed. */
static bool fill(struct perfdata *p, struct source *s)
{
    if (s->at_end)
        return false;
    size_t room;
    unsigned char *to = window_room(&s->window, &room);
    if (s->is_seekable && room > s->limit - s->offset)
        room = (size_t)(s->limit - s->offset);
    ssize_t got = 0;
    if (room) {
        do
            got = s->is_seekable ? pread(s->fd, to, room, (off_t)s->offset) : read(s->fd, to, room);
        while (got < 0 && errno == EINTR);
    }
    if (got < 0)
        p->read_error = error_errno(&p->read_error_words, -errno, "reading %s", p->name);
    if (got <= 0) {
        s->at_end = true;
        if (got == 0 && s->is_seekable && s->offset < s->limit) {
            p->losses.bytes_missing += s->limit - s->offset;
            perfdata_complain(p, "the file shrank while it was read");
        }
        return false;
    }
    s->offset += (uint64_t)got;
    s->window.end += (size_t)got;
    p->bytes_done += (uint64_t)got;
    return true;
}

/* Passes over the bytes that some records announce behind themselves; keeps up to `keep` of them
 * in `kept`. */
static void skip_payload(struct perfdata *p, struct source *s, uint64_t size, struct strbuf *kept)
{
    while (size) {
        size_t taken;
        const unsigned char *bytes = window_skip(&s->window, size, &taken);
        if (taken && kept && kept->length + taken <= TRACING_BYTES_MAX)
            strbuf_append(kept, (const char *)bytes, taken);
        size -= taken;
        if (size && !fill(p, s)) {
            p->losses.bytes_missing += size;
            perfdata_complain(p, "the stream ends inside a block");
            return;
        }
    }
}

static void source_failed(struct perfdata *p, struct source *s, const char *words, uint64_t offset)
{
    perfdata_complain(p, "%s at byte %" PRIu64, words, offset);
    s->at_end = true;
    s->window.start = s->window.end;
}

/* The next record of a source as it lies there; NULL at its end. */
static const struct perf_event_header *take_record(struct perfdata *p, struct source *s,
                                                   uint64_t *ret_offset)
{
    const struct perf_event_header *record;
    for (;;) {
        uint64_t offset = s->window.start_offset;
        switch (window_take(&s->window, &record)) {
        case WINDOW_RECORD:
            *ret_offset = offset;
            return record;
        case WINDOW_DAMAGED:
            source_failed(p, s, "the file is damaged", offset);
            return NULL;
        case WINDOW_HUNGRY:
            break;
        }
        if (fill(p, s))
            continue;
        if (s->window.end > s->window.start)
            source_failed(p, s, "the file ends inside a record", offset);
        return NULL;
    }
}

/* The next record out of the compressed block in work; NULL when it is used up. */
static const struct perf_event_header *take_unpacked(struct perfdata *p, struct source *s)
{
    const struct perf_event_header *record;
    for (;;) {
        switch (window_take(&s->unpacked, &record)) {
        case WINDOW_RECORD:
            return record;
        case WINDOW_DAMAGED:
            p->losses.undecompressed++;
            perfdata_complain(p, "a compressed block is damaged at byte %" PRIu64,
                              s->packed_offset);
            s->unpacked.start = s->unpacked.end;
            s->unpacking = false;
            return NULL;
        case WINDOW_HUNGRY:
            break;
        }
        size_t before = s->unpacked.end - s->unpacked.start;
        int more = unpack_more(s);
        if (more < 0) {
            p->losses.undecompressed++;
            perfdata_complain(p, "a compressed block is damaged at byte %" PRIu64,
                              s->packed_offset);
        }
        if (more <= 0 && s->unpacked.end - s->unpacked.start == before) {
            s->unpacking = false;
            return NULL;
        }
    }
}

static void start_unpacking(struct perfdata *p, struct source *s,
                            const struct perf_event_header *record, uint64_t offset)
{
    p->info.is_compressed = true;
    if (unpack_start(s, record, offset))
        return;
    if (!p->losses.undecompressed++)
        perfdata_complain(p, HAVE_LIBZSTD
                                 ? "a compressed block is damaged"
                                 : "the records are compressed with zstd, which this assay was "
                                   "built without; install libzstd and build again");
}

/* The next record that is not compressed. */
static const struct perf_event_header *next_raw(struct perfdata *p, struct source *s,
                                                uint64_t *ret_offset)
{
    const struct perf_event_header *record;
    for (;;) {
        if (s->unpacking) {
            record = take_unpacked(p, s);
            if (record) {
                *ret_offset = s->packed_offset;
                return record;
            }
        }
        record = take_record(p, s, ret_offset);
        if (!record)
            return NULL;
        if (record->type != PERFDATA_COMPRESSED && record->type != PERFDATA_COMPRESSED2)
            return record;
        start_unpacking(p, s, record, *ret_offset);
    }
}

static void take_header_attr(struct perfdata *p, const struct perf_event_header *record)
{
    const unsigned char *bytes = (const unsigned char *)(record + 1);
    size_t size = record->size - sizeof(*record);
    uint32_t attr_size;
    if (size < PERFDATA_ATTR_SIZE_MIN) {
        p->losses.malformed++;
        return;
    }
    memcpy(&attr_size, bytes + offsetof(struct perf_event_attr, size), sizeof(attr_size));
    if (!attr_size)
        attr_size = PERFDATA_ATTR_SIZE_MIN;
    if (attr_size < PERFDATA_ATTR_SIZE_MIN || attr_size % 8 || attr_size > size) {
        p->losses.malformed++;
        return;
    }
    struct perfdata_event_entry *entry = events_add(&p->events, bytes, attr_size);
    events_add_ids(&p->events, entry, (const uint64_t *)(const void *)(bytes + attr_size),
                   (size - attr_size) / 8);
}

static void take_event_update(struct perfdata *p, const struct perf_event_header *record)
{
    uint64_t head[2];
    const char *bytes = (const char *)(record + 1);
    size_t size = record->size - sizeof(*record);
    if (size < sizeof(head)) {
        p->losses.malformed++;
        return;
    }
    memcpy(head, bytes, sizeof(head));
    struct perfdata_event_entry *entry = events_by_id(&p->events, head[1]);
    if (head[0] == PERFDATA_UPDATE_NAME && entry)
        events_set_name(entry, bytes + sizeof(head), size - sizeof(head));
}

static void take_feature(struct perfdata *p, const struct perf_event_header *record)
{
    uint64_t bit;
    size_t size = record->size - sizeof(*record);
    if (size < sizeof(bit)) {
        p->losses.malformed++;
        return;
    }
    memcpy(&bit, record + 1, sizeof(bit));
    features_take(p, bit, (const char *)(record + 1) + sizeof(bit), size - sizeof(bit));
}

/* Tracing data and hardware traces stand behind their records, not in them. */
static void take_tracing_data(struct perfdata *p, struct source *s,
                              const struct perf_event_header *record)
{
    uint32_t size = 0;
    if (record->size >= sizeof(*record) + sizeof(size))
        memcpy(&size, record + 1, sizeof(size));
    CLEANUP(strbuf_done) struct strbuf kept = {0};
    skip_payload(p, s, size, &kept);
    features_take(p, PERFDATA_FEATURE_TRACING_DATA, kept.data, kept.length);
}

static void take_auxtrace(struct perfdata *p, struct source *s,
                          const struct perf_event_header *record)
{
    uint64_t size = 0;
    if (record->size >= sizeof(*record) + sizeof(size))
        memcpy(&size, record + 1, sizeof(size));
    p->losses.aux++;
    skip_payload(p, s, size, NULL);
}

/* Records of perf itself; true for those that are given to the caller. */
static bool take_user_record(struct perfdata *p, struct source *s,
                             const struct perf_event_header *record)
{
    switch (record->type) {
    case PERFDATA_THREAD_MAP:
    case PERFDATA_TIME_CONV:
        return true;
    case PERFDATA_HEADER_ATTR:
        take_header_attr(p, record);
        break;
    case PERFDATA_HEADER_TRACING_DATA:
        take_tracing_data(p, s, record);
        break;
    case PERFDATA_HEADER_BUILD_ID:
        features_take_build_id(p, record);
        break;
    case PERFDATA_FINISHED_ROUND:
        queue_finish_round(&s->queue);
        break;
    case PERFDATA_AUXTRACE:
        take_auxtrace(p, s, record);
        break;
    case PERFDATA_AUXTRACE_INFO:
    case PERFDATA_AUXTRACE_ERROR:
        p->losses.aux++;
        break;
    case PERFDATA_EVENT_UPDATE:
        take_event_update(p, record);
        break;
    case PERFDATA_HEADER_FEATURE:
        take_feature(p, record);
        break;
    case PERFDATA_HEADER_EVENT_TYPE:
    case PERFDATA_ID_INDEX:
    case PERFDATA_CPU_MAP:
    case PERFDATA_STAT_CONFIG:
    case PERFDATA_STAT:
    case PERFDATA_STAT_ROUND:
    case PERFDATA_FINISHED_INIT:
        break; /* nothing that a profile needs */
    default:
        p->losses.unknown++;
        break;
    }
    return false;
}

/* Records of the kernel: true for those that are given to the caller. */
static bool take_kernel_record(struct perfdata *p, const struct perf_event_header *record)
{
    switch (record->type) {
    case PERF_RECORD_AUX:
    case PERF_RECORD_ITRACE_START:
    case PERF_RECORD_AUX_OUTPUT_HW_ID:
        p->losses.aux++;
        return false;
    default:
        if (record->type == 0 || record->type > PERFDATA_CALLCHAIN_DEFERRED) {
            p->losses.unknown++;
            return false;
        }
        return true;
    }
}

static void count_record(struct perfdata *p, const struct perfdata_record *r)
{
    switch (r->type) {
    case PERF_RECORD_SAMPLE:
        p->losses.samples++;
        break;
    case PERF_RECORD_LOST:
        p->losses.lost_records += r->lost.count;
        break;
    case PERF_RECORD_LOST_SAMPLES:
        p->losses.lost_samples += r->lost.count;
        break;
    case PERF_RECORD_THROTTLE:
        p->losses.throttled++;
        break;
    default:
        break;
    }
}

/* Takes a record apart; false when it was passed over and counted. */
static bool give(struct perfdata *p, const struct perf_event_header *record, uint64_t offset,
                 struct perfdata_record *ret)
{
    if (!perfdata_parse(p, record, ret)) {
        p->losses.malformed++;
        return false;
    }
    if (ret->type == PERF_RECORD_SAMPLE && !ret->event) {
        p->losses.unmatched++;
        return false;
    }
    ret->offset = offset;
    count_record(p, ret);
    return true;
}

/* Queues a record until its turn; false when it has no time and goes at once. */
static bool enqueue(struct perfdata *p, struct source *s, const struct perf_event_header *record,
                    uint64_t offset)
{
    if (p->options.unordered)
        return false;
    uint64_t time_ns = events_record_time(&p->events, record);
    if (!time_ns)
        return false;
    if (time_ns < p->given_ns)
        p->losses.out_of_order++;
    chunk_pin(record);
    queue_add(&s->queue,
              &(struct queue_entry){.time_ns = time_ns, .offset = offset, .record = record});
    if (p->pool.live_count * CHUNK_BYTES > p->options.queue_bytes_max)
        queue_release_half(&s->queue);
    return true;
}

/* Reads one record of a source; true when it is to be given at once. */
static bool advance(struct perfdata *p, struct source *s, struct perfdata_record *ret)
{
    uint64_t offset = 0;
    const struct perf_event_header *record = next_raw(p, s, &offset);
    if (!record) {
        s->ended = true;
        queue_release_all(&s->queue);
        return false;
    }
    bool is_user = record->type >= PERFDATA_HEADER_ATTR;
    if (!(is_user ? take_user_record(p, s, record) : take_kernel_record(p, record)))
        return false;
    if (!is_user && enqueue(p, s, record, offset))
        return false;
    return give(p, record, offset, ret);
}

/* The source whose turn it is: each has a record ready or is at its end.  When a record without a
 * time turns up on the way, it is given at once and *ret_now is set. */
static struct source *choose(struct perfdata *p, struct perfdata_record *ret, bool *ret_now)
{
    struct source *best = NULL;
    uint64_t best_ns = 0;
    for (size_t i = 0; i < p->source_count; i++) {
        struct source *s = &p->sources[i];
        const struct queue_entry *head;
        while (!(head = queue_peek(&s->queue)) && !s->ended)
            if (advance(p, s, ret)) {
                *ret_now = true;
                return s;
            }
        if (head && (!best || head->time_ns < best_ns)) {
            best = s;
            best_ns = head->time_ns;
        }
    }
    return best;
}

int perfdata_next(struct perfdata *p, struct perfdata_record *ret, struct error *err)
{
    if (p->pinned) {
        chunk_unpin(&p->pool, p->pinned);
        p->pinned = NULL;
    }
    for (;;) {
        bool now = false;
        struct source *s = choose(p, ret, &now);
        if (now)
            return 1;
        if (!s)
            break;
        const struct queue_entry *entry = queue_next(&s->queue);
        if (entry->time_ns > p->given_ns)
            p->given_ns = entry->time_ns;
        p->pinned = entry->record;
        if (give(p, entry->record, entry->offset, ret))
            return 1;
        chunk_unpin(&p->pool, p->pinned);
        p->pinned = NULL;
    }
    if (p->read_error && err)
        *err = p->read_error_words;
    return p->read_error;
}

const char *perfdata_trouble(const struct perfdata *p)
{
    return p->trouble.length ? strbuf_text(&p->trouble) : NULL;
}

const struct perfdata_losses *perfdata_losses(const struct perfdata *p)
{
    return &p->losses;
}

const struct perfdata_info *perfdata_info(const struct perfdata *p)
{
    return &p->info;
}

const struct perfdata_build_id *perfdata_build_ids(const struct perfdata *p, size_t *ret_count)
{
    *ret_count = p->build_id_count;
    return p->build_ids;
}

void perfdata_position(const struct perfdata *p, uint64_t *ret_done, uint64_t *ret_total)
{
    *ret_done = p->bytes_done;
    *ret_total = p->bytes_total;
}

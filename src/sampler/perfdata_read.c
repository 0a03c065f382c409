/* SPDX-License-Identifier: MIT */
/* Giving the records of perf.data one by one: see perfdata.h. */
#include "base/memory.h"
#include "config.h"
#include "sampler/perfdata_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

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
            perfdata_complain(p, "the file shrank while it was being read");
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
        perfdata_complain(p, HAVE_LIBZSTD ? "a compressed block is damaged"
                                          : "the records are compressed with zstd, but assay was "
                                            "built without it; install libzstd and rebuild it");
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

uint64_t perfdata_lost(const struct perfdata_losses *l)
{
    uint64_t records = l->lost_records > l->lost_counted ? l->lost_records : l->lost_counted;
    return records + l->lost_samples;
}

#define MISC_DROPPED_BY_FILTER (1u << 15) /* PERF_RECORD_MISC_LOST_SAMPLES_BPF */

/* perf reads how many records each event lost when it ends and writes that as LOST_SAMPLES, too,
 * without a time: those that LOST records tell of are among them. */
static bool is_count_at_end(const struct perfdata_record *r)
{
    return r->time_ns == 0 && r->event && r->event->attr.sample_id_all &&
           (r->event->attr.sample_type & PERF_SAMPLE_TIME);
}

static void count_record(struct perfdata *p, const struct perfdata_record *r)
{
    switch (r->type) {
    case PERF_RECORD_SAMPLE:
        p->losses.samples += !(r->sample.sample_type & PERF_SAMPLE_READ);
        break;
    case PERF_RECORD_LOST:
        p->losses.lost_records += r->lost.count;
        break;
    case PERF_RECORD_LOST_SAMPLES:
        if (r->misc & MISC_DROPPED_BY_FILTER)
            break;
        *(is_count_at_end(r) ? &p->losses.lost_counted : &p->losses.lost_samples) += r->lost.count;
        break;
    case PERF_RECORD_THROTTLE:
        p->losses.throttled++;
        break;
    default:
        break;
    }
}

/* Takes a record apart; false when there is nothing to give at once. */
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
    if (ret->type == PERF_RECORD_SAMPLE && ret->sample.sample_type & PERF_SAMPLE_READ) {
        group_start(p, ret);
        return group_next(p, ret);
    }
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
    if (p->group.is_open && group_next(p, ret))
        return 1;
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

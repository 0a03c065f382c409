/* SPDX-License-Identifier: MIT */
/* A recording with its names: see portable.h. */
#include "profile/export/portable.h"
#include "base/memory.h"
#include "sampler/trim.h"
#include "symbols/portable.h"

#include <errno.h>

#define RECORDS_BYTES (1u << 20)
#define ROUND_RECORDS 4096 /* readers put as many in order at once */

static const uint64_t stack_bits = PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_USER;

static void fail(struct portable *p, int code)
{
    if (code < 0 && p->code == 0)
        p->code = code;
}

/* The events as they will be: with chains instead of stacks. */
static void copy_events(struct portable *p, const struct perfdata *reader, size_t count)
{
    p->events = memory_zalloc(count + 1, sizeof(*p->events));
    for (size_t i = 0; i < count; i++) {
        const struct perfdata_event *e = perfdata_event(reader, i);
        struct perf_event_attr attr = e->attr;
        attr.size = sizeof(attr);
        if (attr.sample_type & PERF_SAMPLE_STACK_USER) {
            attr.sample_type = (attr.sample_type & ~stack_bits) | PERF_SAMPLE_CALLCHAIN;
            attr.sample_regs_user = attr.sample_stack_user = 0;
            attr.exclude_callchain_user = 0;
        }
        p->events[i] = (struct perfdata_writer_event){
            .attr = attr, .name = e->name, .ids = e->ids, .id_count = e->id_count};
    }
}

/* All that the file says of itself; names and compression are our own. */
static void copy_features(struct portable *p, const struct perfdata *reader, size_t event_count)
{
    for (int bit = 1; bit < PERFDATA_FEATURE_BITS; bit++) {
        size_t size;
        const void *bytes = perfdata_feature(reader, (enum perfdata_feature)bit, &size);
        if (!bytes || bit == PERFDATA_FEATURE_EVENT_DESC || bit == PERFDATA_FEATURE_COMPRESSED ||
            bit == PERFDATA_FEATURE_DIR_FORMAT || bit == PERFDATA_FEATURE_AUXTRACE ||
            bit == PERFDATA_FEATURE_NAMES)
            continue;
        strbuf_append(perfdata_writer_feature(&p->writer, (enum perfdata_feature)bit), bytes, size);
    }
    perfdata_put_event_desc(perfdata_writer_feature(&p->writer, PERFDATA_FEATURE_EVENT_DESC),
                            p->events, event_count);
}

static void open_writer(struct portable *p, const struct perfdata *reader)
{
    size_t count = perfdata_event_count(reader);
    p->is_open = true;
    if (perfdata_info(reader)->is_pipe) {
        fail(p, error_set(&p->err, -ENOTSUP,
                          "a stream cannot be made portable; record into a file first"));
        return;
    }
    copy_events(p, reader, count);
    int code =
        perfdata_writer_open_fd(&p->writer, p->file.fd, p->file.path, p->events, count, &p->err);
    fail(p, code);
    if (code == 0)
        copy_features(p, reader, count);
}

/* The kernel's part of a chain is as it was; the user's is what unwinding gave. */
static uint64_t kernel_count(const struct perfdata_sample *s)
{
    uint64_t count = 0;
    while (count < s->callchain_count && s->callchain[count] != PERF_CONTEXT_USER)
        count++;
    return count;
}

/* A sample with a chain in the place of its stack. */
static bool put_sample(struct strbuf *out, const struct perfdata_record *r,
                       const uint64_t *addresses, size_t count)
{
    const struct perfdata_sample *s = &r->sample;
    const uint64_t user = PERF_CONTEXT_USER;
    struct perf_event_header head;
    struct stack_place place;
    memcpy(&head, r->bytes, sizeof(head));
    if (!stack_place_find(&place, r->bytes, r->event->attr.sample_type,
                          r->event->attr.sample_regs_user))
        return false;
    const char *bytes = r->bytes;
    uint64_t kernel = kernel_count(s), chain = kernel + (count ? count + 1 : 0);
    size_t size = place.chain + 8 + 8 * (size_t)chain + (place.registers - place.chain_end) +
                  (head.size - place.end);
    if (size > UINT16_MAX)
        return false;
    head.size = (uint16_t)size;
    strbuf_append(out, (const char *)&head, sizeof(head));
    strbuf_append(out, bytes + sizeof(head), place.chain - sizeof(head));
    perfdata_put_u64(out, chain);
    strbuf_append(out, (const char *)s->callchain, 8 * (size_t)kernel);
    if (count) {
        strbuf_append(out, (const char *)&user, sizeof(user));
        strbuf_append(out, (const char *)addresses, 8 * count);
    }
    strbuf_append(out, bytes + place.chain_end, place.registers - place.chain_end);
    strbuf_append(out, bytes + place.end, r->size_bytes - place.end);
    return true;
}

static void write_out(struct portable *p)
{
    if (p->code == 0 && p->records.length)
        fail(p, perfdata_writer_append(&p->writer, p->records.data, p->records.length, &p->err));
    strbuf_clear(&p->records);
}

static void each_record(void *context, const struct perfdata *reader,
                        const struct perfdata_record *r, const uint64_t *addresses, size_t count)
{
    static const struct perf_event_header round = {.type = PERFDATA_FINISHED_ROUND,
                                                   .size = sizeof(round)};
    struct portable *p = context;
    if (!p->is_open)
        open_writer(p, reader);
    /* A sample of a group is given once for each of its events. */
    bool is_again = r->bytes == p->last && r->offset == p->last_offset &&
                    r->type == PERF_RECORD_SAMPLE && r->sample.sample_type & PERF_SAMPLE_READ;
    p->last = r->bytes;
    p->last_offset = r->offset;
    if (p->code < 0 || is_again)
        return;
    bool has_stack =
        r->type == PERF_RECORD_SAMPLE && r->event->attr.sample_type & PERF_SAMPLE_STACK_USER;
    if (!has_stack)
        strbuf_append(&p->records, r->bytes, r->size_bytes);
    else if (!put_sample(&p->records, r, addresses, count))
        p->unclear++;
    if (++p->since_round >= ROUND_RECORDS) {
        strbuf_append(&p->records, (const char *)&round, sizeof(round));
        p->since_round = 0;
    }
    if (p->records.length >= RECORDS_BYTES)
        write_out(p);
}

int portable_start(struct portable *p, const char *path, struct profile_options *options,
                   struct error *err)
{
    *p = (struct portable){.writer = {.fd = -1}, .file = {.fd = -1}};
    int r = outfile_open(&p->file, path, err);
    if (r < 0)
        return r;
    if (!p->file.temporary_path) {
        outfile_done(&p->file);
        return error_set(err, -EINVAL,
                         "%s: a portable recording is written to a regular file: use -o FILE",
                         path);
    }
    options->want = SYMBOLS_INLINES;
    options->each = each_record;
    options->each_context = p;
    return 0;
}

/* Naming them once more gives frames as the tables have them. */
static void put_names(const struct profile *profile, struct strbuf *out)
{
    size_t count = profile->stacks.location_count;
    struct symbols_request *requests = memory_zalloc(count + 1, sizeof(*requests));
    for (size_t i = 0; i < count; i++) {
        const struct stack_location *l = &profile->stacks.locations[i];
        requests[i].location = (struct location){l->module, l->address};
    }
    symbols_resolve(profile->symbols, requests, count, SYMBOLS_INLINES);
    symbols_put_portable(profile->symbols, requests, count, out);
    free(requests);
}

int portable_finish(struct portable *p, const struct profile *profile, struct error *err)
{
    write_out(p);
    if (!p->is_open)
        fail(p, error_set(&p->err, -ENODATA, "%s has no records", profile->path));
    if (p->code < 0) {
        *err = p->err;
        return p->code;
    }
    put_names(profile, perfdata_writer_feature(&p->writer, PERFDATA_FEATURE_NAMES));
    int r = perfdata_writer_finish(&p->writer, err);
    return r < 0 ? r : outfile_commit(&p->file, err);
}

void portable_done(struct portable *p)
{
    perfdata_writer_done(&p->writer);
    outfile_done(&p->file);
    strbuf_done(&p->records);
    free(p->events);
}

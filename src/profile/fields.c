/* SPDX-License-Identifier: MIT */
/* The fields of tracepoints' samples: see fields.h. */
#include "profile/fields.h"
#include "base/memory.h"
#include "profile/profile.h"
#include "sampler/tracing_data.h"
#include "tracepoints/format.h"

struct event_format {
    bool is_known;
    struct tp_format format;
};

struct profile_fields {
    struct strbuf bytes;
    uint64_t *ends; /* of each sample's fields in the bytes */
    size_t count, capacity;
    struct event_format *formats; /* by event */
    size_t format_count;
};

static struct profile_fields *own_fields(struct profile *p)
{
    if (!p->fields)
        p->fields = memory_zalloc(1, sizeof(*p->fields));
    return p->fields;
}

void profile_fields_keep(struct profile *profile, const struct perfdata_record *record)
{
    struct profile_fields *f = own_fields(profile);
    if (record->sample.raw)
        strbuf_append(&f->bytes, record->sample.raw, record->sample.raw_size);
    ARRAY_PUSH(f->ends, f->count, f->capacity) = f->bytes.length;
}

/* One format of the recording: it is that of the events with its number. */
static void take_format(void *context, const char *system, const char *text, size_t length)
{
    struct profile *p = context;
    struct tp_format format;
    if (tp_format_parse(&format, system, text, length, NULL) < 0)
        return;
    for (size_t i = 0; i < p->fields->format_count; i++) {
        struct event_format *e = &p->fields->formats[i];
        if (e->is_known || !p->events[i].is_tracepoint || p->events[i].tracepoint_id != format.id)
            continue;
        e->is_known = tp_format_parse(&e->format, system, text, length, NULL) == 0;
    }
    tp_format_done(&format);
}

void profile_fields_formats(struct profile *profile, const struct perfdata *reader)
{
    struct profile_fields *f = own_fields(profile);
    size_t size;
    const void *bytes = perfdata_feature(reader, PERFDATA_FEATURE_TRACING_DATA, &size);
    f->format_count = profile->event_count;
    f->formats = memory_zalloc(f->format_count + 1, sizeof(*f->formats));
    if (bytes)
        tracing_data_each(bytes, size, take_format, profile);
}

void profile_fields_put(const struct profile *profile, size_t sample, struct strbuf *out)
{
    const struct profile_fields *f = profile->fields;
    uint32_t event = profile->samples[sample].event;
    if (!f || sample >= f->count || event >= f->format_count || !f->formats[event].is_known)
        return;
    uint64_t start = sample ? f->ends[sample - 1] : 0;
    struct tp_record record = {(const unsigned char *)f->bytes.data + start,
                               (size_t)(f->ends[sample] - start)};
    if (record.size)
        tp_put(&f->formats[event].format, record, out);
}

void profile_fields_free(struct profile_fields *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->format_count; i++)
        if (f->formats[i].is_known)
            tp_format_done(&f->formats[i].format);
    free(f->formats);
    free(f->ends);
    strbuf_done(&f->bytes);
    free(f);
}

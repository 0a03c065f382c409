/* SPDX-License-Identifier: MIT */
/* The fields of tracepoints' samples: see fields.h. */
#include "profile/fields.h"
#include "base/memory.h"
#include "profile/profile.h"
#include "sampler/tracing_data.h"
#include "tracepoints/format.h"
#include "tracepoints/waking.h"

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

static void take_waking_format(void *context, const char *system, const char *text, size_t length)
{
    struct wakings *w = context;
    struct tp_format format;
    if (!str_eq(system, "sched") || tp_format_parse(&format, system, text, length, NULL) < 0)
        return;
    const struct tp_field *target = tp_format_field(&format, "pid");
    const struct tp_field *flags = tp_format_field(&format, "common_flags");
    if (str_eq(format.name, "sched_waking") && target && target->size == sizeof(uint32_t) &&
        flags && flags->size == 1) {
        w->target_offset = target->offset;
        w->flags_offset = flags->offset;
    }
    tp_format_done(&format);
}

void wakings_find(struct wakings *w, const struct perfdata *reader,
                  const struct perfdata_event *event)
{
    size_t size;
    const void *bytes = perfdata_feature(reader, PERFDATA_FEATURE_TRACING_DATA, &size);
    /* Those that somebody asked for by themselves have callers, as all that stands beside waits. */
    if (w->event || !bytes || event->attr.type != PERF_TYPE_TRACEPOINT ||
        !str_has_prefix(event->name, "sched:sched_waking") ||
        event->attr.sample_type & PERF_SAMPLE_CALLCHAIN)
        return;
    tracing_data_each(bytes, size, take_waking_format, w);
    if (w->target_offset)
        w->event = event;
}

bool wakings_read(const struct wakings *w, const struct perfdata_record *r, struct waking *ret)
{
    const unsigned char *raw = r->sample.raw;
    if (!w->event || r->type != PERF_RECORD_SAMPLE || r->event != w->event)
        return false;
    *ret = (struct waking){0};
    if (raw && w->flags_offset < r->sample.raw_size &&
        w->target_offset + sizeof(ret->target) <= r->sample.raw_size) {
        memcpy(&ret->target, raw + w->target_offset, sizeof(ret->target));
        ret->is_by_thread = waking_is_by_thread(r->tid, raw[w->flags_offset], WAKING_NO_CALL);
    }
    return true;
}

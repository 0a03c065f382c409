/* SPDX-License-Identifier: MIT */
/* Records as bytes: what they say, what is kept of them, and how they are saved. */
#include "base/clock.h"
#include "base/memory.h"
#include "sampler/facts.h"
#include "sampler/synthesize.h"
#include "top/samples_internal.h"

#include <string.h>

#define KEPT_BYTES_MAX ((size_t)32 << 20)

bool sample_parse(const struct perf_event_header *head, struct sample_fields *f)
{
    /* identifier, ip, pid and tid, time, cpu, period, then the chain with its length */
    const uint64_t *words = (const uint64_t *)(head + 1);
    size_t count = (head->size - sizeof(*head)) / 8;
    if (count < 7)
        return false;
    memcpy(&f->pid, &words[2], 4);
    memcpy(&f->tid, (const char *)&words[2] + 4, 4);
    f->ip = words[1];
    f->time_ns = words[3];
    f->period = words[5];
    f->chain_count = words[6];
    f->chain = words + 7;
    return f->chain_count <= count - 7;
}

uint64_t record_time_ns(const struct perf_event_header *head)
{
    uint64_t time_ns = 0;
    const char *start = (const char *)head, *end = start + head->size;
    if (head->size < sizeof(*head) + RECORD_TAIL_BYTES)
        return 0;
    bool is_sample = head->type == PERF_RECORD_SAMPLE;
    memcpy(&time_ns, is_sample ? start + sizeof(*head) + 24 : end - RECORD_TAIL_BYTES + 8,
           sizeof(time_ns));
    return time_ns;
}

/* The oldest samples go first; what follows processes only when it alone is too much. */
void samples_keep(struct samples *s, struct samples_chunk *chunk)
{
    if (!chunk->tracking.length && !chunk->samples.length)
        return;
    s->kept_bytes += chunk->tracking.length + chunk->samples.length;
    ARRAY_PUSH(s->chunks, s->chunk_count, s->chunk_capacity) = *chunk;
    for (size_t i = 0; i < s->chunk_count && s->kept_bytes > KEPT_BYTES_MAX; i++) {
        s->has_dropped |= s->chunks[i].samples.length;
        s->kept_bytes -= s->chunks[i].samples.length;
        strbuf_done(&s->chunks[i].samples);
    }
    for (size_t i = 0; i < s->chunk_count && s->kept_bytes > KEPT_BYTES_MAX; i++) {
        s->kept_bytes -= s->chunks[i].tracking.length;
        strbuf_done(&s->chunks[i].tracking);
    }
}

static int write_chunks(const struct samples *s, struct perfdata_writer *w, uint64_t *ret_first_ns,
                        uint64_t *ret_count, struct error *err)
{
    static const struct perf_event_header round = {.type = PERFDATA_FINISHED_ROUND,
                                                   .size = sizeof(round)};
    int r = 0;
    *ret_first_ns = *ret_count = 0;
    for (size_t i = 0; i < s->chunk_count && r == 0; i++) {
        const struct strbuf *parts[] = {&s->chunks[i].tracking, &s->chunks[i].samples};
        for (size_t k = 0; k < ARRAY_COUNT(parts) && r == 0; k++)
            if (parts[k]->length)
                r = perfdata_writer_append(w, parts[k]->data, parts[k]->length, err);
        for (size_t at = 0; at < parts[1]->length; ++*ret_count) {
            const struct perf_event_header *head = (const void *)(parts[1]->data + at);
            if (!*ret_first_ns)
                *ret_first_ns = record_time_ns(head);
            at += head->size;
        }
        if (r == 0)
            r = perfdata_writer_append(w, &round, sizeof(round), err);
    }
    return r;
}

static int write_file(struct samples *s, struct perfdata_writer *w, struct facts *facts,
                      uint64_t *ret_count, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf kernel = {0};
    struct synthesis synthesis = {
        .out = &kernel, .sample_id_size = RECORD_TAIL_BYTES, .files = &s->files};
    if (s->parts[0].kernel_sampled)
        synthesize_kernel(&synthesis);
    int r = kernel.length ? perfdata_writer_append(w, kernel.data, kernel.length, err) : 0;
    if (r == 0 && s->past.length)
        r = perfdata_writer_append(w, s->past.data, s->past.length, err);
    if (r == 0)
        r = write_chunks(s, w, &facts->first_sample_ns, ret_count, err);
    if (r < 0)
        return r;
    facts_write(w, facts);
    return perfdata_writer_finish(w, err);
}

/* All parts have the same event: in the file it is one, with the ids of all. */
static struct perfdata_writer_event *file_events(const struct samples *s, size_t *ret_count)
{
    const struct sampling *first = &s->parts[0];
    struct perfdata_writer_event *events = memory_zalloc(first->event_count, sizeof(*events));
    for (size_t i = 0; i < first->event_count; i++) {
        size_t count = 0;
        for (size_t k = 0; k < s->part_count; k++)
            count += s->parts[k].events[i].id_count;
        uint64_t *ids = memory_zalloc(count + 1, sizeof(*ids));
        count = 0;
        for (size_t k = 0; k < s->part_count; k++)
            for (size_t m = 0; m < s->parts[k].events[i].id_count; m++)
                ids[count++] = s->parts[k].events[i].ids[m];
        events[i] = (struct perfdata_writer_event){.attr = first->events[i].attr,
                                                   .name = first->events[i].name,
                                                   .ids = ids,
                                                   .id_count = count};
    }
    *ret_count = first->event_count;
    return events;
}

int samples_save(struct samples *s, const char *path, char *const *command_line,
                 uint64_t *ret_count, struct error *err)
{
    size_t event_count;
    struct perfdata_writer writer = {.fd = -1};
    struct perfdata_writer_event *events = file_events(s, &event_count);
    struct facts facts = {
        .events = events,
        .event_count = event_count,
        .command_line = command_line,
        .files = &s->files,
        .last_sample_ns = s->last_ns,
        .has_clock = s->parts[0].kernel.has_clock,
        .wall_clock_ns = s->wall_clock_ns,
        .record_clock_ns = s->record_clock_ns,
    };
    int r = perfdata_writer_open(&writer, path, events, event_count, err);
    if (r == 0)
        r = write_file(s, &writer, &facts, ret_count, err);
    perfdata_writer_done(&writer);
    for (size_t i = 0; i < event_count; i++)
        free((void *)events[i].ids);
    free(events);
    return r;
}

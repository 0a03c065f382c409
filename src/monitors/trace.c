/* SPDX-License-Identifier: MIT */
/* Tracepoints of a run's own processes: see trace.h. */
#include "monitors/trace.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "counters/filter.h"
#include "counters/online.h"
#include "machine/tracefs.h"

#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RING_BYTES ((size_t)4 << 20)        /* for each CPU */
#define RINGS_BYTES_MAX ((size_t)128 << 20) /* of all CPUs */
#define RING_BYTES_MIN ((size_t)64 << 10)

static int open_source(struct trace *t, size_t source, struct error *err)
{
    struct trace_source *s = &t->sources[source];
    pid_t self = (pid_t)syscall(SYS_gettid);
    bool everywhere = source == TRACE_EVERYWHERE || t->spec.whole_machine;
    bool on_exec = !everywhere && (!t->spec.tasks || t->spec.on_exec);
    size_t ring_bytes = RING_BYTES;
    while (ring_bytes > RING_BYTES_MIN && ring_bytes * t->cpu_count > RINGS_BYTES_MAX)
        ring_bytes /= 2;
    struct sampling_spec spec = {
        .events = &s->events,
        .stacks = s->stacks ? SAMPLING_FRAME_POINTERS : SAMPLING_NO_STACKS,
        .kernel_stacks = !t->spec.user_stacks,
        .no_tracking = true,
        .switches = source == TRACE_RUN && t->spec.switches,
        .on_exec = on_exec,
        .whole_cpus = everywhere,
        .tasks = t->spec.tasks ? t->spec.tasks : &self,
        .task_count = t->spec.tasks ? t->spec.task_count : 1,
        .cpus = t->cpus,
        .cpu_count = t->cpu_count,
        .ring_bytes = ring_bytes,
    };
    int r = sampling_open(&s->sampling, &spec, err);
    s->is_sampling = r == 0;
    return r == 0 && !on_exec ? sampling_enable(&s->sampling, err) : r;
}

static int open_events(struct trace *t, struct error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < TRACE_SOURCES; i++)
        r = t->sources[i].events.count ? open_source(t, i, err) : 0;
    return r;
}

static void close_events(struct trace *t)
{
    for (size_t i = 0; i < TRACE_SOURCES; i++) {
        if (t->sources[i].is_sampling)
            sampling_done(&t->sources[i].sampling);
        t->sources[i].is_sampling = false;
    }
}

int trace_open(struct trace *t, const struct trace_spec *spec, struct error *err)
{
    *t = (struct trace){.spec = *spec};
    const char *lists[TRACE_SOURCES] = {spec->events, spec->everywhere};
    t->sources[TRACE_RUN].stacks = spec->stacks;
    int r = online_cpus(&t->cpus, &t->cpu_count, err);
    for (size_t i = 0; r == 0 && i < TRACE_SOURCES; i++)
        r = lists[i] ? event_list_parse(&t->sources[i].events, lists[i], err) : 0;
    struct event_list *own = &t->sources[TRACE_RUN].events;
    if (r == 0 && spec->first_filter)
        r = filter_assign(own, 0, spec->filter_from, spec->first_filter, err);
    if (r == 0 && spec->filter)
        r = filter_assign(own, spec->filter_from, own->count, spec->filter, err);
    if (r == 0)
        r = open_events(t, err);
    close_events(t);
    return r;
}

void trace_close(struct trace *t)
{
    close_events(t);
    for (size_t i = 0; i < TRACE_SOURCES; i++)
        event_list_done(&t->sources[i].events);
    free(t->cpus);
    free(t->bytes);
    free(t->spare);
    free(t->waiting);
    *t = (struct trace){0};
}

int trace_start(struct trace *t, struct error *err)
{
    close_events(t);
    t->byte_count = t->waiting_count = 0;
    t->lost = t->records = 0;
    t->horizon_ns = 0;
    return open_events(t, err);
}

struct cutter {
    const unsigned char *at, *end;
};

static bool cut(struct cutter *c, void *value, size_t size)
{
    if ((size_t)(c->end - c->at) < size)
        return false;
    memcpy(value, c->at, size);
    c->at += size;
    return true;
}

/* IDENTIFIER (where there are several events), ip, pid and tid, time, cpu, call chain, raw. */
static bool parse_sample(const struct trace_source *s, struct cutter c, struct trace_record *r)
{
    uint64_t ignored, chain_count = 0;
    uint32_t raw_size, reserved;
    if ((s->events.count > 1 && !cut(&c, &ignored, 8)) || !cut(&c, &ignored, 8) ||
        !cut(&c, &r->pid, 4) || !cut(&c, &r->tid, 4) || !cut(&c, &r->time_ns, 8) ||
        !cut(&c, &r->cpu, 4) || !cut(&c, &reserved, 4))
        return false;
    if (s->stacks) {
        if (!cut(&c, &chain_count, 8) || chain_count > (size_t)(c.end - c.at) / 8)
            return false;
        r->chain = (const uint64_t *)(const void *)c.at;
        r->chain_count = (size_t)chain_count;
        c.at += chain_count * 8;
    }
    if (!cut(&c, &raw_size, 4) || raw_size > (size_t)(c.end - c.at))
        return false;
    r->raw = c.at;
    r->raw_size = raw_size;
    /* The tracepoint's own number: ids of events are those of another session now and then. */
    uint16_t type;
    if (!cut(&c, &type, 2))
        return false;
    for (r->event = 0; r->event < s->events.count; r->event++)
        if (s->events.items[r->event].attr.config == type)
            return true;
    return false;
}

/* Behind what a record has of its own: pid and tid, time, cpu, IDENTIFIER. */
static bool parse_switch(const struct perf_event_header *head, struct cutter c,
                         struct trace_record *r)
{
    r->kind = head->misc & PERF_RECORD_MISC_SWITCH_OUT ? TRACE_LEAVES : TRACE_ARRIVES;
    r->is_preempted = head->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    if (!cut(&c, &r->pid, 4) || !cut(&c, &r->tid, 4) || !cut(&c, &r->time_ns, 8))
        return false;
    if (!cut(&c, &r->cpu, 4))
        r->cpu = UINT32_MAX;
    return true;
}

bool trace_parse(const struct trace *t, size_t source, const struct perf_event_header *head,
                 struct trace_record *r)
{
    *r = (struct trace_record){.kind = TRACE_EVENT};
    const unsigned char *bytes = (const unsigned char *)head;
    if (head->size < sizeof(*head))
        return false;
    struct cutter c = {bytes + sizeof(*head), bytes + head->size};
    if (head->type == PERF_RECORD_SWITCH)
        return parse_switch(head, c, r);
    if (head->type != PERF_RECORD_SAMPLE || !parse_sample(&t->sources[source], c, r))
        return false;
    r->event += source == TRACE_RUN ? 0 : t->sources[TRACE_RUN].events.count;
    return true;
}

static void keep(void *context, const struct perf_event_header *head)
{
    struct trace *t = context;
    struct trace_record r;
    if (!trace_parse(t, t->reading, head, &r))
        return;
    size_t size = (head->size + (size_t)7) & ~(size_t)7;
    t->bytes = memory_grow(t->bytes, &t->byte_capacity, t->byte_count + size, 1);
    memcpy(t->bytes + t->byte_count, head, head->size);
    ARRAY_PUSH(t->waiting, t->waiting_count, t->waiting_capacity) =
        (struct trace_waiting){r.time_ns, t->byte_count, t->reading};
    t->byte_count += size;
    t->records++;
}

static int compare_times(const void *a, const void *b)
{
    const struct trace_waiting *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Gives what is older than the horizon; the rest moves to the front. */
static void give(struct trace *t, uint64_t horizon_ns, trace_fn *f, void *context)
{
    if (!t->waiting_count)
        return;
    qsort(t->waiting, t->waiting_count, sizeof(*t->waiting), compare_times);
    size_t given = 0;
    for (; given < t->waiting_count && t->waiting[given].time_ns <= horizon_ns; given++) {
        struct trace_record r;
        const void *head = t->bytes + t->waiting[given].offset;
        if (trace_parse(t, t->waiting[given].source, head, &r))
            f(context, &r);
    }
    size_t left = t->waiting_count - given, place = 0;
    memmove(t->waiting, t->waiting + given, left * sizeof(*t->waiting));
    t->waiting_count = left;
    if (left == 0) {
        t->byte_count = 0;
        return;
    }
    unsigned char *kept = t->spare = memory_grow(t->spare, &t->spare_capacity, t->byte_capacity, 1);
    for (size_t i = 0; i < left; i++) {
        struct perf_event_header head;
        memcpy(&head, t->bytes + t->waiting[i].offset, sizeof(head));
        memcpy(kept + place, t->bytes + t->waiting[i].offset, head.size);
        t->waiting[i].offset = place;
        place += (head.size + (size_t)7) & ~(size_t)7;
    }
    t->spare = t->bytes;
    t->bytes = kept;
    size_t capacity = t->spare_capacity;
    t->spare_capacity = t->byte_capacity;
    t->byte_capacity = capacity;
    t->byte_count = place;
}

static void read_sources(struct trace *t)
{
    for (t->reading = 0; t->reading < TRACE_SOURCES; t->reading++)
        if (t->sources[t->reading].is_sampling)
            rings_each(&t->sources[t->reading].sampling.rings, keep, t);
}

void trace_drain(struct trace *t, trace_fn *f, void *context)
{
    uint64_t now_ns = clock_now_ns();
    read_sources(t);
    give(t, t->horizon_ns, f, context);
    t->horizon_ns = now_ns;
}

void trace_stop(struct trace *t, trace_fn *f, void *context)
{
    read_sources(t);
    give(t, UINT64_MAX, f, context);
    for (size_t i = 0; i < TRACE_SOURCES; i++) {
        const struct trace_source *s = &t->sources[i];
        uint64_t counted = s->is_sampling ? sampling_lost(&s->sampling) : 0;
        uint64_t told = s->is_sampling ? s->sampling.rings.totals.lost : 0;
        t->lost += counted > told ? counted : told;
    }
    close_events(t);
}

int trace_field(const struct trace *t, size_t event, const char *name,
                struct trace_field *ret_field, struct error *err)
{
    size_t own = t->sources[TRACE_RUN].events.count;
    const char *full = event < own ? t->sources[TRACE_RUN].events.items[event].name
                                   : t->sources[TRACE_EVERYWHERE].events.items[event - own].name;
    return tracefs_field(full, name, ret_field, err);
}

int64_t trace_number(const struct trace_record *r, const struct trace_field *f)
{
    return tracefs_number(f, r->raw, r->raw_size);
}

void trace_sums_add(struct trace_sums *s, uint64_t ns)
{
    trace_sums_merge(s, &(struct trace_sums){1, ns, ns});
}

void trace_sums_merge(struct trace_sums *s, const struct trace_sums *other)
{
    s->count += other->count;
    s->total_ns += other->total_ns;
    s->max_ns = other->max_ns > s->max_ns ? other->max_ns : s->max_ns;
}

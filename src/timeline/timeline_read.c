/* SPDX-License-Identifier: MIT */
/* A recording as a timeline: see timeline_read.h. */
#include "timeline/timeline_read.h"
#include "base/memory.h"
#include "machine/tracefs.h"
#include "sampler/offcpu.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { READ_SWITCH, READ_WAKING, READ_ENTER, READ_LEAVE, READ_KINDS };
static const char *const event_names[READ_KINDS] = {
    "sched:sched_switch", "sched:sched_waking", "raw_syscalls:sys_enter", "raw_syscalls:sys_exit"};

enum { NAME_BYTES = 16 }; /* of a thread */

struct fields {
    struct trace_field previous, previous_name, state, next, next_name, target, flags;
    struct trace_field enter_number, enter_args, leave_number, leave_result;
};

static const struct {
    unsigned event;
    const char *name;
    size_t place; /* in struct fields */
} wanted[] = {
    {READ_SWITCH, "prev_pid", offsetof(struct fields, previous)},
    {READ_SWITCH, "prev_comm", offsetof(struct fields, previous_name)},
    {READ_SWITCH, "prev_state", offsetof(struct fields, state)},
    {READ_SWITCH, "next_pid", offsetof(struct fields, next)},
    {READ_SWITCH, "next_comm", offsetof(struct fields, next_name)},
    {READ_WAKING, "pid", offsetof(struct fields, target)},
    {READ_WAKING, "common_flags", offsetof(struct fields, flags)},
    {READ_ENTER, "id", offsetof(struct fields, enter_number)},
    {READ_ENTER, "args", offsetof(struct fields, enter_args)},
    {READ_LEAVE, "id", offsetof(struct fields, leave_number)},
    {READ_LEAVE, "ret", offsetof(struct fields, leave_result)},
};

/* The stack of a sample, found by when and whose it was. */
struct sample_stack {
    uint64_t time_ns;
    uint32_t tid, stack;
    bool is_off_cpu;
};

struct reading {
    struct timeline *t;
    struct perfdata *reader;
    struct fields fields;
    struct sample_stack *stacks;
    size_t stack_count;
};

static int find_fields(struct fields *f, struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        struct trace_field *field = (struct trace_field *)(void *)((char *)f + wanted[i].place);
        int r = tracefs_field(event_names[wanted[i].event], wanted[i].name, field, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int compare_stacks(const void *a, const void *b)
{
    const struct sample_stack *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void list_stacks(struct reading *r, const struct profile *p)
{
    r->stacks = memory_zalloc(p->sample_count + 1, sizeof(*r->stacks));
    for (size_t i = 0; i < p->sample_count; i++) {
        const struct profile_sample *s = &p->samples[i];
        r->stacks[r->stack_count++] =
            (struct sample_stack){s->time_ns, p->tasks.items[s->task].tid, p->call_nodes[s->node],
                                  p->events[s->event].is_off_cpu};
    }
    qsort(r->stacks, r->stack_count, sizeof(*r->stacks), compare_stacks);
}

static uint32_t find_stack(const struct reading *r, uint64_t time_ns, uint32_t tid, bool is_off_cpu)
{
    struct sample_stack key = {.time_ns = time_ns, .tid = tid};
    size_t low = 0, high = r->stack_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_stacks(&r->stacks[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < r->stack_count && compare_stacks(&r->stacks[low], &key) == 0; low++)
        if (r->stacks[low].is_off_cpu == is_off_cpu)
            return r->stacks[low].stack;
    return TIMELINE_NONE;
}

static void copy_name(const struct perfdata_sample *s, const struct trace_field *f,
                      char name[NAME_BYTES + 1])
{
    memset(name, 0, NAME_BYTES + 1);
    if (f->offset <= s->raw_size && s->raw_size - f->offset >= NAME_BYTES)
        memcpy(name, (const char *)s->raw + f->offset, NAME_BYTES);
}

static void feed_switch(struct reading *r, const struct perfdata_record *p,
                        struct timeline_event *e)
{
    const struct perfdata_sample *s = &p->sample;
    const struct fields *f = &r->fields;
    char previous_name[NAME_BYTES + 1], next_name[NAME_BYTES + 1];
    copy_name(s, &f->previous_name, previous_name);
    copy_name(s, &f->next_name, next_name);
    e->kind = TIMELINE_SWITCH;
    e->tid = (uint32_t)tracefs_number(&f->previous, s->raw, s->raw_size);
    e->change.next = (uint32_t)tracefs_number(&f->next, s->raw, s->raw_size);
    e->change.previous_state = tracefs_number(&f->state, s->raw, s->raw_size);
    e->change.previous_name = previous_name;
    e->change.next_name = next_name;
    e->change.stack = find_stack(r, p->time_ns, p->tid, false);
    timeline_feed(r->t, e);
}

static void feed_enter(struct reading *r, const struct perfdata_sample *s, struct timeline_event *e)
{
    const struct trace_field *args = &r->fields.enter_args;
    e->kind = TIMELINE_ENTER;
    e->enter.number = tracefs_number(&r->fields.enter_number, s->raw, s->raw_size);
    memset(e->enter.args, 0, sizeof(e->enter.args));
    for (size_t i = 0; i < TIMELINE_ARGS; i++) {
        struct trace_field one = {args->offset + i * (args->size / TIMELINE_ARGS),
                                  args->size / TIMELINE_ARGS};
        e->enter.args[i] = (uint64_t)tracefs_number(&one, s->raw, s->raw_size);
    }
    timeline_feed(r->t, e);
}

static void feed_tracepoint(struct reading *r, unsigned kind, const struct perfdata_record *p)
{
    const struct perfdata_sample *s = &p->sample;
    const struct fields *f = &r->fields;
    struct timeline_event e = {.time_ns = p->time_ns, .cpu = p->cpu, .tid = p->tid};
    switch (kind) {
    case READ_SWITCH:
        feed_switch(r, p, &e);
        break;
    case READ_WAKING:
        e.kind = TIMELINE_WAKING;
        e.waking.target = (uint32_t)tracefs_number(&f->target, s->raw, s->raw_size);
        e.waking.flags = (uint64_t)tracefs_number(&f->flags, s->raw, s->raw_size);
        timeline_feed(r->t, &e);
        break;
    case READ_ENTER:
        feed_enter(r, s, &e);
        break;
    default:
        e.kind = TIMELINE_LEAVE;
        e.leave.number = tracefs_number(&f->leave_number, s->raw, s->raw_size);
        e.leave.result = tracefs_number(&f->leave_result, s->raw, s->raw_size);
        timeline_feed(r->t, &e);
        break;
    }
}

static void feed_sample(struct reading *r, const struct perfdata_record *p)
{
    if (!p->event)
        return;
    if (p->event->attr.type == PERF_TYPE_TRACEPOINT) {
        for (unsigned kind = 0; kind < READ_KINDS; kind++)
            if (str_has_prefix(p->event->name, event_names[kind]))
                feed_tracepoint(r, kind, p);
        return;
    }
    bool is_off_cpu = offcpu_is_event(p->event);
    struct timeline_event e = {.kind = is_off_cpu ? TIMELINE_STACK : TIMELINE_SAMPLE,
                               .time_ns = p->time_ns,
                               .cpu = p->cpu,
                               .tid = p->tid,
                               .stack = find_stack(r, p->time_ns, p->tid, is_off_cpu)};
    if (e.stack != TIMELINE_NONE)
        timeline_feed(r->t, &e);
}

static void feed_record(struct reading *r, const struct perfdata_record *p)
{
    struct timeline_event e = {.time_ns = p->time_ns, .cpu = p->cpu};
    switch (p->type) {
    case PERF_RECORD_SAMPLE:
        feed_sample(r, p);
        break;
    case PERF_RECORD_FORK:
        e.kind = TIMELINE_FORK;
        e.tid = p->task.ptid;
        e.fork.child_pid = p->task.pid;
        e.fork.child_tid = p->task.tid;
        timeline_feed(r->t, &e);
        break;
    case PERF_RECORD_COMM:
        e.kind = TIMELINE_NAME;
        e.tid = p->comm.tid;
        e.name.name = p->comm.comm;
        e.name.is_exec = p->comm.is_exec;
        timeline_feed(r->t, &e);
        break;
    default:
        break;
    }
}

static int read_events(struct reading *r, struct error *err)
{
    struct perfdata_record p;
    uint64_t last_ns = r->t->start_ns;
    int got;
    while ((got = perfdata_next(r->reader, &p, err)) > 0) {
        if (!p.time_ns || p.time_ns < r->t->start_ns)
            continue;
        feed_record(r, &p);
        last_ns = p.time_ns > last_ns ? p.time_ns : last_ns;
    }
    timeline_finish(r->t, last_ns);
    return got;
}

int timeline_read(struct timeline *t, struct profile **ret_profile,
                  const struct timeline_recording *recording, struct error *err)
{
    struct reading r = {.t = t};
    /* Of system calls only the numbers are wanted, and no sample need be kept. */
    static const char *const sampled[] = {"cpu-clock*", "cycles*", OFFCPU_EVENT_NAME "*",
                                          "sched:sched_switch"};
    struct profile_options options = {
        .want = SYMBOLS_INLINES,
        .fold_variants = true,
        .with_samples = true,
        .filter = {.events = {.patterns = sampled, .count = ARRAY_COUNT(sampled)}}};
    timeline_init(t);
    int code = find_fields(&r.fields, err);
    if (code == 0)
        code = profile_load(ret_profile, recording->path, &options, err);
    if (code < 0)
        return code;
    profile_symbolize(*ret_profile);
    list_stacks(&r, *ret_profile);
    t->without_calls = recording->without_calls;
    timeline_begin(t, recording->pid, recording->name, recording->start_ns);
    code = perfdata_open(&r.reader, recording->path, NULL, err);
    if (code == 0)
        code = read_events(&r, err);
    perfdata_free(r.reader);
    free(r.stacks);
    if (code < 0) {
        profile_free(*ret_profile);
        *ret_profile = NULL;
    }
    return code;
}

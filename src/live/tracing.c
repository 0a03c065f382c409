/* SPDX-License-Identifier: MIT */
/* What `assay trace` prints: see tracing.h.  tracing_text.c has the table at the end. */
#include "live/tracing.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "machine/tracefs.h"
#include "tracepoints/waking.h"

#include <errno.h>
#include <unistd.h>

#define SPILL_BYTES (64u << 10)

enum { EVENT_ENTER, EVENT_EXIT };

static const char fault_event_name[] = "exceptions:page_fault_user";

/* "id == 0 || id == 1" for the calls that are wanted. */
static int plan_calls(struct tracing *t, struct error *err)
{
    const char *at = t->options.only;
    while (at && *at) {
        size_t length = strcspn(at, ",");
        CLEANUP(memory_freep) char *name = memory_strndup(at, length);
        uint32_t number = calls_number(t->names, name);
        if (number == UINT32_MAX)
            return error_set(err, -EINVAL, "there is no system call '%s' on this machine", name);
        strbuf_printf(&t->call_filter, "%sid == %u", t->call_filter.length ? " || " : "", number);
        at += length + (at[length] == ',');
    }
    return 0;
}

int tracing_plan(struct tracing *t, const struct tracing_options *o, struct trace_spec *spec,
                 struct error *err)
{
    *t = (struct tracing){.options = *o, .out = stdout, .own_pid = (uint32_t)getpid()};
    idtable_init(&t->table, 6);
    t->names = calls_new();
    int r = plan_calls(t, err);
    if (r < 0)
        return r;
    const char *between = "";
    if (o->calls) {
        strbuf_puts(&t->event_list, "raw_syscalls:sys_enter,raw_syscalls:sys_exit");
        t->first_event = 2;
        between = ",";
    }
    t->fault_event = t->wake_event = SIZE_MAX;
    if (o->faults) {
        t->fault_event = t->first_event++;
        strbuf_printf(&t->event_list, "%s%s", between, fault_event_name);
        between = ",";
    }
    if (o->events)
        strbuf_printf(&t->event_list, "%s%s", between, o->events);
    if (!t->event_list.length) /* something must carry the records of switches */
        strbuf_puts(&t->event_list, "sched:sched_process_exec");
    *spec = (struct trace_spec){.events = strbuf_text(&t->event_list),
                                .filter = o->filter,
                                .filter_from = t->first_event,
                                .first_filter = o->only ? strbuf_text(&t->call_filter) : NULL,
                                .everywhere = o->wakes ? "sched:sched_waking" : NULL,
                                .switches = o->waits || o->wakes};
    if (o->only && o->faults)
        return error_set(err, -EINVAL, "--call and --faults cannot be used together");
    return 0;
}

static int read_formats(struct tracing *t, const struct follow *f, struct error *err)
{
    const struct event_list *own = &f->trace.sources[TRACE_RUN].events,
                            *others = &f->trace.sources[TRACE_EVERYWHERE].events;
    CLEANUP(fd_closep) int events_fd = tracefs_open_events(err);
    if (events_fd < 0)
        return events_fd;
    t->wake_event = t->options.wakes ? own->count : SIZE_MAX;
    t->formats = memory_zalloc(own->count + others->count, sizeof(*t->formats));
    for (size_t i = 0; i < own->count + others->count; i++) {
        const char *full = i < own->count ? own->items[i].name : others->items[i - own->count].name;
        size_t length = strcspn(full, ":");
        CLEANUP(memory_freep) char *system = memory_strndup(full, length);
        const char *rest = full[length] ? full + length + 1 : "";
        CLEANUP(memory_freep) char *name = memory_strndup(rest, strcspn(rest, ":"));
        int r = tp_format_read(&t->formats[i], events_fd, system, name, err);
        if (r < 0)
            return error_wrap(err, r, "%s", full);
        t->format_count++;
    }
    return 0;
}

static int find_fields(struct tracing *t, const struct follow *f, struct error *err)
{
    int r = 0;
    if (t->options.calls) {
        r = trace_field(&f->trace, EVENT_ENTER, "id", &t->enter_id, err);
        if (r == 0)
            r = trace_field(&f->trace, EVENT_ENTER, "args", &t->enter_args, err);
        if (r == 0)
            r = trace_field(&f->trace, EVENT_EXIT, "id", &t->exit_id, err);
        if (r == 0)
            r = trace_field(&f->trace, EVENT_EXIT, "ret", &t->exit_ret, err);
    }
    if (r == 0 && t->fault_event != SIZE_MAX) {
        t->fault_address = tp_format_field(&t->formats[t->fault_event], "address");
        t->fault_code = tp_format_field(&t->formats[t->fault_event], "error_code");
    }
    if (r == 0 && t->wake_event != SIZE_MAX) {
        t->wake_pid = tp_format_field(&t->formats[t->wake_event], "pid");
        t->wake_flags = tp_format_field(&t->formats[t->wake_event], "common_flags");
    }
    return r;
}

static uint64_t hash_thread(const void *items, uint32_t id)
{
    return hash_mix(((const struct tracing_thread *)items)[id].tid, 0);
}

static struct tracing_thread *find_thread(struct tracing *t, uint32_t pid, uint32_t tid)
{
    uint32_t slot, id;
    IDTABLE_EACH(&t->table, hash_mix(tid, 0), slot, id)
    if (t->threads[id].tid == tid)
        return &t->threads[id];
    id = (uint32_t)t->thread_count;
    struct tracing_thread *thread = &ARRAY_PUSH(t->threads, t->thread_count, t->thread_capacity);
    *thread = (struct tracing_thread){.pid = pid, .tid = tid};
    idtable_put(&t->table, slot, id);
    if (idtable_is_crowded(&t->table))
        idtable_grow(&t->table, hash_thread, t->threads);
    return thread;
}

static void take_memory(void *context, struct peek_record *record)
{
    struct tracing *t = context;
    struct tracing_thread *thread = find_thread(t, 0, record->tid);
    /* Each CPU has a ring of its own: what a thread did on two of them comes in any order. */
    struct peek_record **at = &thread->peeked;
    while (*at && (*at)->time_ns <= record->time_ns)
        at = &(*at)->next;
    record->next = *at;
    *at = record;
}

/* Reading memory is an addition: without it the trace is as good as before. */
static void start_peeking(struct tracing *t, const struct follow *f)
{
    struct error err;
    if (!t->options.calls || t->options.summary)
        return;
    t->peek.take = take_memory;
    int r = peek_open(&t->peek, f->tasks, f->task_count, f->spec.whole_machine, &err);
    t->peek.take = take_memory;
    t->peek.context = t;
    for (uint32_t i = 0; r == 0 && i < PEEK_NUMBERS; i++) {
        struct peek_shape shape;
        char room[32];
        const char *name = calls_name(t->names, i, room, sizeof(room));
        if (calls_number(t->names, name) == i && peek_shape_of(calls_table_shape(name), &shape))
            r = peek_want(&t->peek, i, &shape, &err);
    }
    if (r < 0) {
        peek_done(&t->peek);
        strbuf_printf(&t->note, "texts of arguments are not shown: %s", err.message);
    }
}

int tracing_prepare(struct tracing *t, struct follow *f, struct error *err)
{
    int r = read_formats(t, f, err);
    if (r == 0)
        r = find_fields(t, f, err);
    if (r == 0)
        start_peeking(t, f);
    return r;
}

/* What was read for the call that the thread enters now: the newest before this moment. */
static bool take_peeked(struct tracing_thread *thread, const struct peek_shape *shape,
                        uint64_t time_ns)
{
    bool is_found = false;
    while (thread->peeked && thread->peeked->time_ns <= time_ns) {
        struct peek_record *first = thread->peeked;
        bool is_last = !first->next || first->next->time_ns > time_ns;
        if (is_last && first->number == thread->call.number) {
            memcpy(thread->call.memory, first->memory, sizeof(thread->call.memory));
            memcpy(thread->call.memory_of, shape->argument, sizeof(thread->call.memory_of));
            is_found = true;
        }
        thread->peeked = first->next;
        free(first);
    }
    return is_found;
}

static void attach_memory(struct tracing *t, struct tracing_thread **thread, uint64_t time_ns)
{
    struct peek_shape shape;
    uint32_t tid = (*thread)->tid, number = (*thread)->call.number;
    if (!t->peek.is_open || !peek_shape_of(calls_shape(t->names, number), &shape) ||
        take_peeked(*thread, &shape, time_ns))
        return;
    peek_drain(&t->peek);
    *thread = find_thread(t, 0, tid);
    take_peeked(*thread, &shape, time_ns);
}

/* What was not there at the call's entry was read at its return. */
static void attach_late_memory(struct tracing *t, struct tracing_thread **thread, uint64_t time_ns)
{
    struct peek_shape shape;
    const struct call *call = &(*thread)->call;
    bool is_missing = false;
    if (!t->peek.is_open || t->options.summary || !call->has_arguments ||
        !peek_shape_of(calls_shape(t->names, call->number), &shape))
        return;
    for (unsigned i = 0; i < PEEK_SLOTS; i++)
        is_missing |= shape.argument[i] != UINT8_MAX && call->arguments[shape.argument[i]] &&
                      !call->memory[i].size;
    if (!is_missing)
        return;
    uint32_t tid = (*thread)->tid;
    peek_drain(&t->peek);
    *thread = find_thread(t, 0, tid);
    struct call before = (*thread)->call;
    if (!take_peeked(*thread, &shape, time_ns))
        return;
    for (unsigned i = 0; i < PEEK_SLOTS; i++)
        if (before.memory[i].size)
            (*thread)->call.memory[i] = before.memory[i];
}

static void begin_line(struct tracing *t, const struct tracing_thread *thread, uint64_t time_ns)
{
    if (t->options.times)
        strbuf_printf(&t->text, "%11.6f ",
                      time_ns > t->start_ns ? (double)(time_ns - t->start_ns) / 1e9 : 0.0);
    if (t->has_several)
        strbuf_printf(&t->text, "[pid %5u] ", thread->tid);
}

static void begin_json(struct tracing *t, struct json *j, const char *kind,
                       const struct tracing_thread *thread, uint64_t time_ns)
{
    *j = (struct json){.out = &t->text, .compact = true};
    json_object(j, NULL);
    json_string(j, "type", kind);
    json_u64(j, "time_ns", time_ns);
    json_u64(j, "pid", thread->pid);
    json_u64(j, "tid", thread->tid);
}

void tracing_spill(struct tracing *t)
{
    if (t->text.length && !t->is_broken &&
        fwrite(t->text.data, 1, t->text.length, t->out) != t->text.length)
        t->is_broken = true;
    strbuf_clear(&t->text);
}

static void put_call(struct tracing *t, const struct tracing_thread *thread, uint64_t end_ns)
{
    const struct call *call = &thread->call;
    uint64_t took_ns =
        thread->entered_ns && end_ns > thread->entered_ns ? end_ns - thread->entered_ns : 0;
    if (t->options.json) {
        struct json j;
        begin_json(t, &j, "call", thread, thread->entered_ns ? thread->entered_ns : end_ns);
        calls_put_json(t->names, call, &j);
        if (call->has_result && thread->entered_ns)
            json_u64(&j, "duration_ns", took_ns);
        json_end(&j);
    } else {
        begin_line(t, thread, thread->entered_ns ? thread->entered_ns : end_ns);
        calls_put(t->names, call, &t->text);
        calls_put_result(t->names, call, &t->text);
        if (call->has_result && thread->entered_ns)
            strbuf_printf(&t->text, " <%llu.%06llu>", (unsigned long long)(took_ns / NS_PER_S),
                          (unsigned long long)(took_ns % NS_PER_S / 1000));
        strbuf_putc(&t->text, '\n');
    }
    t->lines++;
    if (t->text.length >= SPILL_BYTES)
        tracing_spill(t);
}

static struct tracing_sum *sum_of(struct tracing *t, uint32_t number)
{
    size_t before = t->sum_capacity;
    if (number >= PEEK_NUMBERS * 2)
        number = PEEK_NUMBERS * 2 - 1;
    if (number >= before) {
        t->sums = memory_grow(t->sums, &t->sum_capacity, (size_t)number + 1, sizeof(*t->sums));
        memset(t->sums + before, 0, (t->sum_capacity - before) * sizeof(*t->sums));
    }
    return &t->sums[number];
}

static void enter(struct tracing *t, struct tracing_thread *thread, const struct trace_record *r)
{
    thread->call = (struct call){.has_arguments = true};
    thread->call.number = (uint32_t)trace_number(r, &t->enter_id);
    thread->entered_ns = r->time_ns;
    thread->has_called = true;
    if (t->enter_args.offset + sizeof(thread->call.arguments) <= r->raw_size)
        memcpy(thread->call.arguments, r->raw + t->enter_args.offset,
               sizeof(thread->call.arguments));
    sum_of(t, thread->call.number)->count++;
    attach_memory(t, &thread, r->time_ns);
    const char *name;
    char room[32];
    name = calls_name(t->names, thread->call.number, room, sizeof(room));
    if (!str_eq(name, "exit") && !str_eq(name, "exit_group"))
        return;
    if (!t->options.summary)
        put_call(t, thread, r->time_ns);
    thread->entered_ns = 0;
}

/* What the kernel gives as the number of a call that is none any more. */
static const uint32_t NO_CALL = UINT32_MAX;

/* A child's first return is from the call that made it, which is its parent's. */
static bool is_second_return(const struct tracing *t, uint32_t number)
{
    char room[32];
    const char *name = calls_name(t->names, number, room, sizeof(room));
    return str_eq(name, "fork") || str_eq(name, "vfork") || str_has_prefix(name, "clone");
}

static void leave(struct tracing *t, struct tracing_thread *thread, const struct trace_record *r)
{
    uint32_t number = (uint32_t)trace_number(r, &t->exit_id);
    if (number == NO_CALL && thread->entered_ns) /* rt_sigreturn restores the registers */
        number = thread->call.number;
    bool is_known = thread->entered_ns && thread->call.number == number;
    if (!is_known && !thread->has_called && is_second_return(t, number)) {
        thread->has_called = true;
        return;
    }
    thread->has_called = true;
    if (!is_known) {
        thread->call = (struct call){.number = number};
        thread->entered_ns = 0;
        sum_of(t, number)->count++;
    }
    thread->call.has_result = true;
    thread->call.result = trace_number(r, &t->exit_ret);
    struct tracing_sum *sum = sum_of(t, number);
    sum->errors += call_failed(&thread->call);
    if (is_known && r->time_ns >= thread->entered_ns)
        durations_add(&sum->times, r->time_ns - thread->entered_ns);
    if (is_known)
        attach_late_memory(t, &thread, r->time_ns);
    if (!t->options.summary)
        put_call(t, thread, r->time_ns);
    thread->entered_ns = 0;
}

/* The bits of the processor's error code: present, write, user, reserved, instruction. */
static void put_fault(struct tracing *t, const struct tracing_thread *thread,
                      const struct trace_record *r)
{
    struct tp_record record = {r->raw, r->raw_size};
    uint64_t address = t->fault_address ? (uint64_t)tp_number(t->fault_address, record) : 0;
    uint64_t code = t->fault_code ? (uint64_t)tp_number(t->fault_code, record) : 0;
    const char *access = code & 16 ? "execute" : code & 2 ? "write" : "read";
    if (t->options.json) {
        struct json j;
        begin_json(t, &j, "fault", thread, r->time_ns);
        json_u64(&j, "address", address);
        json_string(&j, "access", access);
        json_bool(&j, "present", code & 1);
        json_end(&j);
        return;
    }
    begin_line(t, thread, r->time_ns);
    strbuf_printf(&t->text, "--- page fault: %s at 0x%llx%s ---\n", access,
                  (unsigned long long)address, code & 1 ? " (protected page)" : "");
}

static void put_event(struct tracing *t, const struct tracing_thread *thread,
                      const struct trace_record *r)
{
    const struct tp_format *f = &t->formats[r->event];
    struct tp_record record = {r->raw, r->raw_size};
    if (t->options.json) {
        struct json j;
        begin_json(t, &j, "event", thread, r->time_ns);
        CLEANUP(memory_freep) char *name = memory_printf("%s:%s", f->system, f->name);
        json_string(&j, "event", name);
        json_object(&j, "fields");
        tp_put_json(f, record, &j);
        json_end(&j);
        json_end(&j);
        return;
    }
    begin_line(t, thread, r->time_ns);
    strbuf_printf(&t->text, "%s:%s: ", f->system, f->name);
    tp_put(f, record, &t->text);
    strbuf_putc(&t->text, '\n');
}

static void put_wait(struct tracing *t, const struct tracing_thread *thread, uint64_t end_ns)
{
    uint64_t took_ns = end_ns > thread->left_ns ? end_ns - thread->left_ns : 0;
    char text[32];
    if (t->options.json) {
        struct json j;
        begin_json(t, &j, "wait", thread, thread->left_ns);
        json_u64(&j, "duration_ns", took_ns);
        json_bool(&j, "preempted", thread->was_preempted);
        if (thread->waker_pid)
            json_u64(&j, "woken_by", thread->waker_pid);
        if (thread->by_interrupt)
            json_bool(&j, "woken_by_interrupt", true);
        json_end(&j);
        return;
    }
    begin_line(t, thread, thread->left_ns);
    strbuf_printf(&t->text, "--- %s %s", thread->was_preempted ? "preempted for" : "waited",
                  format_duration((double)took_ns, text, sizeof(text)));
    if (thread->waker_pid)
        strbuf_printf(&t->text, ", woken by thread %u", thread->waker_pid);
    else if (thread->by_interrupt)
        strbuf_puts(&t->text, ", woken by a timer or a device");
    strbuf_puts(&t->text, " ---\n");
}

static void take_switch(struct tracing *t, struct tracing_thread *thread,
                        const struct trace_record *r)
{
    if (r->kind == TRACE_LEAVES) {
        thread->left_ns = r->time_ns;
        thread->was_preempted = r->is_preempted;
        thread->waker_pid = 0;
        thread->by_interrupt = false;
    } else if (thread->left_ns) {
        put_wait(t, thread, r->time_ns);
        thread->left_ns = 0;
    }
}

static struct tracing_thread *known_thread(struct tracing *t, uint32_t tid)
{
    uint32_t slot, id;
    IDTABLE_EACH(&t->table, hash_mix(tid, 0), slot, id)
    if (t->threads[id].tid == tid)
        return &t->threads[id];
    return NULL;
}

/* Somebody wakes a thread, perhaps one of ours. */
static void take_waking(struct tracing *t, const struct trace_record *r)
{
    struct tp_record record = {r->raw, r->raw_size};
    struct tracing_thread *woken =
        known_thread(t, t->wake_pid ? (uint32_t)tp_number(t->wake_pid, record) : 0);
    if (!woken)
        return;
    const struct tracing_thread *current = known_thread(t, r->tid);
    uint64_t flags = t->wake_flags ? (uint64_t)tp_number(t->wake_flags, record) : 0;
    int64_t call = current && current->entered_ns ? current->call.number : WAKING_NO_CALL;
    woken->by_interrupt = !waking_is_by_thread(r->tid, flags, call);
    woken->waker_pid = woken->by_interrupt ? 0 : r->tid;
}

void tracing_take(void *context, const struct trace_record *r)
{
    struct tracing *t = context;
    if (r->pid == t->own_pid || (r->pid == UINT32_MAX && r->tid == UINT32_MAX))
        return;
    if (r->kind == TRACE_EVENT && r->event == t->wake_event) {
        take_waking(t, r);
        return;
    }
    if (!t->start_ns)
        t->start_ns = r->time_ns;
    if (!t->first_tid)
        t->first_tid = r->tid;
    t->has_several |= r->tid != t->first_tid;
    struct tracing_thread *thread = find_thread(t, r->pid, r->tid);
    thread->pid = r->pid;
    if (r->kind != TRACE_EVENT)
        take_switch(t, thread, r);
    else if (t->options.calls && r->event == EVENT_ENTER)
        enter(t, thread, r);
    else if (t->options.calls && r->event == EVENT_EXIT)
        leave(t, thread, r);
    else if (r->event == t->fault_event)
        put_fault(t, thread, r);
    else if (t->options.events && !t->options.summary)
        put_event(t, thread, r);
    if (t->text.length >= SPILL_BYTES)
        tracing_spill(t);
}

void tracing_pause(void *context)
{
    struct tracing *t = context;
    peek_drain(&t->peek);
    tracing_spill(t);
    if (fflush(t->out) != 0)
        t->is_broken = true;
}

/* Calls that did not return while it was looked at. */
void tracing_put_unfinished(struct tracing *t)
{
    for (size_t i = 0; i < t->thread_count && !t->options.summary; i++)
        if (t->threads[i].entered_ns)
            put_call(t, &t->threads[i], t->threads[i].entered_ns);
}

void tracing_done(struct tracing *t)
{
    peek_done(&t->peek);
    calls_free(t->names);
    for (size_t i = 0; i < t->format_count; i++)
        tp_format_done(&t->formats[i]);
    free(t->formats);
    for (size_t i = 0; i < t->thread_count; i++)
        for (struct peek_record *r = t->threads[i].peeked, *next; r; r = next) {
            next = r->next;
            free(r);
        }
    for (size_t i = 0; i < t->sum_capacity; i++)
        durations_done(&t->sums[i].times);
    free(t->sums);
    free(t->threads);
    idtable_done(&t->table);
    strbuf_done(&t->text);
    strbuf_done(&t->event_list);
    strbuf_done(&t->call_filter);
    strbuf_done(&t->note);
}

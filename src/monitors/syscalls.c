/* SPDX-License-Identifier: MIT */
/*
 * syscalls: the system calls of the run's threads by name, how many and how long.
 *
 *   what is read             what it says
 *   raw_syscalls:sys_enter   a thread enters the kernel for call `id`
 *   raw_syscalls:sys_exit    it goes back
 *
 *   what follows, by name: syscalls.count.NAME, time.ms.NAME, avg.us.NAME, max.us.NAME;
 *   syscalls.total.{count,ms} over all; syscalls.lost: records that did not fit into the buffers
 *
 * Calls that do not return (exit, exit_group, the first execve's entry) have a count and no time;
 * the time of one that sleeps is the time until it goes on.
 */
#include "monitors/syscalls.h"
#include "base/memory.h"
#include "monitors/monitor.h"
#include "monitors/syscall_names.h"
#include "monitors/trace.h"

#include <stdio.h>

enum { EVENT_ENTER, EVENT_EXIT };
static const struct trace_spec what = {.events = "raw_syscalls:sys_enter,raw_syscalls:sys_exit"};

enum { NUMBERS_MAX = 1024 }; /* higher ones are counted together */

struct syscall_thread {
    uint32_t tid;
    uint32_t number;
    uint64_t entered_ns; /* 0 outside of a call */
};

struct syscalls {
    struct trace trace;
    struct trace_field enter_id, exit_id;
    struct syscall_thread *threads;
    size_t thread_count, thread_capacity;
    struct idtable table;
    uint64_t counts[NUMBERS_MAX];
    struct trace_sums sums[NUMBERS_MAX]; /* of those that returned */
};

static uint64_t hash_thread(const void *items, uint32_t id)
{
    return hash_mix(((const struct syscall_thread *)items)[id].tid, 0);
}

static struct syscall_thread *find_thread(struct syscalls *s, uint32_t tid)
{
    uint32_t slot, id;
    IDTABLE_EACH(&s->table, hash_mix(tid, 0), slot, id)
    if (s->threads[id].tid == tid)
        return &s->threads[id];
    id = (uint32_t)s->thread_count;
    struct syscall_thread *t = &ARRAY_PUSH(s->threads, s->thread_count, s->thread_capacity);
    *t = (struct syscall_thread){.tid = tid};
    idtable_put(&s->table, slot, id);
    if (idtable_is_crowded(&s->table))
        idtable_grow(&s->table, hash_thread, s->threads);
    return t;
}

static uint32_t number_of(const struct trace_record *r, const struct trace_field *field)
{
    int64_t id = trace_number(r, field);
    return id >= 0 && id < NUMBERS_MAX ? (uint32_t)id : NUMBERS_MAX - 1;
}

/* rt_sigreturn restores the registers, the number of the interrupted call too: -1, if there was
 * none. */
static bool is_end_of(const struct syscalls *s, const struct syscall_thread *t,
                      const struct trace_record *r)
{
    return t->entered_ns && r->time_ns >= t->entered_ns &&
           (trace_number(r, &s->exit_id) < 0 || number_of(r, &s->exit_id) == t->number);
}

static void feed(void *context, const struct trace_record *r)
{
    struct syscalls *s = context;
    if (r->kind != TRACE_EVENT)
        return;
    struct syscall_thread *t = find_thread(s, r->tid);
    if (r->event == EVENT_ENTER) {
        t->number = number_of(r, &s->enter_id);
        t->entered_ns = r->time_ns;
        s->counts[t->number]++;
    } else {
        if (is_end_of(s, t, r))
            trace_sums_add(&s->sums[t->number], r->time_ns - t->entered_ns);
        t->entered_ns = 0;
    }
}

static void syscalls_done(struct monitor_instance *i)
{
    struct syscalls *s = i->extra;
    if (!s)
        return;
    trace_close(&s->trace);
    idtable_done(&s->table);
    free(s->threads);
    free(s);
    i->extra = NULL;
}

static int syscalls_open(struct monitor_instance *i, struct error *err)
{
    struct syscalls *s = i->extra = memory_zalloc(1, sizeof(*s));
    idtable_init(&s->table, 6);
    int r = trace_open(&s->trace, &what, err);
    if (r == 0)
        r = trace_field(&s->trace, EVENT_ENTER, "id", &s->enter_id, err);
    if (r == 0)
        r = trace_field(&s->trace, EVENT_EXIT, "id", &s->exit_id, err);
    return r;
}

static int syscalls_start(struct monitor_instance *i, struct error *err)
{
    struct syscalls *s = i->extra;
    idtable_done(&s->table);
    idtable_init(&s->table, 6);
    s->thread_count = 0;
    memset(s->counts, 0, sizeof(s->counts));
    memset(s->sums, 0, sizeof(s->sums));
    return trace_start(&s->trace, err);
}

static void syscalls_drain(struct monitor_instance *i)
{
    struct syscalls *s = i->extra;
    trace_drain(&s->trace, feed, s);
}

static void put_call(uint64_t count, const struct trace_sums *s, const char *name,
                     struct monitor_sink *sink)
{
    const struct {
        const char *prefix, *unit;
        double value;
    } figures[] = {
        {"syscalls.count.", "", (double)count},
        {"syscalls.time.ms.", "ms", (double)s->total_ns / 1e6},
        {"syscalls.avg.us.", "us", s->count ? (double)s->total_ns / (double)s->count / 1e3 : 0},
        {"syscalls.max.us.", "us", (double)s->max_ns / 1e3},
    };
    for (size_t f = 0; f < (s->count ? ARRAY_COUNT(figures) : 1); f++) {
        sink_prefix(sink, figures[f].prefix, NULL);
        sink_put_text(sink, name, figures[f].value, COLUMN_LAST, figures[f].unit);
    }
}

static const char *name_in(const char *const *names, size_t count, uint64_t number, char *buffer,
                           size_t size)
{
    if (number < count && names[number])
        return names[number];
    snprintf(buffer, size, "number-%llu", (unsigned long long)number);
    return buffer;
}

const char *syscall_name(uint64_t number, char *buffer, size_t size)
{
    return name_in(syscall_names, ARRAY_COUNT(syscall_names), number, buffer, size);
}

const char *syscall_name_arm64(uint64_t number, char *buffer, size_t size)
{
    return name_in(syscall_names_arm64, ARRAY_COUNT(syscall_names_arm64), number, buffer, size);
}

static void syscalls_read(struct monitor_instance *i, struct monitor_sink *sink)
{
    struct syscalls *s = i->extra;
    struct trace_sums total = {0};
    uint64_t count = 0;
    trace_stop(&s->trace, feed, s);
    for (size_t n = 0; n < NUMBERS_MAX; n++) {
        count += s->counts[n];
        trace_sums_merge(&total, &s->sums[n]);
    }
    sink_prefix(sink, "syscalls.", NULL);
    sink_put_text(sink, "total.count", (double)count, COLUMN_LAST, "");
    sink_put_text(sink, "total.ms", (double)total.total_ns / 1e6, COLUMN_LAST, "ms");
    sink_put_text(sink, "lost", (double)s->trace.lost, COLUMN_LAST, "");
    for (size_t n = 0; n < NUMBERS_MAX; n++) {
        char number[32];
        if (s->counts[n])
            put_call(s->counts[n], &s->sums[n],
                     n == NUMBERS_MAX - 1 ? "other" : syscall_name(n, number, sizeof(number)),
                     sink);
    }
}

const struct monitor monitor_syscalls = {
    .name = "syscalls",
    .what = "the run's system calls by name: how many, and how long they took",
    .class = MONITOR_TRACES,
    .open = syscalls_open,
    .start = syscalls_start,
    .drain = syscalls_drain,
    .read = syscalls_read,
    .done = syscalls_done,
};

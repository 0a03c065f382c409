/* SPDX-License-Identifier: MIT */
/*
 * lock-contention: the kernel's locks that the run's threads found taken, by the call chain that
 * wanted them (whose inner end tells the kind of lock: rwsem, mutex, spin lock).
 *
 *   what is read                        what it says
 *   lock:contention_begin, call chain   the lock is taken: from here on the thread spins or sleeps
 *   lock:contention_end                 it has the lock, or gave up
 *
 *   what follows, by chain: count, total.ms, avg.ms, max.ms; lock-contention.total.{count,ms} over
 *   all; lock-contention.unended: waits without an end in the run; lock-contention.lost: records
 *   that did not fit into the buffers
 *
 * Locks in user space wait in futexes: perf-sched shows them.
 */
#include "base/memory.h"
#include "monitors/monitor.h"
#include "monitors/trace.h"

#include <stdio.h>

enum { EVENT_BEGIN, EVENT_END };
static const struct trace_spec what = {.events = "lock:contention_begin,lock:contention_end",
                                       .stacks = true};

static const char *const skips[] = {NULL};

/* Locks that threads wait for now: few at any time. */
struct lock_wait {
    uint32_t tid, chain;
    uint64_t lock, begin_ns;
};

struct lock_contention {
    struct trace trace;
    struct trace_field begin_lock, end_lock;
    struct chains chains;
    struct lock_wait *waits;
    size_t wait_count, wait_capacity;
    struct trace_sums *sums; /* by chain */
    size_t sum_capacity;
};

static size_t find_wait(const struct lock_contention *l, uint32_t tid, uint64_t lock)
{
    size_t w = 0;
    while (w < l->wait_count && (l->waits[w].tid != tid || l->waits[w].lock != lock))
        w++;
    return w;
}

/* A mutex begins twice, spinning and then sleeping: the first counts. */
static void begin(struct lock_contention *l, const struct trace_record *r)
{
    uint64_t lock = (uint64_t)trace_number(r, &l->begin_lock);
    if (find_wait(l, r->tid, lock) < l->wait_count)
        return;
    uint32_t chain = chains_intern(&l->chains, r->chain, r->chain_count);
    ARRAY_PUSH(l->waits, l->wait_count, l->wait_capacity) =
        (struct lock_wait){r->tid, chain, lock, r->time_ns};
}

static void end(struct lock_contention *l, const struct trace_record *r)
{
    size_t w = find_wait(l, r->tid, (uint64_t)trace_number(r, &l->end_lock));
    if (w == l->wait_count)
        return;
    struct lock_wait wait = l->waits[w];
    l->waits[w] = l->waits[--l->wait_count];
    if (l->sum_capacity < l->chains.count) {
        size_t before = l->sum_capacity;
        l->sums = memory_grow(l->sums, &l->sum_capacity, l->chains.count, sizeof(*l->sums));
        memset(l->sums + before, 0, (l->sum_capacity - before) * sizeof(*l->sums));
    }
    trace_sums_add(&l->sums[wait.chain],
                   r->time_ns > wait.begin_ns ? r->time_ns - wait.begin_ns : 0);
}

static void feed(void *context, const struct trace_record *r)
{
    if (r->kind != TRACE_EVENT)
        return;
    if (r->event == EVENT_BEGIN)
        begin(context, r);
    else
        end(context, r);
}

static void lock_done(struct monitor_instance *i)
{
    struct lock_contention *l = i->extra;
    if (!l)
        return;
    trace_close(&l->trace);
    chains_done(&l->chains);
    free(l->waits);
    free(l->sums);
    free(l);
    i->extra = NULL;
}

static int lock_open(struct monitor_instance *i, struct error *err)
{
    struct lock_contention *l = i->extra = memory_zalloc(1, sizeof(*l));
    chains_init(&l->chains);
    int r = trace_open(&l->trace, &what, err);
    if (r == 0)
        r = trace_field(&l->trace, EVENT_BEGIN, "lock_addr", &l->begin_lock, err);
    if (r == 0)
        r = trace_field(&l->trace, EVENT_END, "lock_addr", &l->end_lock, err);
    return r == 0 ? chains_check(err) : r;
}

static int lock_start(struct monitor_instance *i, struct error *err)
{
    struct lock_contention *l = i->extra;
    chains_clear(&l->chains);
    l->wait_count = 0;
    if (l->sums)
        memset(l->sums, 0, l->sum_capacity * sizeof(*l->sums));
    return trace_start(&l->trace, err);
}

static void lock_drain(struct monitor_instance *i)
{
    struct lock_contention *l = i->extra;
    trace_drain(&l->trace, feed, l);
}

static void put_chain(const struct trace_sums *s, const char *chain, struct monitor_sink *sink)
{
    const struct {
        const char *name, *unit;
        double value;
    } figures[] = {
        {"count", "", (double)s->count},
        {"total.ms", "ms", (double)s->total_ns / 1e6},
        {"avg.ms", "ms", s->count ? (double)s->total_ns / (double)s->count / 1e6 : 0},
        {"max.ms", "ms", (double)s->max_ns / 1e6},
    };
    for (size_t f = 0; s->count && f < ARRAY_COUNT(figures); f++) {
        char prefix[64];
        snprintf(prefix, sizeof(prefix), "lock-contention.%s.", figures[f].name);
        sink_prefix(sink, prefix, NULL);
        sink_put_text(sink, chain, figures[f].value, COLUMN_LAST, figures[f].unit);
    }
}

static void lock_read(struct monitor_instance *i, struct monitor_sink *sink)
{
    struct lock_contention *l = i->extra;
    struct trace_sums total = {0};
    trace_stop(&l->trace, feed, l);
    size_t count = l->chains.count < l->sum_capacity ? l->chains.count : l->sum_capacity;
    CLEANUP(memory_freep) char **names = memory_zalloc(l->chains.count + 1, sizeof(*names));
    chains_name(&l->chains, skips, names);
    for (size_t c = 0; c < count; c++) {
        size_t same = chains_first(names, c);
        trace_sums_merge(&total, &l->sums[c]);
        if (same == c)
            continue;
        trace_sums_merge(&l->sums[same], &l->sums[c]);
        l->sums[c] = (struct trace_sums){0};
    }
    sink_prefix(sink, "lock-contention.", NULL);
    sink_put_text(sink, "total.count", (double)total.count, COLUMN_LAST, "");
    sink_put_text(sink, "total.ms", (double)total.total_ns / 1e6, COLUMN_LAST, "ms");
    sink_put_text(sink, "unended", (double)l->wait_count, COLUMN_LAST, "");
    sink_put_text(sink, "lost", (double)l->trace.lost, COLUMN_LAST, "");
    for (size_t c = 0; c < count; c++)
        put_chain(&l->sums[c], names[c], sink);
    for (size_t c = 0; c < l->chains.count; c++)
        free(names[c]);
}

const struct monitor monitor_lock_contention = {
    .name = "lock-contention",
    .what = "kernel locks that the run's threads waited for, by call chain",
    .class = MONITOR_TRACES,
    .open = lock_open,
    .start = lock_start,
    .drain = lock_drain,
    .read = lock_read,
    .done = lock_done,
};

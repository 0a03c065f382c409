/* SPDX-License-Identifier: MIT */
/*
 * perf-sched: how long the run's threads waited, and how long they were kept from a CPU after their
 * wake-up, by the call chain in which they left the CPU.
 *
 *   what is read                     what it says
 *   sched:sched_switch, call chain   a thread leaves the CPU here; prev_state: it waits, or not
 *   sched:sched_wakeup, of all CPUs  it could run again; who wakes may be anybody
 *   the switch record of its return  it runs
 *
 *   what follows, by chain           from            to
 *   wait_time.{avg,max}.ms           leaving         wake-up (the return, when it was preempted)
 *   sch_delay.{avg,max}.ms           wake-up         return
 *   wait_and_delay.{avg,max}.ms      leaving         return
 *   wait_and_delay.count, .total.ms; sch_delay.count: how often it was woken there
 *   total_{…}.average.ms, .max.ms and total_wait_and_delay.count.ms over all chains, as the
 *   kernel test robot spells them; perf-sched.lost: records that did not fit into the buffers
 *   perf-sched.unseen: waits that ended although no wake-up was recorded; their delay counts as
 *   waiting.  Kernels lose such records without a word (seen with 6.18: most that timers cause on
 *   one idle CPU; perf record loses the same)
 */
#include "base/memory.h"
#include "monitors/monitor.h"
#include "monitors/trace.h"

#include <stdio.h>

enum { EVENT_SWITCH, EVENT_WAKEUP };
static const struct trace_spec what = {.events = "sched:sched_switch",
                                       .everywhere = "sched:sched_wakeup",
                                       .stacks = true,
                                       .switches = true};

enum { STATE_WAITS = 0xff }; /* bits of prev_state: any of them says that it waits */

/* How the chain begins wherever a thread leaves. */
static const char *const skips[] = {"__schedule", "schedule", NULL};

struct sched_thread {
    uint32_t tid, chain;
    bool is_away, waits;        /* a thread that is away and does not wait was preempted */
    uint64_t left_ns, woken_ns; /* woken 0: not yet */
};

enum { WAIT, DELAY, BOTH, KINDS };
static const char *const kind_names[KINDS] = {"wait_time", "sch_delay", "wait_and_delay"};
static const size_t figure_counts[KINDS] = {2, 3, 4}; /* of avg, max, count, total */

struct perf_sched {
    struct trace trace;
    struct trace_field prev_pid, prev_state, woken_pid;
    struct chains chains;
    struct sched_thread *threads;
    size_t thread_count, thread_capacity;
    struct idtable table;             /* of threads by tid */
    struct trace_sums (*sums)[KINDS]; /* by chain */
    size_t sum_capacity;
    uint64_t unseen; /* waits that ended without a wake-up */
};

static uint64_t hash_thread(const void *items, uint32_t id)
{
    return hash_mix(((const struct sched_thread *)items)[id].tid, 0);
}

static struct sched_thread *find_thread(struct perf_sched *p, uint32_t tid)
{
    uint32_t slot, id;
    IDTABLE_EACH(&p->table, hash_mix(tid, 0), slot, id)
    if (p->threads[id].tid == tid)
        return &p->threads[id];
    id = (uint32_t)p->thread_count;
    struct sched_thread *t = &ARRAY_PUSH(p->threads, p->thread_count, p->thread_capacity);
    *t = (struct sched_thread){.tid = tid};
    idtable_put(&p->table, slot, id);
    if (idtable_is_crowded(&p->table))
        idtable_grow(&p->table, hash_thread, p->threads);
    return t;
}

static void leave(struct perf_sched *p, const struct trace_record *r)
{
    struct sched_thread *t = find_thread(p, r->tid);
    t->is_away = true;
    t->waits = trace_number(r, &p->prev_state) & STATE_WAITS;
    t->left_ns = r->time_ns;
    t->woken_ns = 0;
    t->chain = chains_intern(&p->chains, r->chain, r->chain_count);
}

static void arrive(struct perf_sched *p, const struct trace_record *r)
{
    struct sched_thread *t = find_thread(p, r->tid);
    if (!t->is_away || r->time_ns < t->left_ns)
        return;
    if (p->sum_capacity < p->chains.count) {
        size_t before = p->sum_capacity;
        p->sums = memory_grow(p->sums, &p->sum_capacity, p->chains.count, sizeof(*p->sums));
        memset(p->sums + before, 0, (p->sum_capacity - before) * sizeof(*p->sums));
    }
    struct trace_sums *sums = p->sums[t->chain];
    bool woken = t->woken_ns >= t->left_ns && t->woken_ns <= r->time_ns;
    trace_sums_add(&sums[WAIT], (woken ? t->woken_ns : r->time_ns) - t->left_ns);
    if (woken)
        trace_sums_add(&sums[DELAY], r->time_ns - t->woken_ns);
    p->unseen += t->waits && !woken;
    trace_sums_add(&sums[BOTH], r->time_ns - t->left_ns);
    t->is_away = false;
}

static void feed(void *context, const struct trace_record *r)
{
    struct perf_sched *p = context;
    if (r->kind == TRACE_ARRIVES) {
        arrive(p, r);
    } else if (r->kind == TRACE_EVENT && r->event == EVENT_SWITCH) {
        if ((uint32_t)trace_number(r, &p->prev_pid) == r->tid)
            leave(p, r);
    } else if (r->kind == TRACE_EVENT) {
        struct sched_thread *t = find_thread(p, (uint32_t)trace_number(r, &p->woken_pid));
        if (t->is_away && t->waits && !t->woken_ns)
            t->woken_ns = r->time_ns;
    }
}

static void sched_done(struct monitor_instance *i)
{
    struct perf_sched *p = i->extra;
    if (!p)
        return;
    trace_close(&p->trace);
    chains_done(&p->chains);
    idtable_done(&p->table);
    free(p->threads);
    free(p->sums);
    free(p);
    i->extra = NULL;
}

static int sched_open(struct monitor_instance *i, struct error *err)
{
    struct perf_sched *p = i->extra = memory_zalloc(1, sizeof(*p));
    chains_init(&p->chains);
    idtable_init(&p->table, 6);
    int r = trace_open(&p->trace, &what, err);
    if (r == 0)
        r = trace_field(&p->trace, EVENT_SWITCH, "prev_pid", &p->prev_pid, err);
    if (r == 0)
        r = trace_field(&p->trace, EVENT_SWITCH, "prev_state", &p->prev_state, err);
    if (r == 0)
        r = trace_field(&p->trace, EVENT_WAKEUP, "pid", &p->woken_pid, err);
    return r == 0 ? chains_check(err) : r;
}

static int sched_start(struct monitor_instance *i, struct error *err)
{
    struct perf_sched *p = i->extra;
    chains_clear(&p->chains);
    idtable_done(&p->table);
    idtable_init(&p->table, 6);
    p->thread_count = 0;
    p->unseen = 0;
    if (p->sums)
        memset(p->sums, 0, p->sum_capacity * sizeof(*p->sums));
    return trace_start(&p->trace, err);
}

static void sched_drain(struct monitor_instance *i)
{
    struct perf_sched *p = i->extra;
    trace_drain(&p->trace, feed, p);
}

static void put_totals(const struct trace_sums totals[KINDS], struct monitor_sink *sink)
{
    for (size_t k = 0; k < KINDS; k++) {
        char name[64];
        double average = totals[k].count ? (double)totals[k].total_ns / (double)totals[k].count : 0;
        snprintf(name, sizeof(name), "perf-sched.total_%s.", kind_names[k]);
        sink_prefix(sink, name, NULL);
        sink_put_text(sink, "average.ms", average / 1e6, COLUMN_LAST, "ms");
        sink_put_text(sink, "max.ms", (double)totals[k].max_ns / 1e6, COLUMN_LAST, "ms");
        if (k == BOTH)
            sink_put_text(sink, "count.ms", (double)totals[k].count, COLUMN_LAST, "");
    }
}

static void put_chain(const struct trace_sums sums[KINDS], const char *chain,
                      struct monitor_sink *sink)
{
    for (size_t k = 0; k < KINDS; k++) {
        if (!sums[k].count)
            continue;
        const struct {
            const char *name, *unit;
            double value;
        } figures[] = {
            {"avg.ms", "ms", (double)sums[k].total_ns / (double)sums[k].count / 1e6},
            {"max.ms", "ms", (double)sums[k].max_ns / 1e6},
            {"count", "", (double)sums[k].count},
            {"total.ms", "ms", (double)sums[k].total_ns / 1e6},
        };
        for (size_t f = 0; f < figure_counts[k]; f++) {
            char prefix[80];
            snprintf(prefix, sizeof(prefix), "perf-sched.%s.%s.", kind_names[k], figures[f].name);
            sink_prefix(sink, prefix, NULL);
            sink_put_text(sink, chain, figures[f].value, COLUMN_LAST, figures[f].unit);
        }
    }
}

static void sched_read(struct monitor_instance *i, struct monitor_sink *sink)
{
    struct perf_sched *p = i->extra;
    struct trace_sums totals[KINDS] = {0};
    trace_stop(&p->trace, feed, p);
    size_t count = p->chains.count < p->sum_capacity ? p->chains.count : p->sum_capacity;
    CLEANUP(memory_freep) char **names = memory_zalloc(p->chains.count + 1, sizeof(*names));
    chains_name(&p->chains, skips, names);
    for (size_t c = 0; c < count; c++) {
        size_t same = chains_first(names, c);
        for (size_t k = 0; k < KINDS; k++) {
            trace_sums_merge(&totals[k], &p->sums[c][k]);
            if (same == c)
                continue;
            trace_sums_merge(&p->sums[same][k], &p->sums[c][k]);
            p->sums[c][k] = (struct trace_sums){0};
        }
    }
    put_totals(totals, sink);
    sink_prefix(sink, "perf-sched.", NULL);
    sink_put_text(sink, "lost", (double)p->trace.lost, COLUMN_LAST, "");
    sink_put_text(sink, "unseen", (double)p->unseen, COLUMN_LAST, "");
    for (size_t c = 0; c < count; c++)
        put_chain(p->sums[c], names[c], sink);
    for (size_t c = 0; c < p->chains.count; c++)
        free(names[c]);
}

const struct monitor monitor_perf_sched = {
    .name = "perf-sched",
    .what = "waits and delays of the run's threads by call chain",
    .class = MONITOR_TRACES,
    .open = sched_open,
    .start = sched_start,
    .drain = sched_drain,
    .read = sched_read,
    .done = sched_done,
};

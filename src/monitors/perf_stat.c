/* SPDX-License-Identifier: MIT */
/*
 * perf-stat: events counted on all CPUs.  perf-stat.i.X is the mean of the per-second values,
 * perf-stat.ps.X the total for each second, perf-stat.total.X the total, perf-stat.overall.… what
 * follows from the totals.  What the machine does not count is left out, never zero.
 */
#include "base/memory.h"
#include "counters/counters.h"
#include "counters/online.h"
#include "monitors/monitor.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

struct perf_stat {
    struct event_list events;
    struct counters counters;
    struct counter_value *now;
    double *first, *last; /* scaled totals */
    bool opened;
};

static void perf_done(struct monitor_instance *i)
{
    struct perf_stat *p = i->extra;
    if (!p)
        return;
    if (p->opened)
        counters_done(&p->counters);
    event_list_done(&p->events);
    free(p->now);
    free(p->first);
    free(p->last);
    free(p);
    i->extra = NULL;
}

static int perf_open(struct monitor_instance *i, struct error *err)
{
    struct perf_stat *p = memory_zalloc(1, sizeof(*p));
    i->extra = p;
    CLEANUP(memory_freep) int *cpus = NULL;
    size_t cpu_count;
    int r = online_cpus(&cpus, &cpu_count, err);
    if (r < 0)
        return r;
    event_list_default(&p->events, true, 1);
    struct counter_target target = {.kind = TARGET_CPUS, .cpus = cpus, .cpu_count = cpu_count};
    r = counters_open(&p->counters, &p->events, &target, err);
    if (r < 0)
        return r;
    p->opened = true;
    size_t usable = 0;
    for (size_t e = 0; e < p->events.count; e++)
        usable += p->counters.items[e].why == NULL;
    if (usable == 0)
        return error_set(err, -ENOENT, "%s",
                         p->events.count ? p->counters.items[0].why : "no events");
    p->now = memory_zalloc(p->events.count, sizeof(*p->now));
    p->first = memory_zalloc(p->events.count, sizeof(*p->first));
    p->last = memory_zalloc(p->events.count, sizeof(*p->last));
    return 0;
}

/* Since the first reading of the run; NAN when the event is not counted here. */
static double total_of(const struct perf_stat *p, const char *name)
{
    for (size_t e = 0; e < p->events.count; e++)
        if (str_eq(p->events.items[e].name, name) && !p->counters.items[e].why)
            return p->last[e] - p->first[e];
    return NAN;
}

/* Of the totals since the run's start. */
static void put_overall(const struct perf_stat *p, struct monitor_sink *sink)
{
    static const struct {
        const char *name, *above, *below;
        double scale;
    } figures[] = {
        {"ipc", "instructions", "cycles", 1},
        {"cpi", "cycles", "instructions", 1},
        {"MPKI", "cache-misses", "instructions", 1000},
        {"cache-miss-rate%", "cache-misses", "cache-references", 100},
        {"branch-miss-rate%", "branch-misses", "branches", 100},
    };
    sink_prefix(sink, "perf-stat.overall.", NULL);
    for (size_t k = 0; k < ARRAY_COUNT(figures); k++) {
        double value =
            figures[k].scale * total_of(p, figures[k].above) / total_of(p, figures[k].below);
        if (isfinite(value))
            sink_put_text(sink, figures[k].name, value, COLUMN_LAST, "");
    }
}

static void perf_read(struct monitor_instance *i, struct monitor_sink *sink)
{
    struct perf_stat *p = i->extra;
    if (counters_read(&p->counters, p->now, NULL) < 0)
        return;
    static const struct {
        const char *prefix, *unit;
        enum column_mode mode;
    } kinds[] = {{"perf-stat.ps.", "/s", COLUMN_RATE}, {"perf-stat.total.", "", COLUMN_DELTA}};
    for (size_t e = 0; e < p->events.count; e++) {
        if (p->counters.items[e].why)
            continue;
        double value = counter_scaled(&p->now[e]);
        const char *name = p->events.items[e].name;
        for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
            sink_prefix(sink, kinds[k].prefix, NULL);
            sink_put_text(sink, name, value, kinds[k].mode, kinds[k].unit);
        }
        if (i->has_previous && i->seconds > 0) {
            sink_prefix(sink, "perf-stat.i.", NULL);
            sink_put_text(sink, name, (value - p->last[e]) / i->seconds, COLUMN_MEAN, "/s");
        } else {
            p->first[e] = value;
        }
        p->last[e] = value;
    }
    if (i->has_previous)
        put_overall(p, sink);
}

const struct monitor monitor_perf_stat = {.name = "perf-stat",
                                          .what = "events on all CPUs",
                                          .open = perf_open,
                                          .read = perf_read,
                                          .done = perf_done};

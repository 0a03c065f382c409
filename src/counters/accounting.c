/* SPDX-License-Identifier: MIT */
/* Figures that the kernel keeps anyway: see accounting.h. */
#include "counters/accounting.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

static bool is(const struct event *e, uint64_t config)
{
    return e->attr.type == PERF_TYPE_SOFTWARE && e->attr.config == config;
}

/* The text after "se.nr_migrations   :", or NULL: not every kernel has the file or the line. */
static const char *migrations_line(const char *path, struct strbuf *text)
{
    if (file_read(path, text, NULL) < 0)
        return NULL;
    const char *line = strstr(strbuf_text(text), "nr_migrations ");
    const char *colon = line ? strchr(line, ':') : NULL;
    return colon ? colon + 1 : NULL;
}

bool accounting_has(const struct event *e)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    if (e->attr.type != PERF_TYPE_SOFTWARE || e->has_modifier)
        return false;
    switch (e->attr.config) {
    case PERF_COUNT_SW_TASK_CLOCK:
    case PERF_COUNT_SW_CPU_CLOCK:
    case PERF_COUNT_SW_PAGE_FAULTS:
    case PERF_COUNT_SW_PAGE_FAULTS_MIN:
    case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
    case PERF_COUNT_SW_CONTEXT_SWITCHES:
        return true;
    case PERF_COUNT_SW_CPU_MIGRATIONS:
        return migrations_line("/proc/self/sched", &text);
    default:
        return false;
    }
}

void accounting_read(const struct counters *c, pid_t pid, struct accounting *ret)
{
    *ret = (struct accounting){0};
    for (size_t i = 0; i < c->count; i++) {
        if (!c->items[i].accounted || !is(c->items[i].event, PERF_COUNT_SW_CPU_MIGRATIONS))
            continue;
        CLEANUP(strbuf_done) struct strbuf text = {0};
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/sched", (int)pid);
        const char *number = migrations_line(path, &text);
        ret->migrations = number ? strtoull(number, NULL, 10) : 0;
        return;
    }
}

static uint64_t figure(const struct event *e, const struct accounting *a,
                       const struct rusage *usage)
{
    switch (e->attr.config) {
    case PERF_COUNT_SW_PAGE_FAULTS:
        return (uint64_t)usage->ru_minflt + (uint64_t)usage->ru_majflt;
    case PERF_COUNT_SW_PAGE_FAULTS_MIN:
        return (uint64_t)usage->ru_minflt;
    case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
        return (uint64_t)usage->ru_majflt;
    case PERF_COUNT_SW_CONTEXT_SWITCHES:
        return (uint64_t)usage->ru_nvcsw + (uint64_t)usage->ru_nivcsw;
    case PERF_COUNT_SW_CPU_MIGRATIONS:
        return a->migrations;
    default: /* the clocks */
        return timeval_ns(usage->ru_utime) + timeval_ns(usage->ru_stime);
    }
}

void accounting_fill(const struct counters *c, const struct accounting *a,
                     const struct rusage *usage, uint64_t wall_ns, struct counter_value *values)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->items[i].accounted)
            values[i] = (struct counter_value){.raw = figure(c->items[i].event, a, usage),
                                               .enabled_ns = wall_ns,
                                               .running_ns = wall_ns};
}

void accounting_explain(struct strbuf *out, const char *names)
{
    strbuf_printf(
        out,
        "%s: no permission to count these events; the figures are the kernel's accounting of "
        "the command, with its threads and the children it waited for (getrusage); migrations are "
        "those of its first thread (/proc/PID/sched)",
        names);
}

/* SPDX-License-Identifier: MIT */
/* Figures that the kernel keeps anyway: see accounting.h. */
#include "counters/accounting.h"
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
    if (e->has_modifier)
        return false;
    return is(e, PERF_COUNT_SW_CONTEXT_SWITCHES) ||
           (is(e, PERF_COUNT_SW_CPU_MIGRATIONS) && migrations_line("/proc/self/sched", &text));
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

void accounting_fill(const struct counters *c, const struct accounting *a,
                     const struct rusage *usage, uint64_t wall_ns, struct counter_value *values)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->items[i].accounted)
            values[i] = (struct counter_value){
                .raw = is(c->items[i].event, PERF_COUNT_SW_CPU_MIGRATIONS)
                           ? a->migrations
                           : (uint64_t)usage->ru_nvcsw + (uint64_t)usage->ru_nivcsw,
                .enabled_ns = wall_ns,
                .running_ns = wall_ns};
}

void accounting_explain(struct strbuf *out, const char *names)
{
    strbuf_printf(
        out,
        "%s: no permission to count these events; the figures are the kernel's accounting of "
        "the command: context switches of its threads and of the children it waited for "
        "(getrusage), migrations of its first thread (/proc/PID/sched)",
        names);
}

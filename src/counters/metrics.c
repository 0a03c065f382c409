/* SPDX-License-Identifier: MIT */
/* Metrics by name: see metrics.h.  Formulas of single processors are left to others: these are the
 * ones that the kernel's generic events give, and the top-down events that sysfs lists. */
#include "counters/metrics.h"
#include "base/memory.h"
#include "counters/pmu.h"

#include <errno.h>

static const struct {
    const char *name, *events;
} metrics[] = {
    {"ipc", "{instructions,cycles}"},
    {"frequency", "cycles,task-clock"},
    {"branch-misses", "{branch-misses,branches}"},
    {"cache-misses", "{cache-misses,cache-references}"},
    {"l1d-misses", "{L1-dcache-load-misses,L1-dcache-loads}"},
    {"llc-misses", "{LLC-load-misses,LLC-loads}"},
    {"dtlb-misses", "{dTLB-load-misses,dTLB-loads}"},
    {"itlb-misses", "{iTLB-load-misses,iTLB-loads}"},
    {"stalls", "{stalled-cycles-frontend,stalled-cycles-backend,cycles}"},
    {"cpus", "task-clock"},
};

/* What different PMUs call the parts of the top-down method's first level, leader first. */
static const struct {
    const char *const names[6];
} topdowns[] = {
    /* Intel from Ice Lake on: slots must lead the group. */
    {{"slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"}},
    /* Arm from v8.4 on. */
    {{"cpu_cycles", "stall_slot_frontend", "stall_slot_backend", "op_retired", "op_spec"}},
    {{"cpu_cycles", "stall_frontend", "stall_backend"}},
};

static const char *find(const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_COUNT(metrics); i++)
        if (strlen(metrics[i].name) == length && memcmp(metrics[i].name, name, length) == 0)
            return metrics[i].events;
    return NULL;
}

int metrics_events(const char *names, struct strbuf *out, struct error *err)
{
    for (const char *at = names; *at;) {
        size_t length = strcspn(at, ",");
        const char *events = find(at, length);
        if (!events) {
            CLEANUP(strbuf_done) struct strbuf known = {0};
            for (size_t i = 0; i < ARRAY_COUNT(metrics); i++)
                strbuf_printf(&known, "%s%s", i ? ", " : "", metrics[i].name);
            return error_set(err, -EINVAL, "-M: unknown metric '%.*s'; known are %s",
                             (int)(length < 40 ? length : 40), at, strbuf_text(&known));
        }
        strbuf_printf(out, "%s%s", out->length ? "," : "", events);
        at += length + (at[length] == ',');
    }
    return out->length ? 0 : error_set(err, -EINVAL, "-M: no metric is given");
}

struct search {
    const char *name;
    bool found;
};

static void compare_event(const char *pmu, const char *event, void *context)
{
    (void)pmu;
    struct search *s = context;
    s->found |= str_eq(event, s->name);
}

struct choice {
    struct strbuf *out;
    bool found;
};

static bool has_event(const char *pmu, const char *name)
{
    struct search s = {.name = name};
    pmu_each_event(pmu, compare_event, &s);
    return s.found;
}

static void look_at_pmu(const char *pmu, void *context)
{
    struct choice *c = context;
    for (size_t i = 0; i < ARRAY_COUNT(topdowns) && !c->found; i++) {
        bool has_all = true;
        for (size_t k = 0; topdowns[i].names[k]; k++)
            has_all &= has_event(pmu, topdowns[i].names[k]);
        for (size_t k = 0; has_all && topdowns[i].names[k]; k++)
            strbuf_printf(c->out, "%s%s/%s/", k ? "," : "{", pmu, topdowns[i].names[k]);
        if (has_all)
            strbuf_putc(c->out, '}');
        c->found = has_all;
    }
}

int metrics_topdown(struct strbuf *out, struct error *err)
{
    struct choice c = {.out = out};
    pmu_each(look_at_pmu, &c);
    return c.found ? 0
                   : error_set(err, -ENOTSUP,
                               "--topdown: no PMU here lists events of the top-down method "
                               "(topdown-retiring and slots, or stall_slot_frontend and "
                               "cpu_cycles, in /sys/bus/event_source/devices/*/events); -M ipc, "
                               "-M stalls or --sim may do");
}

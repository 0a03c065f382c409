/* SPDX-License-Identifier: MIT */
/* A task of an experiment that another process owns: some rounds of some cells, on this node. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "session/cluster_node.h"
#include "session/session_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The folder that so many parts less of the path are. */
static char *above(const char *path, unsigned levels)
{
    size_t length = strlen(path);
    for (; levels; levels--)
        while (length > 1 && path[--length] != '/')
            ;
    return memory_strndup(path, length);
}

/* What the node is; the first task on it tells.  A half-written file is never seen. */
static int tell_of_node(struct session *s, const struct machine *machine, struct error *err)
{
    CLEANUP(memory_freep) char *folder = above(s->options->task, 2);
    CLEANUP(memory_freep) char *nodes = memory_printf("%s/nodes", folder);
    CLEANUP(memory_freep) char *path = memory_printf("%s/%s.json", nodes, s->node);
    if (access(path, F_OK) == 0)
        return 0;
    CLEANUP(memory_freep) char *text = node_json(machine, s->node);
    int r = cluster_make_folder(nodes, err);
    return r < 0 ? r : file_write(path, text, strlen(text), err);
}

int session_check_needs(struct session *s, const struct machine *machine, struct error *err)
{
    struct needs needs;
    int r = needs_read(&needs, &s->matrix, machine, err);
    for (size_t c = 0; r == 0 && needs.count && c < s->matrix.count; c++) {
        CLEANUP(strbuf_done) struct strbuf why = {0};
        if (s->kept[c] && needs_lack(&needs, needs_of_cell(&needs, &s->matrix, c), machine, &why))
            r = error_set(err, -ENOTSUP, "%s", strbuf_text(&why));
    }
    return r;
}

int session_read_task(struct session *s, struct error *err)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s.task", s->options->task);
    CLEANUP(memory_freep) char *folder = above(s->options->task, 2);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int r = file_read(path, &text, err);
    if (r == 0)
        r = task_plan_parse(&s->plan, path, strbuf_text(&text), s->matrix.count, err);
    if (r < 0)
        return r;
    memset(s->kept, 0, s->matrix.count * sizeof(*s->kept));
    s->kept_count = 0;
    for (size_t u = 0; u < s->plan.count; u++)
        for (size_t i = 0; i < s->plan.units[u].count; i++) {
            bool *kept = &s->kept[s->plan.units[u].cells[i]];
            s->kept_count += !*kept;
            *kept = true;
        }
    s->node = node_name();
    s->layout = memory_printf("node=%s", s->node);
    s->stop_path = memory_printf("%s/stop", folder);
    struct machine machine;
    machine_probe(&machine, MACHINE_QUICK);
    r = tell_of_node(s, &machine, err);
    if (r == 0)
        r = session_check_needs(s, &machine, err);
    machine_done(&machine);
    return r;
}

int session_make_task_builds(struct session *s,
                             void (*on_build)(const char *, size_t, size_t, void *),
                             struct error *err)
{
    struct machine machine;
    if (!s->spec.build_count)
        return 0;
    machine_probe(&machine, MACHINE_QUICK);
    CLEANUP(memory_freep) char *type = node_type(&machine);
    machine_done(&machine);
    CLEANUP(memory_freep) char *experiment = above(s->options->task, 2);
    CLEANUP(memory_freep) char *spool = above(s->options->task, 3);
    CLEANUP(memory_freep) char *lasting = memory_printf("%s/builds/%s", spool, type);
    CLEANUP(memory_freep) char *own = memory_printf("%s/builds/%s", experiment, type);
    struct build_place place = {.lasting = lasting, .own = own};
    return builds_make(&s->builds, &s->matrix, s->kept, &place, on_build, s, err);
}

/* Where the spec names events and they are not waived, a node must have them all. */
static bool must_count(const struct session *s)
{
    return s->spec.counters[0] && !str_eq(s->spec.counters, "default") && s->plan.mode == TASK_ALL;
}

static int lacks_event(struct session *s, size_t event, const char *why, struct error *err)
{
    s->uncounted = true;
    return error_set(err, -ENOTSUP, "%s: %s", s->events.items[event].name, why);
}

static bool is_of_pmu(const struct event *e)
{
    return e->attr.type == PERF_TYPE_HARDWARE || e->attr.type == PERF_TYPE_HW_CACHE ||
           e->attr.type == PERF_TYPE_RAW || (e->pmu && str_has_prefix(e->pmu, "cpu"));
}

int session_drop_events(struct session *s, struct error *err)
{
    for (size_t i = s->events.count; i-- > 0;) {
        const struct event *e = &s->events.items[i];
        if (!node_lacks(e->name) && !(is_of_pmu(e) && node_lacks("pmu")))
            continue;
        if (must_count(s))
            return lacks_event(s, i, "ASSAY_LACKS says so", err);
        event_list_remove(&s->events, i);
    }
    return 0;
}

int session_enter_task(struct session *s, struct error *err)
{
    for (size_t i = 0; must_count(s) && !s->guests && i < s->events.count; i++)
        if (s->runner.counters.items[i].why)
            return lacks_event(s, i, s->runner.counters.items[i].why, err);
    s->experiment = 1;
    for (size_t c = 0; c < s->matrix.count; c++)
        s->cells[c].id = (int64_t)c + 1;
    return 0;
}

static int run_unit(struct session *s, struct task_unit *u, struct error *err)
{
    if (access(s->stop_path, F_OK) == 0)
        return error_set(err, -EINTR, "stopped by a signal");
    s->round = u->round;
    session_shuffle(s, u->round, u->cells, u->count);
    for (size_t i = 0; i < u->count; i++) {
        int r = session_run_cell(s, u->cells[i], u->round, i, true, err);
        if (r < 0)
            return r;
        s->runs_done++;
    }
    return 0;
}

static int warm_up(struct session *s, struct error *err)
{
    s->phase = SESSION_WARMUP;
    for (uint64_t w = 0; w < s->spec.warmup; w++)
        for (size_t c = 0; c < s->matrix.count; c++) {
            int r = s->kept[c] ? session_run_cell(s, c, 0, 0, false, err) : 0;
            if (r < 0)
                return r;
        }
    return 0;
}

int session_run_task(struct session *s, struct error *err)
{
    struct hole_values values = {.spec = &s->spec};
    for (size_t u = 0; u < s->plan.count; u++)
        s->runs_planned += s->plan.units[u].count;
    int r = steps_before(&s->steps, &values, true, err);
    if (r == 0)
        r = warm_up(s, err);
    s->phase = SESSION_ROUNDS;
    s->started_ns = clock_now_ns();
    if (r == 0 && s->plan.mode == TASK_PROFILES)
        r = session_profile_task(s, err);
    for (size_t u = 0; r == 0 && s->plan.mode != TASK_PROFILES && u < s->plan.count; u++)
        r = run_unit(s, &s->plan.units[u], err);
    struct error ignored;
    int after = steps_after(&s->steps, &values, true, r < 0 ? &ignored : err);
    s->end = r == 0 ? SESSION_DONE : r == -EINTR ? SESSION_STOPPED : SESSION_FAILED;
    if (r == -EINTR)
        r = 0;
    return r < 0 ? r : after;
}

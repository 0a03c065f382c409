/* SPDX-License-Identifier: MIT */
/*
 * Runs that are watched closely: once more the cell that was just measured, with its tracepoints
 * traced, and once more under `assay record`.  What they show is kept with the measured run of the
 * same round, which they did not disturb; how much longer they took is kept, too.  A watched run
 * that fails is a note, no failure: the measurement stands.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"
#include "monitors/perf_profile.h"
#include "session/session_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/* How often the buffers of traces are emptied. */
#define DRAIN_NS (10 * NS_PER_MS)

bool session_is_simulated(const struct spec_metric *m)
{
    return m->source == METRIC_PRINTED && str_eq(m->name, SIMULATED_INSTRUCTIONS);
}

int session_open_watchers(struct session *s, struct error *err)
{
    const struct spec *spec = &s->spec;
    for (size_t i = 0; i < spec->monitor_count; i++)
        s->watch_profile |= monitor_class(monitor_find(spec->monitors[i])) == MONITOR_PROFILES;
    for (size_t i = 0; i < spec->metric_count; i++)
        s->simulates |= session_is_simulated(&spec->metrics[i]);
    int r = monitors_open(&s->traces, spec->monitors, s->guests ? 0 : spec->monitor_count,
                          MONITOR_TRACES, DRAIN_NS, err);
    s->traces_open = r == 0;
    if (r == 0 && s->traces.missing.length)
        strbuf_printf(&s->notes, "not available on this machine: %s\n",
                      strbuf_text(&s->traces.missing));
    return r;
}

bool session_watches(const struct session *s)
{
    return s->watch_profile || s->simulates || (s->traces_open && s->traces.instance_count);
}

static void start_traces(void *context)
{
    monitors_start(context);
}

/* How much longer than the measured run. */
static void put_slowdown(const struct session *s, const char *name, session_value_fn *put,
                         void *context)
{
    if (s->result.wall_ns && !s->guests)
        put(context, name, "", (double)s->watched.wall_ns / (double)s->result.wall_ns);
}

static int trace_cell(struct session *s, size_t cell, uint64_t round, session_value_fn *put,
                      void *context, struct error *err)
{
    struct monitors *m = &s->traces;
    struct session_again again = {.on_ready = start_traces, .context = m};
    int r = session_run_again(s, cell, round, &s->runner, &again, &s->watched, err);
    monitors_stop(m);
    if (r == 0 && m->troubles.length)
        r = error_set(err, -EIO, "%s", strbuf_text(&m->troubles));
    for (size_t i = 0; r == 0 && i < m->column_count; i++)
        if (m->columns[i].value == m->columns[i].value) /* no NAN: seen in this run */
            put(context, m->columns[i].name, m->columns[i].unit, m->columns[i].value);
    if (r == 0) {
        put(context, "assay.traced.cpu", "ns", (double)m->cpu_ns);
        put_slowdown(s, "assay.traced.slowdown", put, context);
    }
    return r;
}

struct row_target {
    session_value_fn *put;
    void *context;
};

static void put_row(void *context, const char *name, double value, const char *unit)
{
    const struct row_target *t = context;
    t->put(t->context, name, unit, value);
}

static int profile_cell(struct session *s, size_t cell, uint64_t round, session_value_fn *put,
                        void *context, struct error *err)
{
    CLEANUP(memory_freep)
    char *path = memory_printf("%s/assay-profile-XXXXXX", temporary_folder());
    CLEANUP(fd_closep) int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, -errno, "%s", path);
    const char *const before[] = {"assay", "record", "-q", "--call-graph=fp",
                                  "-o",    path,     "--", NULL};
    struct session_again again = {.before = (char *const *)before};
    int r = session_run_again(s, cell, round, &s->runner, &again, &s->watched, err);
    struct row_target target = {put, context};
    uint64_t started_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (r == 0)
        r = perf_profile_rows(path, put_row, &target, err);
    if (r == 0) {
        put(context, "assay.profiled.cpu", "ns",
            (double)(clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - started_ns));
        put_slowdown(s, "assay.profiled.slowdown", put, context);
    }
    unlink(path);
    return r;
}

/* Exact, and many times slower. */
static int simulate_cell(struct session *s, size_t cell, uint64_t round, session_value_fn *put,
                         void *context, struct error *err)
{
    struct session_again again = {.before = s->simulator.words, .program = s->simulator.valgrind};
    uint64_t instructions;
    int r = session_run_again(s, cell, round, &s->runner, &again, &s->watched, err);
    if (r == 0)
        r = simulator_take(&s->simulator, &instructions, err);
    if (r == 0)
        put(context, SIMULATED_INSTRUCTIONS, "", (double)instructions);
    return r;
}

/* What failed once is likely to fail again: it is said once and left. */
static void note_failure(struct session *s, const char *what, size_t cell, const struct error *err)
{
    strbuf_printf(&s->notes, "no %s for %s or later runs: %s\n", what, s->matrix.cells[cell].label,
                  err->message);
}

void session_watch(struct session *s, size_t cell, uint64_t round, session_value_fn *put,
                   void *context)
{
    struct error err = {0};
    if (s->traces_open && s->traces.instance_count && !s->traces_failed &&
        trace_cell(s, cell, round, put, context, &err) < 0 && !process_signals_caught()) {
        note_failure(s, "trace", cell, &err);
        s->traces_failed = true;
    }
    if (s->watch_profile && !process_signals_caught() &&
        profile_cell(s, cell, round, put, context, &err) < 0 && !process_signals_caught()) {
        note_failure(s, "perf-profile", cell, &err);
        s->watch_profile = false;
    }
    if (s->simulates && !process_signals_caught() &&
        simulate_cell(s, cell, round, put, context, &err) < 0 && !process_signals_caught()) {
        note_failure(s, "simulation", cell, &err);
        s->simulates = false;
    }
}

void session_close_watchers(struct session *s)
{
    if (s->traces_open)
        monitors_done(&s->traces);
    simulator_done(&s->simulator);
    run_result_done(&s->watched);
}

/* SPDX-License-Identifier: MIT */
/* A measurement as JSON or CSV, with every run's values: see stat.h and docs/FORMATS.md. */
#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "config.h"
#include "counters/derived.h"
#include "report/text/stat.h"

#include <math.h>
#include <stdio.h>
#include <sys/wait.h>

static const char *state_of(const struct stat_view *v, size_t event,
                            const struct counter_value *value)
{
    if (v->m->why[event])
        return "not supported";
    return !counter_was_counted(value)             ? "not counted"
           : value->running_ns < value->enabled_ns ? "scaled"
                                                   : "counted";
}

static const char *unit_of(const struct event *e)
{
    return e->in_ns ? "ns" : *e->unit ? e->unit : "count";
}

static void put_head(struct json *j, const char *format, char *const *argv)
{
    json_string(j, "format", format);
    json_string(j, "assay", ASSAY_VERSION);
    if (argv) {
        json_array(j, "command");
        for (size_t i = 0; argv[i]; i++)
            json_string(j, NULL, argv[i]);
        json_end(j);
    } else {
        json_null(j, "command");
    }
}

static void put_counts(struct json *j, const struct stat_view *v,
                       const struct counter_value *values)
{
    json_array(j, "counts");
    for (size_t i = 0; i < v->events->count; i++) {
        const struct event *e = &v->events->items[i];
        json_object(j, NULL);
        json_string(j, "event", e->name);
        const char *state = state_of(v, i, &values[i]);
        json_string(j, "state", state);
        if (!v->m->why[i]) {
            if (counter_was_counted(&values[i]))
                json_double(j, "value", counter_scaled(&values[i]) * e->scale);
            else
                json_null(j, "value");
            json_string(j, "unit", unit_of(e));
            json_u64(j, "raw", values[i].raw);
            json_u64(j, "enabled_ns", values[i].enabled_ns);
            json_u64(j, "running_ns", values[i].running_ns);
        }
        json_end(j);
    }
    json_end(j);
}

static void put_usage(struct json *j, const struct rusage *u)
{
    json_u64(j, "user_ns", timeval_ns(u->ru_utime));
    json_u64(j, "sys_ns", timeval_ns(u->ru_stime));
    json_u64(j, "rss_bytes_max", (uint64_t)u->ru_maxrss * 1024);
    json_u64(j, "voluntary_switches", (uint64_t)u->ru_nvcsw);
    json_u64(j, "involuntary_switches", (uint64_t)u->ru_nivcsw);
    json_u64(j, "minor_faults", (uint64_t)u->ru_minflt);
    json_u64(j, "major_faults", (uint64_t)u->ru_majflt);
    json_u64(j, "blocks_read", (uint64_t)u->ru_inblock);
    json_u64(j, "blocks_written", (uint64_t)u->ru_oublock);
}

static void put_ending(struct json *j, int status)
{
    if (WIFSIGNALED(status)) {
        json_null(j, "exit_code");
        json_i64(j, "signal", WTERMSIG(status));
    } else {
        json_i64(j, "exit_code", WEXITSTATUS(status));
        json_null(j, "signal");
    }
}

static void put_run(struct json *j, const struct stat_view *v, const struct measured_run *run)
{
    json_object(j, NULL);
    json_u64(j, "wall_ns", run->wall_ns);
    if (run->has_command)
        put_ending(j, run->status);
    if (run->has_command && v->has_usage) {
        put_usage(j, &run->usage);
        json_bool(j, "rss_is_bound", run->rss_is_bound);
    }
    json_bool(j, "timed_out", run->timed_out);
    json_bool(j, "left_behind", run->left_behind);
    put_counts(j, v, run->values);
    json_end(j);
}

static void put_events(struct json *j, const struct stat_view *v)
{
    json_array(j, "events");
    for (size_t i = 0; i < v->events->count; i++) {
        const struct event *e = &v->events->items[i];
        json_object(j, NULL);
        json_string(j, "name", e->name);
        json_string(j, "unit", unit_of(e));
        json_bool(j, "supported", !v->m->why[i]);
        if (v->m->why[i])
            json_string(j, "why", v->m->why[i]);
        json_bool(j, "user_only", v->m->user_only[i]);
        json_bool(j, "accounted", v->m->accounted[i]);
        if (e->group)
            json_u64(j, "group", e->group);
        json_end(j);
    }
    json_end(j);
}

/* Each event's mean, spread, range and derived figure over the runs that counted it. */
static void put_summary(struct json *j, const struct stat_view *v)
{
    size_t runs = v->m->run_count, events = v->events->count;
    CLEANUP(memory_freep) double *values = memory_zalloc(runs, sizeof(*values));
    CLEANUP(memory_freep) double *means = memory_zalloc(events, sizeof(*means));
    CLEANUP(memory_freep) struct spread *spreads = memory_zalloc(events, sizeof(*spreads));
    double wall_ns = 0;
    for (size_t i = 0; i < events; i++) {
        size_t count = 0;
        for (size_t run = 0; run < runs && !v->m->why[i]; run++)
            if (counter_was_counted(&v->m->runs[run].values[i]))
                values[count++] =
                    counter_scaled(&v->m->runs[run].values[i]) * v->events->items[i].scale;
        spreads[i] = spread_of(values, count);
        means[i] = count ? spreads[i].mean : NAN;
    }
    for (size_t run = 0; run < runs; run++)
        wall_ns += (double)v->m->runs[run].wall_ns / (double)runs;
    json_array(j, "summary");
    for (size_t i = 0; i < events; i++) {
        if (!spreads[i].count)
            continue;
        json_object(j, NULL);
        json_string(j, "event", v->events->items[i].name);
        json_u64(j, "n", spreads[i].count);
        json_double(j, "mean", spreads[i].mean);
        json_double(j, "stddev", spreads[i].stddev);
        json_double(j, "min", spreads[i].min);
        json_double(j, "max", spreads[i].max);
        struct derived figure = derived_figure(v->events, means, i, wall_ns);
        if (*figure.text) {
            json_double(j, "derived", figure.value);
            json_string(j, "derived_unit", figure.text);
        }
        json_end(j);
    }
    json_end(j);
}

static void put_losses(struct json *j, const struct stat_view *v)
{
    json_object(j, "losses");
    json_u64(j, "lost_records", v->m->lost_records);
    json_u64(j, "steal_ns", v->m->steal_ns);
    json_u64(j, "runs_requested", v->requested_runs);
    json_u64(j, "runs_finished", v->m->run_count);
    json_i64(j, "interrupted_by_signal", v->m->signal);
    json_end(j);
}

static void put_notes(struct json *j, const struct doubt_list *doubts)
{
    json_array(j, "notes");
    for (size_t i = 0; i < doubts->count; i++) {
        json_object(j, NULL);
        json_string(j, "id", doubts->items[i].id);
        json_string(j, "text", doubts->items[i].text);
        json_end(j);
    }
    json_end(j);
}

static void put_intervals(struct json *j, const struct stat_view *v)
{
    json_array(j, "intervals");
    for (size_t i = 0; i < v->m->interval_count; i++) {
        json_object(j, NULL);
        json_u64(j, "end_ns", v->m->intervals[i].end_ns);
        json_u64(j, "length_ns", v->m->intervals[i].length_ns);
        json_u64(j, "run", v->m->intervals[i].run + 1);
        put_counts(j, v, v->m->intervals[i].values);
        json_end(j);
    }
    json_end(j);
}

static void put_threads(struct json *j, const struct stat_view *v)
{
    bool are_cpus = stat_has_cpus(v);
    json_array(j, are_cpus ? "cpus" : "threads");
    for (size_t i = 0; i < v->m->thread_count; i++) {
        const struct measured_thread *thread = &v->m->threads[i];
        json_object(j, NULL);
        json_i64(j, are_cpus ? "cpu" : "tid", thread->tid);
        if (thread->pid)
            json_i64(j, "pid", thread->pid);
        json_string(j, "name", thread->name);
        put_counts(j, v, thread->values);
        json_end(j);
    }
    json_end(j);
}

void report_stat_json(struct strbuf *out, const struct stat_view *v)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    put_head(&j, "assay-stat-1", v->argv);
    json_string(&j, "target", v->kind);
    put_events(&j, v);
    json_array(&j, "runs");
    for (size_t i = 0; i < v->m->run_count; i++)
        put_run(&j, v, &v->m->runs[i]);
    json_end(&j);
    if (v->m->interval_count)
        put_intervals(&j, v);
    if (v->m->thread_count)
        put_threads(&j, v);
    if (v->m->run_count)
        put_summary(&j, v);
    put_losses(&j, v);
    put_notes(&j, v->doubts);
    machine_write_json(v->machine, &j, "machine");
    json_end(&j);
}

/* A line about all runs: a text, which stands in a column of its own, or a number. */
static void put_csv_note(struct strbuf *out, const char *what, const char *text)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, text, strlen(text), SIZE_MAX);
    strbuf_printf(out, "all,%s,note,,,,,,", what);
    strbuf_put_csv(out, strbuf_text(&safe));
    strbuf_putc(out, '\n');
}

static void put_csv_loss(struct strbuf *out, const char *what, const char *unit, uint64_t value)
{
    strbuf_printf(out, "all,%s,losses,%s,%llu,,,,\n", what, unit, (unsigned long long)value);
}

static void put_csv_head(struct strbuf *out, char *const *argv)
{
    strbuf_puts(out, "where,event,state,unit,value,raw,enabled_ns,running_ns,note\n");
    if (!argv)
        return;
    CLEANUP(strbuf_done) struct strbuf command = {0};
    strbuf_put_command(&command, argv);
    put_csv_note(out, "command", strbuf_text(&command));
}

static void put_csv_row(struct strbuf *out, const char *where, const char *event, const char *state,
                        const char *unit)
{
    strbuf_puts(out, where);
    strbuf_putc(out, ',');
    strbuf_put_csv(out, event);
    strbuf_printf(out, ",%s,%s,", state, unit);
}

static void put_csv_counts(struct strbuf *out, const struct stat_view *v, const char *where,
                           const struct counter_value *values)
{
    for (size_t i = 0; i < v->events->count; i++) {
        const struct event *e = &v->events->items[i];
        put_csv_row(out, where, e->name, state_of(v, i, &values[i]), unit_of(e));
        if (v->m->why[i])
            strbuf_puts(out, ",,,,\n");
        else if (!counter_was_counted(&values[i]))
            strbuf_printf(out, ",%llu,%llu,%llu,\n", (unsigned long long)values[i].raw,
                          (unsigned long long)values[i].enabled_ns, 0ULL);
        else
            strbuf_printf(out, "%.17g,%llu,%llu,%llu,\n", counter_scaled(&values[i]) * e->scale,
                          (unsigned long long)values[i].raw,
                          (unsigned long long)values[i].enabled_ns,
                          (unsigned long long)values[i].running_ns);
    }
}

static void put_csv_figure(struct strbuf *out, const char *where, const char *name,
                           const char *unit, uint64_t value)
{
    put_csv_row(out, where, name, "measured", unit);
    strbuf_printf(out, "%llu,,,,\n", (unsigned long long)value);
}

static void put_csv_run(struct strbuf *out, const struct stat_view *v, size_t index)
{
    const struct measured_run *run = &v->m->runs[index];
    char where[48];
    snprintf(where, sizeof(where), "run %zu", index + 1);
    put_csv_counts(out, v, where, run->values);
    put_csv_figure(out, where, "wall", "ns", run->wall_ns);
    if (!run->has_command)
        return;
    if (v->has_usage) {
        put_csv_figure(out, where, "user", "ns", timeval_ns(run->usage.ru_utime));
        put_csv_figure(out, where, "sys", "ns", timeval_ns(run->usage.ru_stime));
        put_csv_figure(out, where, run->rss_is_bound ? "rss-at-most" : "rss-max", "bytes",
                       (uint64_t)run->usage.ru_maxrss * 1024);
        put_csv_figure(out, where, "involuntary-switches", "count", (uint64_t)run->usage.ru_nivcsw);
    }
    bool killed = WIFSIGNALED(run->status);
    put_csv_figure(out, where, killed ? "signal" : "exit-code", "",
                   (uint64_t)(killed ? WTERMSIG(run->status) : WEXITSTATUS(run->status)));
}

void report_stat_csv(struct strbuf *out, const struct stat_view *v)
{
    put_csv_head(out, v->argv);
    for (size_t i = 0; i < v->m->run_count; i++)
        put_csv_run(out, v, i);
    for (size_t i = 0; i < v->m->interval_count; i++) {
        char where[80];
        int used = v->requested_runs > 1
                       ? snprintf(where, sizeof(where), "run %zu ", v->m->intervals[i].run + 1)
                       : 0;
        snprintf(where + used, sizeof(where) - (size_t)used, "at %.9f s",
                 (double)v->m->intervals[i].end_ns / 1e9);
        put_csv_counts(out, v, where, v->m->intervals[i].values);
    }
    for (size_t i = 0; i < v->m->thread_count; i++) {
        char where[48];
        if (stat_has_cpus(v))
            snprintf(where, sizeof(where), "%s", v->m->threads[i].name);
        else
            snprintf(where, sizeof(where), "thread %d", (int)v->m->threads[i].tid);
        put_csv_counts(out, v, where, v->m->threads[i].values);
    }
    put_csv_loss(out, "lost-records", "count", v->m->lost_records);
    put_csv_loss(out, "steal", "ns", v->m->steal_ns);
    put_csv_loss(out, "runs-requested", "count", v->requested_runs);
    put_csv_loss(out, "runs-finished", "count", v->m->run_count);
    for (size_t i = 0; i < v->doubts->count; i++)
        put_csv_note(out, v->doubts->items[i].id, v->doubts->items[i].text);
}

void report_simulation_json(struct strbuf *out, const struct simulation_view *v)
{
    const struct simulation *s = v->s;
    struct json j = {.out = out};
    json_object(&j, NULL);
    put_head(&j, "assay-stat-1", v->argv);
    json_string(&j, "target", "command");
    json_object(&j, "simulator");
    json_string(&j, "tool", s->tool);
    json_string(&j, "scope", "user mode only");
    json_bool(&j, "full", s->full);
    json_end(&j);
    json_array(&j, "runs");
    for (size_t i = 0; i < s->run_count; i++) {
        json_object(&j, NULL);
        json_u64(&j, "simulation_wall_ns", s->runs[i].wall_ns);
        put_ending(&j, s->runs[i].status);
        json_u64(&j, "processes", s->runs[i].process_count);
        json_bool(&j, "left_behind", s->runs[i].left_behind);
        json_array(&j, "counts");
        for (size_t event = 0; event < s->event_count; event++) {
            json_object(&j, NULL);
            json_string(&j, "event", simulated_event(event)->name);
            json_string(&j, "state", "simulated");
            json_u64(&j, "value", s->runs[i].values[event]);
            json_string(&j, "unit", "count");
            json_end(&j);
        }
        json_end(&j);
        json_end(&j);
    }
    json_end(&j);
    json_object(&j, "losses");
    json_u64(&j, "runs_requested", v->requested_runs);
    json_u64(&j, "runs_finished", s->run_count);
    json_i64(&j, "interrupted_by_signal", s->signal);
    json_end(&j);
    machine_write_json(v->machine, &j, "machine");
    json_end(&j);
}

void report_simulation_csv(struct strbuf *out, const struct simulation_view *v)
{
    put_csv_head(out, v->argv);
    CLEANUP(memory_freep) char *simulator = memory_printf("%s, user mode only", v->s->tool);
    put_csv_note(out, "simulator", simulator);
    put_csv_loss(out, "runs-requested", "count", v->requested_runs);
    put_csv_loss(out, "runs-finished", "count", v->s->run_count);
    for (size_t i = 0; i < v->s->run_count; i++) {
        char where[48];
        snprintf(where, sizeof(where), "run %zu", i + 1);
        for (size_t event = 0; event < v->s->event_count; event++) {
            put_csv_row(out, where, simulated_event(event)->name, "simulated", "count");
            strbuf_printf(out, "%llu,,,,\n", (unsigned long long)v->s->runs[i].values[event]);
        }
    }
}

/*
 * Lines of fields in the order of `perf stat -x`, for scripts that read those: value, unit, event,
 * with several runs the relative deviation, the time that the event had a counter in nanoseconds,
 * its share in percent, and the figure beside it with its unit.
 */
struct fields {
    const struct stat_view *v;
    const char *separator, *first; /* what begins each line, or "" */
    const struct counter_value *const *samples;
    size_t sample_count;
    double wall_ns;
};

/* The mean of an event over the samples that counted it. */
static struct spread event_spread(const struct fields *f, size_t event)
{
    CLEANUP(memory_freep) double *values = memory_zalloc(f->sample_count + 1, sizeof(*values));
    size_t count = 0;
    for (size_t i = 0; i < f->sample_count && !f->v->m->why[event]; i++)
        if (counter_was_counted(&f->samples[i][event]))
            values[count++] =
                counter_scaled(&f->samples[i][event]) * f->v->events->items[event].scale;
    return spread_of(values, count);
}

static void put_field_line(struct strbuf *out, const struct fields *f, size_t index,
                           const double *means)
{
    const struct event *e = &f->v->events->items[index];
    const char *sep = f->separator;
    struct spread s = event_spread(f, index);
    double enabled = 0, running = 0;
    for (size_t i = 0; i < f->sample_count; i++) {
        enabled += (double)f->samples[i][index].enabled_ns;
        running += (double)f->samples[i][index].running_ns;
    }
    strbuf_puts(out, f->first);
    if (f->v->m->why[index])
        strbuf_puts(out, "<not supported>");
    else if (!s.count)
        strbuf_puts(out, "<not counted>");
    else if (e->in_ns)
        strbuf_printf(out, "%.2f", s.mean / 1e6);
    else
        strbuf_printf(out, e->scale != 1 ? "%.2f" : "%.0f", s.mean);
    strbuf_printf(out, "%s%s%s", sep, e->in_ns ? "msec" : e->unit, sep);
    strbuf_put_safe(out, e->name, strlen(e->name), SIZE_MAX);
    strbuf_puts(out, f->v->m->user_only[index] ? ":u" : "");
    if (f->sample_count > 1 && s.count)
        strbuf_printf(out, "%s%.2f%%", sep, s.mean > 0 ? 100 * s.stddev / s.mean : 0);
    strbuf_printf(out, "%s%.0f%s%.2f%s", sep, running / (double)f->sample_count, sep,
                  enabled > 0 ? 100 * running / enabled : 100, sep);
    struct derived figure = derived_figure(f->v->events, means, index, f->wall_ns);
    if (s.count && *figure.text)
        strbuf_printf(out, "%.2f%s%s%s", figure.value, sep, figure.is_percent ? "% " : "",
                      figure.text);
    else
        strbuf_puts(out, sep);
    strbuf_putc(out, '\n');
}

static void put_field_lines(struct strbuf *out, const struct fields *f)
{
    size_t count = f->v->events->count;
    CLEANUP(memory_freep) double *means = memory_zalloc(count + 1, sizeof(*means));
    for (size_t i = 0; i < count; i++) {
        struct spread s = event_spread(f, i);
        means[i] = s.count ? s.mean : NAN;
    }
    for (size_t i = 0; i < count; i++)
        put_field_line(out, f, i, means);
}

void report_stat_fields(struct strbuf *out, const struct stat_view *v, const char *separator)
{
    size_t runs = v->m->run_count;
    for (size_t i = 0; i < v->m->thread_count; i++) {
        const struct measured_thread *t = &v->m->threads[i];
        const struct counter_value *sample = t->values;
        CLEANUP(strbuf_done) struct strbuf first = {0};
        strbuf_put_safe(&first, t->name, strlen(t->name), 16);
        if (!stat_has_cpus(v))
            strbuf_printf(&first, "-%d", (int)t->tid);
        strbuf_puts(&first, separator);
        struct fields f = {.v = v,
                           .separator = separator,
                           .first = strbuf_text(&first),
                           .samples = &sample,
                           .sample_count = 1,
                           .wall_ns = (double)t->wall_ns};
        put_field_lines(out, &f);
    }
    if (v->m->thread_count || v->m->interval_count || !runs)
        return;
    CLEANUP(memory_freep)
    const struct counter_value **samples = memory_zalloc(runs, sizeof(*samples));
    struct fields f = {
        .v = v, .separator = separator, .first = "", .samples = samples, .sample_count = runs};
    for (size_t i = 0; i < runs; i++) {
        samples[i] = v->m->runs[i].values;
        f.wall_ns += (double)v->m->runs[i].wall_ns / (double)runs;
    }
    put_field_lines(out, &f);
}

void report_stat_fields_interval(struct strbuf *out, const struct stat_view *v,
                                 const char *separator)
{
    const struct measured_interval *interval = &v->m->intervals[v->m->interval_count - 1];
    const struct counter_value *sample = interval->values;
    CLEANUP(strbuf_done) struct strbuf first = {0};
    strbuf_printf(&first, "%.9f%s", (double)interval->end_ns / 1e9, separator);
    struct fields f = {.v = v,
                       .separator = separator,
                       .first = strbuf_text(&first),
                       .samples = &sample,
                       .sample_count = 1,
                       .wall_ns = (double)interval->length_ns};
    put_field_lines(out, &f);
}

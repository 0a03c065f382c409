/* SPDX-License-Identifier: MIT */
/* A measurement as text, in perf stat's layout: see stat.h. */
#include "base/clock.h"
#include "base/memory.h"
#include "counters/derived.h"
#include "report/text/stat.h"

#include <math.h>
#include <stdio.h>

#define VALUE_COLUMNS 18
#define NAME_COLUMNS 32
#define ZEROS_FOLDED 3 /* from so many on, events that did not happen share a line */

/* What one table shows: one set of values per row of samples. */
struct table {
    const struct stat_view *v;
    const struct counter_value *const *samples; /* [sample] -> values of all events */
    size_t sample_count;
    const double *wall_ns; /* [sample] */
    int name_columns;
};

/* How many of the samples hold the event. */
static size_t counted_samples(const struct table *t, size_t event, double *values)
{
    size_t count = 0;
    for (size_t i = 0; i < t->sample_count; i++)
        if (counter_was_counted(&t->samples[i][event]))
            values[count++] =
                counter_scaled(&t->samples[i][event]) * t->v->events->items[event].scale;
    return count;
}

/* Each event's mean over the samples, NAN when it was not counted. */
static void event_means(const struct table *t, double *means)
{
    CLEANUP(memory_freep) double *values = memory_zalloc(t->sample_count, sizeof(*values));
    for (size_t i = 0; i < t->v->events->count; i++) {
        size_t count = t->v->m->why[i] ? 0 : counted_samples(t, i, values);
        means[i] = count ? spread_of(values, count).mean : NAN;
    }
}

static void put_derived(struct strbuf *out, const struct derived *figure)
{
    if (!*figure->text)
        return;
    if (figure->is_percent)
        strbuf_printf(out, "#%8.2f%% %s", figure->value, figure->text);
    else if (str_eq(figure->text, "insn per cycle"))
        strbuf_printf(out, "#%8.2f  %s", figure->value, figure->text);
    else
        strbuf_printf(out, "#%9.3f %s", figure->value, figure->text);
}

/* The share of the time in which the event had a counter, over all samples. */
static double running_share(const struct table *t, size_t event)
{
    double enabled = 0, running = 0;
    for (size_t i = 0; i < t->sample_count; i++) {
        enabled += (double)t->samples[i][event].enabled_ns;
        running += (double)t->samples[i][event].running_ns;
    }
    return enabled > 0 ? running / enabled : 1;
}

static void put_missing(struct strbuf *out, const struct table *t, size_t event, const char *word)
{
    const struct stat_view *v = t->v;
    const char *name = v->events->items[event].name;
    strbuf_printf(out, "%s%*s%s      ", v->colour ? "\033[2m" : "", VALUE_COLUMNS, word,
                  v->colour ? "\033[0m" : "");
    strbuf_put_safe(out, name, strlen(name), SIZE_MAX);
    strbuf_putc(out, '\n');
}

static void put_event(struct strbuf *out, const struct table *t, size_t index, const double *means,
                      double wall_ns)
{
    const struct stat_view *v = t->v;
    const struct event *e = &v->events->items[index];
    if (v->m->why[index]) {
        put_missing(out, t, index, "<not supported>");
        return;
    }
    if (isnan(means[index])) {
        put_missing(out, t, index, "<not counted>");
        return;
    }
    CLEANUP(memory_freep) double *values = memory_zalloc(t->sample_count, sizeof(*values));
    struct spread s = spread_of(values, counted_samples(t, index, values));
    double divisor = e->in_ns ? 1e6 : 1;
    /* A mean of counts is rarely whole; a single count always is. */
    int decimals = e->in_ns || e->scale != 1 ? 2 : s.stddev > 0 && s.mean < 100 ? 1 : 0;
    strbuf_put_grouped(out, s.mean / divisor, decimals, VALUE_COLUMNS);
    const char *mode = v->m->user_only[index] ? ":u" : "";
    strbuf_printf(out, " %-4s ", e->in_ns ? "msec" : e->unit);
    size_t start = out->length;
    strbuf_put_safe(out, e->name, strlen(e->name), SIZE_MAX);
    strbuf_puts(out, mode);
    struct derived figure = derived_figure(v->events, means, index, wall_ns);
    double share = running_share(t, index);
    bool more = *figure.text || s.count > 1 || share < 0.9995;
    size_t used = out->length - start;
    if (more)
        strbuf_pad(out, ' ', used < (size_t)t->name_columns ? (size_t)t->name_columns - used : 0);
    if (more)
        strbuf_putc(out, ' ');
    start = out->length;
    put_derived(out, &figure);
    if (s.count > 1) {
        used = out->length - start;
        strbuf_pad(out, ' ', used < 27 ? 27 - used : 0);
        strbuf_put_spread(out, &s, divisor, e->in_ns || e->scale != 1 ? 2 : 0);
    }
    if (share < 0.9995)
        strbuf_printf(out, "  (%.2f%%)", 100 * share);
    strbuf_putc(out, '\n');
}

/* Events that did not happen, on a line of their own, when they are many beside others. */
static void put_zeros(struct strbuf *out, const struct table *t, const double *means)
{
    size_t start = out->length;
    for (size_t i = 0; i < t->v->events->count; i++) {
        if (t->v->m->why[i] || means[i] != 0)
            continue;
        const char *name = t->v->events->items[i].name;
        bool is_first = out->length == start;
        if (is_first)
            strbuf_printf(out, "%*d      ", VALUE_COLUMNS, 0);
        else
            strbuf_puts(out, ", ");
        if (!is_first && out->length - start + strlen(name) > 100) {
            strbuf_printf(out, "\n%*s", VALUE_COLUMNS + 6, "");
            start = out->length - VALUE_COLUMNS - 6;
        }
        strbuf_put_safe(out, name, strlen(name), SIZE_MAX);
        strbuf_puts(out, t->v->m->user_only[i] ? ":u" : "");
    }
    strbuf_putc(out, '\n');
}

static void put_events(struct strbuf *out, const struct table *t)
{
    size_t count = t->v->events->count, zeros = 0;
    CLEANUP(memory_freep) double *means = memory_zalloc(count, sizeof(*means));
    event_means(t, means);
    double wall_ns = spread_of(t->wall_ns, t->sample_count).mean;
    for (size_t i = 0; i < count; i++)
        zeros += !t->v->m->why[i] && means[i] == 0;
    bool folds = zeros >= ZEROS_FOLDED && zeros < count;
    for (size_t i = 0; i < count; i++)
        if (!folds || t->v->m->why[i] || means[i] != 0)
            put_event(out, t, i, means, wall_ns);
    if (folds)
        put_zeros(out, t, means);
}

/* A line below the events: a figure of the process as a whole. */
static void put_figure(struct strbuf *out, const double *values, size_t count, double divisor,
                       int decimals, const char *unit)
{
    struct spread s = spread_of(values, count);
    /* A mean of counts is rarely whole. */
    bool part = decimals == 0 && s.stddev > 0 && s.mean < 100;
    strbuf_put_grouped(out, s.mean / divisor, part ? 1 : decimals, VALUE_COLUMNS);
    strbuf_printf(out, " %s", unit);
    if (count > 1)
        strbuf_put_spread(out, &s, divisor, decimals > 6 ? 6 : decimals);
    strbuf_putc(out, '\n');
}

enum usage_figure {
    USAGE_USER,
    USAGE_SYSTEM,
    USAGE_INVOLUNTARY,
    USAGE_RSS,
    USAGE_READ,
    USAGE_WRITTEN
};

static double usage_value(const struct rusage *u, enum usage_figure figure)
{
    switch (figure) {
    case USAGE_USER:
        return (double)timeval_ns(u->ru_utime);
    case USAGE_SYSTEM:
        return (double)timeval_ns(u->ru_stime);
    case USAGE_INVOLUNTARY:
        return (double)u->ru_nivcsw;
    case USAGE_RSS:
        return (double)u->ru_maxrss;
    case USAGE_READ:
        return (double)u->ru_inblock;
    case USAGE_WRITTEN:
        return (double)u->ru_oublock;
    }
    return 0;
}

static void put_usage(struct strbuf *out, const struct stat_view *v, enum usage_figure figure,
                      double divisor, int decimals, const char *unit)
{
    size_t count = v->m->run_count;
    CLEANUP(memory_freep) double *values = memory_zalloc(count, sizeof(*values));
    for (size_t i = 0; i < count; i++)
        values[i] = usage_value(&v->m->runs[i].usage, figure);
    put_figure(out, values, count, divisor, decimals, unit);
}

/* Of the runs whose peak is the command's own, if there are any. */
static void put_peak_rss(struct strbuf *out, const struct stat_view *v)
{
    size_t count = v->m->run_count, exact = 0;
    CLEANUP(memory_freep) double *values = memory_zalloc(count, sizeof(*values));
    for (size_t i = 0; i < count; i++)
        if (!v->m->runs[i].rss_is_bound)
            values[exact++] = usage_value(&v->m->runs[i].usage, USAGE_RSS);
    CLEANUP(memory_freep)
    char *unit = exact < count
                     ? memory_printf("kB peak RSS (of %zu %s)", exact, plural(exact, "run", "runs"))
                     : memory_strdup("kB peak RSS");
    if (exact)
        put_figure(out, values, exact, 1, 0, unit);
    else
        put_usage(out, v, USAGE_RSS, 1, 0,
                  "kB peak RSS at most (what it was started from; the command needed less)");
}

static int widest_name(const struct stat_view *v)
{
    size_t width = v->m->run_count > 1 ? 18 : NAME_COLUMNS;
    for (size_t i = 0; i < v->events->count; i++) {
        size_t length = str_columns(v->events->items[i].name) + 2;
        if (!v->m->why[i] && length > width)
            width = length < 60 ? length : 60;
    }
    return (int)width;
}

static void put_thread_tables(struct strbuf *out, const struct stat_view *v, int name_columns)
{
    for (size_t i = 0; i < v->m->thread_count; i++) {
        const struct measured_thread *thread = &v->m->threads[i];
        bool counted = false;
        for (size_t j = 0; j < v->events->count; j++)
            counted |= thread->values[j].running_ns > 0;
        if (!counted)
            continue;
        double wall_ns = (double)thread->wall_ns;
        const struct counter_value *sample = thread->values;
        struct table t = {.v = v,
                          .samples = &sample,
                          .sample_count = 1,
                          .wall_ns = &wall_ns,
                          .name_columns = name_columns};
        if (stat_has_cpus(v)) {
            strbuf_printf(out, " %s:\n", thread->name);
        } else {
            strbuf_puts(out, " thread ");
            strbuf_put_safe(out, thread->name, strlen(thread->name), 16);
            strbuf_printf(out, "-%d:\n", (int)thread->tid);
        }
        put_events(out, &t);
        strbuf_putc(out, '\n');
    }
}

void report_stat_text(struct strbuf *out, const struct stat_view *v)
{
    size_t count = v->m->run_count;
    strbuf_printf(out, "\n Performance counter stats for %s", v->target);
    if (v->requested_runs > 1)
        strbuf_printf(out, " (%zu %s%s: mean ± standard deviation [min … max])", count,
                      plural(count, "run", "runs"), count < v->requested_runs ? " finished" : "");
    strbuf_puts(out, ":\n\n");
    if (!count) {
        strbuf_puts(out, "  no run was finished\n\n");
        return;
    }
    CLEANUP(memory_freep)
    const struct counter_value **samples = memory_zalloc(count, sizeof(*samples));
    CLEANUP(memory_freep) double *wall_ns = memory_zalloc(count, sizeof(*wall_ns));
    for (size_t i = 0; i < count; i++) {
        samples[i] = v->m->runs[i].values;
        wall_ns[i] = (double)v->m->runs[i].wall_ns;
    }
    struct table t = {.v = v,
                      .samples = samples,
                      .sample_count = count,
                      .wall_ns = wall_ns,
                      .name_columns = widest_name(v)};
    if (v->m->thread_count)
        put_thread_tables(out, v, t.name_columns);
    if (v->m->thread_count)
        strbuf_puts(out, stat_has_cpus(v) ? " all CPUs:\n" : " all threads:\n");
    put_events(out, &t);
    strbuf_putc(out, '\n');
    put_figure(out, wall_ns, count, 1e9, 9, "seconds time elapsed");
    strbuf_putc(out, '\n');
    if (v->has_usage) {
        put_usage(out, v, USAGE_USER, 1e9, 9, "seconds user");
        put_usage(out, v, USAGE_SYSTEM, 1e9, 9, "seconds sys");
        strbuf_putc(out, '\n');
        put_usage(out, v, USAGE_INVOLUNTARY, 1, 0, "involuntary context switches");
        put_peak_rss(out, v);
        put_usage(out, v, USAGE_READ, 1, 0, "blocks read (512 B)");
        put_usage(out, v, USAGE_WRITTEN, 1, 0, "blocks written (512 B)");
        strbuf_putc(out, '\n');
    }
    strbuf_put_notes(out, v->doubts, v->colour);
}

void report_stat_interval(struct strbuf *out, const struct stat_view *v)
{
    const struct measured_interval *interval = &v->m->intervals[v->m->interval_count - 1];
    if (v->m->interval_count == 1 || interval[-1].run != interval->run)
        strbuf_printf(out, "#%11s %19s unit events\n", "time", "counts");
    const struct counter_value *sample = interval->values;
    double wall_ns = (double)interval->length_ns;
    struct table t = {
        .v = v, .samples = &sample, .sample_count = 1, .wall_ns = &wall_ns, .name_columns = 24};
    CLEANUP(strbuf_done) struct strbuf table = {0};
    put_events(&table, &t);
    for (const char *line = strbuf_text(&table); *line;) {
        size_t length = strcspn(line, "\n");
        strbuf_printf(out, "%12.6f ", (double)interval->end_ns / 1e9);
        strbuf_append(out, line, length);
        strbuf_putc(out, '\n');
        line += length + (line[length] == '\n');
    }
}

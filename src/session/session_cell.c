/* SPDX-License-Identifier: MIT */
/* One run of one cell: what is done around it, what it gave, and how that is kept. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "numbers/random.h"
#include "run/command.h"
#include "session/extract.h"
#include "session/session_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* Of the standard output that metrics are looked for in. */
#define OUTPUT_BYTES ((size_t)16 << 20)

/* What is collected for the store. */
struct collector {
    struct session *s;
    size_t cell;
    struct store_value *values;
    size_t count, capacity;
    struct store_series *series;
    size_t series_count, series_capacity;
    double headline;
    struct strbuf names; /* of all metrics, where one was asked for by name */
};

static int collect(struct collector *c, const char *name, const char *unit,
                   struct metric_facts facts, const char *kind, const struct store_value *value,
                   struct error *err)
{
    int64_t id;
    int r = store_metric_id(c->s->store, name, unit, facts, kind, &id, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < c->count; i++)
        if (c->values[i].metric == id) /* the spec's word comes first */
            return 0;
    struct store_value kept = *value;
    kept.metric = id;
    if (c->s->options->headline)
        strbuf_printf(&c->names, "%s%s", c->names.length ? ", " : "", name);
    ARRAY_PUSH(c->values, c->count, c->capacity) = kept;
    if (isnan(c->headline) && str_eq(name, c->s->headline))
        c->headline = value->value;
    return 0;
}

static int collect_plain(struct collector *c, const char *name, const char *unit,
                         struct metric_facts facts, const char *kind, double value,
                         struct error *err)
{
    if (!isfinite(value) || session_drops_unit(c->s, c->cell, name, unit))
        return 0;
    return collect(c, name, unit, facts, kind, &(struct store_value){.value = value}, err);
}

/* A metric that the spec names is better when lower unless the spec, or its unit, says otherwise.
 */
static struct metric_facts facts_of_spec(const struct spec_metric *m, const char *unit)
{
    struct metric_facts facts = metric_facts_of(m->name, unit);
    if (m->better_given)
        facts.better = m->better;
    else if (facts.better == METRIC_NEITHER)
        facts.better = METRIC_LOWER;
    return facts;
}

/* A value that came from elsewhere.  A store that fails now fails again with the run. */
static void collect_given(void *context, const char *name, const char *unit, double value)
{
    struct error ignored;
    bool is_headline = str_eq(name, ((struct collector *)context)->s->headline);
    bool is_cost = is_headline || str_eq(name, SIMULATED_INSTRUCTIONS);
    struct metric_facts facts = {.better = is_cost ? METRIC_LOWER : METRIC_NEITHER,
                                 .is_count = !*unit};
    collect_plain(context, name, unit, facts, "monitor", value, &ignored);
}

/* A figure that cannot be used is said once for each name, when it first comes. */
static void note_refused(struct session *s)
{
    size_t known = s->refused.count;
    metric_refusals_add(&s->refused, &s->result.metrics.refused);
    for (size_t i = known; i < s->refused.count; i++)
        strbuf_printf(&s->notes, "a line on ASSAY_METRICS_FD cannot be used: '%s': %s\n",
                      s->refused.items[i].line, s->refused.items[i].why);
    if (s->result.metrics.truncated && !s->metrics_truncated)
        strbuf_printf(&s->notes,
                      "a run wrote more than %d bytes of metrics; the rest is lost (told once)\n",
                      METRICS_BYTES_MAX);
    s->metrics_truncated |= s->result.metrics.truncated;
}

/* What the program reported and what the spec looks for. */
static int collect_metrics(struct collector *c, const struct hole_values *values, struct error *err)
{
    struct session *s = c->s;
    const struct metric_list *printed = &s->result.metrics;
    note_refused(s);
    for (size_t i = 0; i < s->spec.metric_count; i++) {
        const struct spec_metric *m = &s->spec.metrics[i];
        if (session_is_simulated(m))
            continue;
        const struct metric *same = metrics_find(printed, m->name);
        const char *unit = m->unit[0] ? m->unit : same ? same->unit : "";
        double value = NAN;
        int r =
            extract_metric(m, printed, strbuf_text(&s->result.kept_stdout), values, &value, err);
        if (r < 0 && m->optional)
            continue;
        if (r == 0)
            r = collect_plain(c, m->name, unit, facts_of_spec(m, unit), "metric", value, err);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < printed->count; i++) {
        const struct metric *m = &printed->items[i];
        bool known = false;
        for (size_t k = 0; k < s->spec.metric_count && !known; k++)
            known = str_eq(s->spec.metrics[k].name, m->name);
        int r = known ? 0
                      : collect_plain(c, m->name, m->unit, metric_facts_of(m->name, m->unit),
                                      "metric", m->value, err);
        if (r < 0)
            return r;
    }
    return 0;
}

#define COUNTED                                    \
    {                                              \
        .better = METRIC_NEITHER, .is_count = true \
    }

static int collect_usage(struct collector *c, struct error *err)
{
    const struct run_result *result = &c->s->result;
    const struct rusage *u = &result->usage;
    uint64_t rss_bytes = (uint64_t)u->ru_maxrss * 1024;
    const struct {
        const char *name, *unit;
        double value;
        struct metric_facts facts;
    } figures[] = {
        {"wall", "ns", (double)result->wall_ns, {.better = METRIC_LOWER, .is_speed = true}},
        {"user", "ns", (double)timeval_ns(u->ru_utime), {.better = METRIC_LOWER}},
        {"sys", "ns", (double)timeval_ns(u->ru_stime), {.better = METRIC_LOWER}},
        {"peak-rss",
         "bytes",
         rss_bytes > result->rss_bytes_floor ? (double)rss_bytes : NAN,
         {.better = METRIC_LOWER}},
        {"minor-faults", "", (double)u->ru_minflt, COUNTED},
        {"major-faults", "", (double)u->ru_majflt, COUNTED},
        {"voluntary-switches", "", (double)u->ru_nvcsw, COUNTED},
        {"involuntary-switches", "", (double)u->ru_nivcsw, COUNTED},
        {"blocks-read", "", (double)u->ru_inblock, COUNTED},
        {"blocks-written", "", (double)u->ru_oublock, COUNTED},
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(figures); i++)
        r = collect_plain(c, figures[i].name, figures[i].unit, figures[i].facts, "time",
                          figures[i].value, err);
    if (r == 0 && str_eq(c->s->headline, "cpu")) /* the sum of two that are there */
        r = collect_plain(c, "cpu", "ns", (struct metric_facts){.better = METRIC_LOWER}, "time",
                          session_cpu_ns(result), err);
    return r;
}

double session_cpu_ns(const struct run_result *result)
{
    return (double)(timeval_ns(result->usage.ru_utime) + timeval_ns(result->usage.ru_stime));
}

/* A metric that somebody asked for by name and that no run has: said at once, with what there is.
 */
static int check_headline(const struct collector *c, struct error *err)
{
    if (!c->s->options->headline || !isnan(c->headline))
        return 0;
    return error_set(err, -ENOENT, "no metric '%s' was measured; there are: cpu, %s",
                     c->s->options->headline, strbuf_text(&c->names));
}

static int collect_counters(struct collector *c, struct error *err)
{
    struct session *s = c->s;
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->events.count; i++) {
        const struct counter_value *v = &s->result.values[i];
        const struct event *e = &s->events.items[i];
        if (s->runner.counters.items[i].why || !counter_was_counted(v))
            continue;
        struct store_value value = {.value = counter_scaled(v) * (e->scale != 0 ? e->scale : 1),
                                    .enabled_ns = v->enabled_ns,
                                    .running_ns = v->running_ns};
        r = collect(c, e->name, e->in_ns ? "ns" : e->unit, event_facts(e), "counter", &value, err);
    }
    return r;
}

static int collect_monitors(struct collector *c, struct error *err)
{
    const struct monitors *m = &c->s->monitors;
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->column_count; i++) {
        const struct monitor_column *column = &m->columns[i];
        /* A monitor's per cent are shares of time. */
        if (!isfinite(column->value) ||
            (str_eq(column->unit, "%") &&
             session_drops_time(c->s, c->cell, column->name, column->unit)))
            continue;
        r = collect_plain(c, column->name, column->unit, monitor_facts(column), "monitor",
                          column->value, err);
        /* Two readings give one number, which is kept already. */
        if (r == 0 && m->tick_count > 2 && column->capacity >= m->tick_count)
            ARRAY_PUSH(c->series, c->series_count, c->series_capacity) = (struct store_series){
                .metric = c->values[c->count - 1].metric, .values = column->values};
    }
    if (r == 0 && m->instance_count && !c->s->guests)
        r = collect_plain(c, "assay.monitors.cpu", "ns",
                          (struct metric_facts){.better = METRIC_NEITHER}, "monitor",
                          (double)m->cpu_ns, err);
    return r;
}

/* Up to the number of kinds; returns how many. */
static size_t list_disturbances(const struct run_result *result, bool is_exact,
                                struct store_disturbance *list)
{
    const struct disturbance *d = &result->disturbance;
    const char *reason = disturbance_reason(d, result->wall_ns);
    if (!reason || is_exact) /* which changes no count */
        return 0;
    const struct store_disturbance kinds[] = {
        {"steal", (double)d->steal_ns, "ns taken by the host"},
        {"pressure-cpu", (double)d->pressure_cpu_ns, "ns in which a task waited for a CPU"},
        {"others", (double)d->others_ns, "ns of CPU time of other processes"},
        {"pressure-io", (double)d->pressure_io_ns, "ns in which a task waited for storage"},
        {"pressure-memory", (double)d->pressure_memory_ns, "ns in which a task waited for memory"},
        {"migrations", (double)d->migrations, "moves between CPUs"},
        {"throttled", (double)d->throttles, "times a CPU was slowed down by heat"},
        {"stalled", (double)d->stalled_ns, "ns in which assay was suspended"},
    };
    size_t count = 0;
    list[count++] = (struct store_disturbance){"reason", (double)result->wall_ns, reason};
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        if (kinds[i].amount > 0)
            list[count++] = kinds[i];
    return count;
}

static int keep_run(struct session *s, const struct collector *c, size_t cell, uint64_t round,
                    uint64_t position, uint64_t started_at_ns, int status, const char *said,
                    struct error *err)
{
    struct store_disturbance disturbances[9];
    size_t disturbance_count = list_disturbances(&s->result, s->exact_words != NULL, disturbances);
    struct store_new_run run = {
        .cell = s->cells[cell].id,
        .round = round,
        .position = position,
        .started_at_ns = started_at_ns,
        .wall_ns = s->result.wall_ns,
        .status = status,
        .layout = s->layout,
        .output = said,
        .values = c->values,
        .value_count = c->count,
        .tick_ns = s->monitors.tick_ns,
        .tick_count = c->series_count ? s->monitors.tick_count : 0,
        .series = c->series,
        .series_count = c->series_count,
        .disturbances = disturbances,
        .disturbance_count = disturbance_count,
    };
    int r = store_add_run(s->store, s->experiment, &run, err);
    if (r == 0)
        s->disturbed_count += disturbance_count > 0;
    return r;
}

static void start_monitors(void *context)
{
    monitors_start(context);
}

/* Line by line, so that line ends stay what they are and nothing else disturbs a terminal. */
static void put_safe_lines(struct strbuf *out, const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t line = end ? (size_t)(end - text) - at : length - at;
        strbuf_put_safe(out, text + at, line, line);
        if (end && at + line + 1 < length)
            strbuf_putc(out, '\n');
        at += line + 1;
    }
}

/* How a failed run is told: what ran, how it ended, what it said last. */
static int describe_failure(struct session *s, size_t cell, struct strbuf *said, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf end = {0};
    run_describe_end(&s->result, &end);
    const struct strbuf *stream =
        s->result.kept_stderr.length ? &s->result.kept_stderr : &s->result.kept_stdout;
    size_t most = 600, from = stream->length > most ? stream->length - most : 0;
    if (stream->length)
        put_safe_lines(said, stream->data + from, stream->length - from);
    return error_set(err, -ECANCELED, "cell %zu (%s) failed: %s\ncommand: %s\n%s%s", cell + 1,
                     s->matrix.cells[cell].label, strbuf_text(&end), s->cells[cell].command,
                     said->length ? "its output: " : "it printed nothing", strbuf_text(said));
}

/* Returns 1 when the run was good, 0 when it failed (err says how), negative when assay did. */
static int judge_run(struct session *s, size_t cell, struct collector *c,
                     const struct hole_values *values, struct strbuf *said, struct error *err)
{
    if (run_failed(&s->result)) {
        describe_failure(s, cell, said, err);
        return 0;
    }
    int r = collect_metrics(c, values, err);
    if (r == -ENOENT || r == -EINVAL || r == -ENOTSUP) {
        strbuf_puts(said, err->message);
        error_wrap(err, r, "cell %zu (%s)", cell + 1, s->matrix.cells[cell].label);
        return 0;
    }
    if (r == 0 && !s->exact_words) /* an emulator's times mean nothing */
        r = collect_usage(c, err);
    if (r == 0)
        r = collect_counters(c, err);
    if (r == 0 && s->guests)
        session_give_counts(s, cell, collect_given, c);
    if (r == 0)
        r = collect_monitors(c, err);
    return r < 0 ? r : 1;
}

static size_t padding_of(const struct session *s, uint64_t round)
{
    if (!s->spec.vary_layout)
        return 0;
    struct rng rng;
    rng_seed(&rng, s->seed ^ (round + 1) * 0x9e3779b97f4a7c15ULL);
    return 1 + (size_t)rng_below(&rng, RUN_PADDING_MAX - 1);
}

static int measure(struct session *s, size_t cell, const struct hole_values *values,
                   struct error *err)
{
    if (s->guests)
        return session_measure_in_guest(s, cell, values, padding_of(s, values->round), &s->result,
                                        err);
    struct session_cell *c = &s->cells[cell];
    char **argv = NULL; /* anew, because the round and the seed may stand in it */
    int r = holes_command(&s->spec.command, values, &argv, err);
    if (r == 0)
        r = steps_before(&s->steps, values, false, err);
    if (r < 0) {
        command_free_words(argv);
        return r;
    }
    char **words = command_join_words(s->exact_words, argv);
    struct run_spec spec = {
        .argv = words,
        .program = s->exact_words ? "/proc/self/exe" : NULL,
        .environment_added = c->environment,
        .working_dir = spec_folder(&s->spec, s->matrix.cells[cell].levels),
        .input_path = c->input,
        .stdout_to = output_parse(s->options->output),
        .output_path = s->options->output,
        .stderr_to = RUN_KEEP,
        .keep_bytes = OUTPUT_BYTES,
        .cpus = s->cpus,
        .cpu_count = s->cpu_count,
        .timeout_ns = s->options->timeout_ns ? s->options->timeout_ns : s->spec.timeout_ns,
        .padding_bytes = s->exact_words ? 0 : padding_of(s, values->round),
        .small_start = !s->exact_words,
        .beside_others = steps_running(&s->steps),
        .on_ready = start_monitors,
        .context = &s->monitors,
    };
    r = runner_run(&s->runner, &spec, &s->result, err);
    monitors_stop(&s->monitors);
    free(words);
    command_free_words(argv);
    if (r == 0)
        r = steps_check(&s->steps, err);
    struct error ignored;
    int after = steps_after(&s->steps, values, false, r < 0 ? &ignored : err);
    return r < 0 ? r : after;
}

static int finish_run(struct session *s, size_t cell, const struct hole_values *values,
                      uint64_t position, uint64_t started_at_ns, bool keep, struct error *err)
{
    struct collector c = {.s = s, .cell = cell, .headline = NAN};
    CLEANUP(strbuf_done) struct strbuf said = {0};
    int good = judge_run(s, cell, &c, values, &said, err), r = good < 0 ? good : 0;
    int status = good ? 0 : s->result.status ? s->result.status : 1 << 8;
    if (good > 0 && keep && session_watches(s))
        session_watch(s, cell, values->round, collect_given, &c);
    if (r == 0 && good && keep)
        r = check_headline(&c, err);
    struct error store_err;
    if (r == 0 && keep) {
        r = keep_run(s, &c, cell, values->round, position, started_at_ns, status,
                     good ? NULL : strbuf_text(&said), good ? err : &store_err);
        if (r < 0 && !good)
            *err = store_err;
    }
    if (r == 0 && good && keep) {
        session_note_value(s, cell, (uint32_t)values->round, c.headline);
        session_note_cpu(s, cell, (uint32_t)values->round, &s->result);
        s->cells[cell].wall_sum_ns += s->result.wall_ns;
        s->cells[cell].run_count++;
    }
    free(c.values);
    free(c.series);
    strbuf_done(&c.names);
    if (r < 0)
        return r;
    return good ? 0 : -ECANCELED;
}

/* The others go on; one that keeps failing is left out of the rounds to come. */
static void note_failure(struct session *s, size_t cell)
{
    struct contestant_state *tries = &s->cells[cell].tries;
    contestant_state_note(tries, true);
    if (!tries->is_out)
        return;
    s->kept[cell] = false;
    /* Of sides that are compared with each other, one alone says nothing. */
    for (size_t c = 0; s->options->side_count && c < s->matrix.count; c++)
        if (s->matrix.cells[c].baseline == s->matrix.cells[cell].baseline)
            s->kept[c] = false;
}

int session_run_cell(struct session *s, size_t cell, uint64_t round, uint64_t position, bool keep,
                     struct error *err)
{
    struct hole_values values = {.spec = &s->spec,
                                 .levels = s->matrix.cells[cell].levels,
                                 .builds = s->cells[cell].build_folders,
                                 .cell = cell + 1,
                                 .round = round,
                                 .seed = (s->seed ^ (round * 1000003 + cell)) & INT32_MAX};
    s->current = s->matrix.cells[cell].label;
    session_show_progress(s);
    for (s->retried_count = 0;; s->retried_count++) {
        uint64_t started_at_ns = clock_read_ns(CLOCK_REALTIME);
        int r = measure(s, cell, &values, err);
        if (s->result.signal || process_signals_caught())
            return error_set(err, -EINTR, "interrupted");
        if (r == 0)
            r = finish_run(s, cell, &values, position, started_at_ns, keep, err);
        if (r == 0)
            contestant_state_note(&s->cells[cell].tries, false);
        if (r == 0)
            return 0;
        bool last = s->retried_count + 1 >= s->spec.attempts;
        if (r != -ECANCELED || (last && s->options->task && !s->spec.allow_failures))
            return r;
        if (last && !s->spec.allow_failures)
            note_failure(s, cell);
        bool first = s->cells[cell].failed_count == s->retried_count;
        if (last && first) /* of its rounds; as it would be told if it ended the session */
            strbuf_printf(&s->notes, "continuing without: %s\n", err->message);
        s->cells[cell].failed_count++;
        s->failed_count++;
        if (last)
            return 0;
    }
}

size_t session_failed_cells(const struct session *s)
{
    size_t count = 0;
    for (size_t c = 0; s->cells && c < s->matrix.count; c++)
        count += s->cells[c].tries.failed_count > 0;
    return count;
}

static int tell_failed(const struct session *s, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf names = {0};
    size_t count = session_failed_cells(s);
    for (size_t c = 0; c < s->matrix.count && names.length < 300; c++) {
        const struct contestant_state *tries = &s->cells[c].tries;
        if (tries->failed_count)
            strbuf_printf(&names, "%s%s (%zu of %zu %s)", names.length ? ", " : "",
                          s->matrix.cells[c].label, tries->failed_count, tries->run_count,
                          plural(tries->run_count, "run", "runs"));
    }
    return error_set(err, -ECANCELED, "%zu of %zu %s failed: %s", count, s->kept_count,
                     plural(s->kept_count, "cell", "cells"), strbuf_text(&names));
}

int session_check_failures(const struct session *s, struct error *err)
{
    if (session_failed_cells(s))
        return tell_failed(s, err);
    if (s->run_count_before || !s->failed_count)
        return 0;
    for (size_t c = 0; c < s->matrix.count; c++)
        if (s->cells[c].tries.run_count > s->cells[c].tries.failed_count)
            return 0;
    return error_set(err, -ECANCELED, "every run failed; nothing was measured");
}

/* SPDX-License-Identifier: MIT */
/* What `assay ab` found, as JSON with every raw value: see ab.h and docs/FORMATS.md. */
#include "base/json.h"
#include "base/memory.h"
#include "config.h"
#include "report/text/ab.h"

#include <math.h>
#include <stdio.h>
#include <sys/wait.h>

static const char *end_name(enum rounds_end end)
{
    switch (end) {
    case ROUNDS_DONE:
        return "done";
    case ROUNDS_TIME:
        return "time";
    case ROUNDS_PRECISE:
        return "precise";
    case ROUNDS_SIGNAL:
        return "signal";
    case ROUNDS_FAILURE:
        return "failure";
    }
    return "";
}

/* The clock is assay's own; other times and counts of every run are from wait4. */
static const char *source_name(const struct store_metric *m)
{
    return str_has_prefix(m->name, "sim:") ? "simulated"
           : str_eq(m->kind, "metric")     ? "program"
           : str_eq(m->kind, "counter")    ? "event"
           : str_eq(m->name, "wall")       ? "clock"
                                           : "rusage";
}

static void put_started(struct json *j, const struct ab_view *v)
{
    char text[40];
    struct tm broken;
    gmtime_r(&v->started, &broken);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &broken);
    json_string(j, "started", text);
}

/* Warm-ups included. */
static void put_failures(struct json *j, const struct contestant_state *state)
{
    json_u64(j, "tries", state->run_count);
    json_u64(j, "tries_failed", state->failed_count);
    if (!state->failure.what)
        return;
    CLEANUP(strbuf_done) struct strbuf words = {0};
    failure_last_words(&state->failure, &words);
    json_object(j, "failure");
    json_string(j, "end", strbuf_text(&state->failure.end));
    json_i64(j, "exit_code", state->failure.exit_code);
    json_string(j, "last_words", strbuf_text(&words));
    json_bool(j, "given_up", state->is_out);
    json_end(j);
}

static void put_commands(struct json *j, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    json_array(j, "commands");
    for (size_t i = 0; i < o->data->cell_count; i++) {
        const struct participant *p = &o->participants[i];
        json_object(j, NULL);
        json_string(j, "name", p->name);
        json_string(j, "command", p->command);
        json_string(j, "parameters", *p->parameters ? p->parameters : NULL);
        json_string(j, "variant", p->variant);
        json_u64(j, "group", p->group);
        json_bool(j, "is_reference", p->is_reference);
        if (v->spec) {
            const struct contestant *c = &v->spec->contestants[i];
            json_array(j, "argv");
            for (size_t word = 0; c->command.argv[word]; word++)
                json_string(j, NULL, c->command.argv[word]);
            json_end(j);
            json_string(j, "setup", c->setup);
            json_string(j, "prepare", c->prepare);
            json_string(j, "conclude", c->conclude);
            json_string(j, "cleanup", c->cleanup);
        }
        if (v->rounds)
            put_failures(j, &v->rounds->states[i]);
        json_end(j);
    }
    json_end(j);
}

static void put_settings(struct json *j, const struct ab_view *v)
{
    const struct rounds_spec *spec = v->spec;
    json_object(j, "settings");
    json_u64(j, "seed", spec->seed);
    json_u64(j, "warmup_rounds", spec->warmup_count);
    json_bool(j, "duet", spec->duet);
    json_string(j, "shell", v->shell);
    if (v->shell_startup_ns)
        json_u64(j, "shell_startup_ns", v->shell_startup_ns);
    else
        json_null(j, "shell_startup_ns");
    json_string(j, "input", spec->input_path);
    json_string(j, "directory", spec->working_dir);
    json_u64(j, "timeout_ns", spec->timeout_ns);
    json_bool(j, "environment_padded", !spec->no_padding);
    json_array(j, "cpus");
    for (size_t i = 0; i < (spec->duet ? 2 : spec->cpu_count); i++)
        json_i64(j, NULL, spec->duet ? v->rounds->duet_cpus[i] : spec->cpus[i]);
    json_end(j);
    json_end(j);
}

static void put_summary(struct json *j, const struct outcome_cell *cell)
{
    const struct summary *s = &cell->summary;
    json_u64(j, "n", s->count);
    if (!s->count)
        return;
    json_double(j, "median", s->median);
    json_double(j, "median_low", cell->median.low);
    json_double(j, "median_high", cell->median.high);
    json_double(j, "median_level", cell->median.level);
    json_double(j, "mad", s->mad);
    json_double(j, "mean", s->mean);
    json_double(j, "stddev", s->stddev);
    json_double(j, "min", s->min);
    json_double(j, "q1", s->q1);
    json_double(j, "q3", s->q3);
    json_double(j, "max", s->max);
}

static void put_comparison(struct json *j, const struct ab_view *v, const struct judge_row *judged,
                           size_t participant)
{
    const struct comparison *c = &judged->comparison;
    json_object(j, "comparison");
    json_u64(j, "reference", outcome_reference(v->outcome, participant));
    json_string(j, "scale", c->scale == COMPARISON_RATIO ? "ratio" : "difference");
    json_double(j, "estimate", c->estimate);
    json_double(j, "low", c->low);
    json_double(j, "high", c->high);
    json_double(j, "level", c->level);
    json_double(j, "p", c->p);
    json_double(j, "p_adjusted", judged->p_adjusted);
    json_bool(j, "stands", judged->changed);
    json_string(j, "verdict", verdict_name(judged->verdict.kind));
    CLEANUP(strbuf_done) struct strbuf words = {0};
    strbuf_put_verdict(&words, judged);
    json_string(j, "text", strbuf_text(&words));
    json_double(j, "bound", judged->verdict.bound);
    if (judged->verdict.kind == VERDICT_CANNOT_TELL) {
        json_double(j, "more_rounds", judged->verdict.more_rounds);
        json_double(j, "more_seconds", judged->verdict.more_seconds);
    }
    json_bool(j, "paired", c->paired);
    json_string(j, "method", c->method);
    json_bool(j, "too_few", c->too_few);
    json_bool(j, "autocorrelated", c->autocorrelated);
    json_double(j, "autocorrelation", c->autocorrelation);
    json_double(j, "widening", c->widening);
    json_end(j);
}

/* By round; null where a round has none. */
static void put_values(struct json *j, const struct dataset *d, size_t metric, size_t cell)
{
    struct dataset_column column = dataset_column(d, metric, cell);
    uint32_t round = 0;
    json_array(j, "values");
    for (size_t i = 0; i < column.count; i++) {
        for (; round < column.rounds[i]; round++)
            json_null(j, NULL);
        json_double(j, NULL, column.values[i]);
        round++;
    }
    json_end(j);
}

static void put_metrics(struct json *j, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    json_array(j, "metrics");
    for (size_t i = 0; i < o->data->metric_count; i++) {
        const struct store_metric *m = &o->data->metrics[i];
        json_object(j, NULL);
        json_string(j, "name", m->name);
        json_string(j, "unit", *m->unit ? m->unit : "count");
        json_string(j, "source", source_name(m));
        json_string(j, "better",
                    m->facts.better == METRIC_LOWER    ? "lower"
                    : m->facts.better == METRIC_HIGHER ? "higher"
                                                       : NULL);
        json_bool(j, "is_speed", m->facts.is_speed);
        json_bool(j, "is_count", m->facts.is_count);
        json_bool(j, "is_headline", i == o->headline);
        json_array(j, "commands");
        for (size_t k = 0; k < o->data->cell_count; k++) {
            const struct outcome_cell *cell = outcome_cell(o, i, k);
            json_object(j, NULL);
            put_summary(j, cell);
            json_bool(j, "is_bound", dataset_is_bound(o->data, i, k));
            put_values(j, o->data, i, k);
            if (cell->judged)
                put_comparison(j, v, cell->judged, k);
            json_end(j);
        }
        json_end(j);
        json_end(j);
    }
    json_end(j);
}

static void put_counts(struct json *j, const struct ab_view *v, const struct run_record *run)
{
    json_array(j, "counts");
    for (size_t i = 0; i < v->rounds->event_count; i++) {
        if (v->rounds->why[i])
            continue;
        json_object(j, NULL);
        json_string(j, "event", v->spec->events->items[i].name);
        json_u64(j, "raw", run->values[i].raw);
        json_u64(j, "enabled_ns", run->values[i].enabled_ns);
        json_u64(j, "running_ns", run->values[i].running_ns);
        json_end(j);
    }
    json_end(j);
    json_array(j, "metrics");
    for (size_t i = 0; i < run->metric_count; i++) {
        json_object(j, NULL);
        json_string(j, "name", run->metrics[i].name);
        json_double(j, "value", run->metrics[i].value);
        json_string(j, "unit", run->metrics[i].unit);
        json_end(j);
    }
    json_end(j);
}

static void put_disturbance(struct json *j, const struct run_record *run)
{
    const struct disturbance *d = &run->disturbance;
    json_object(j, "disturbance");
    json_string(j, "reason", disturbance_reason(d, run->wall_ns));
    if (d->has_steal)
        json_u64(j, "steal_ns", d->steal_ns);
    if (d->has_others)
        json_u64(j, "others_ns", d->others_ns);
    if (d->has_pressure) {
        json_u64(j, "pressure_cpu_ns", d->pressure_cpu_ns);
        json_u64(j, "pressure_io_ns", d->pressure_io_ns);
        json_u64(j, "pressure_memory_ns", d->pressure_memory_ns);
    }
    if (d->has_throttles)
        json_u64(j, "throttles", d->throttles);
    if (d->has_migrations)
        json_u64(j, "migrations", d->migrations);
    json_u64(j, "involuntary_switches", d->involuntary_switches);
    json_u64(j, "stalled_ns", d->stalled_ns);
    json_end(j);
}

/* Of each command against its reference; null where there is nothing to tell. */
static void put_layouts(struct json *j, const struct ab_view *v)
{
    json_array(j, "layouts");
    for (size_t i = 0; v->layouts && i < v->outcome->data->cell_count; i++) {
        const struct layout_spread *s = &v->layouts[i];
        if (!s->count) {
            json_null(j, NULL);
            continue;
        }
        json_object(j, NULL);
        json_u64(j, "count", s->count);
        json_double(j, "low", s->low);
        json_double(j, "high", s->high);
        json_double(j, "share", s->share);
        json_bool(j, "is_noise", s->is_noise);
        json_end(j);
    }
    json_end(j);
}

static void put_run(struct json *j, const struct ab_view *v, size_t round, size_t command)
{
    const struct run_record *run = &v->rounds->items[round].runs[command];
    json_object(j, NULL);
    json_u64(j, "round", round);
    json_u64(j, "command", command);
    json_u64(j, v->spec->duet ? "side" : "position", run->position);
    json_u64(j, "start_ns", run->start_ns);
    json_u64(j, "wall_ns", run->wall_ns);
    json_u64(j, "user_ns", run->user_ns);
    json_u64(j, "sys_ns", run->sys_ns);
    json_u64(j, "rss_bytes_max", run->rss_bytes_max);
    json_bool(j, "rss_is_bound", run->rss_is_bound);
    json_u64(j, "minor_faults", run->minor_faults);
    json_u64(j, "major_faults", run->major_faults);
    json_u64(j, "voluntary_switches", run->voluntary_switches);
    json_u64(j, "involuntary_switches", run->involuntary_switches);
    json_u64(j, "blocks_read", run->blocks_read);
    json_u64(j, "blocks_written", run->blocks_written);
    if (WIFSIGNALED(run->status)) {
        json_null(j, "exit_code");
        json_i64(j, "signal", WTERMSIG(run->status));
    } else {
        json_i64(j, "exit_code", WEXITSTATUS(run->status));
        json_null(j, "signal");
    }
    json_bool(j, "timed_out", run->timed_out);
    json_bool(j, "is_counted", run_counts(run));
    json_bool(j, "left_behind", run->left_behind);
    json_u64(j, "padding_bytes", v->rounds->items[round].padding_bytes);
    if (v->spec->layout_count) {
        json_u64(j, "layout", v->rounds->items[round].layout);
        json_bool(j, "still", v->rounds->items[round].is_still);
    }
    put_counts(j, v, run);
    put_disturbance(j, run);
    json_end(j);
}

static void put_events(struct json *j, const struct ab_view *v)
{
    json_array(j, "events");
    for (size_t i = 0; i < v->rounds->event_count; i++) {
        json_object(j, NULL);
        json_string(j, "name", v->spec->events->items[i].name);
        json_bool(j, "supported", !v->rounds->why[i]);
        json_string(j, "why", v->rounds->why[i]);
        json_bool(j, "user_only", v->rounds->user_only[i]);
        json_bool(j, "accounted", v->rounds->accounted[i]);
        json_end(j);
    }
    json_end(j);
}

static void put_losses(struct json *j, const struct ab_view *v)
{
    const struct rounds *r = v->rounds;
    size_t disturbed = 0;
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->contestant_count; k++)
            disturbed += disturbance_reason(&r->items[i].runs[k].disturbance,
                                            r->items[i].runs[k].wall_ns) != NULL;
    json_object(j, "losses");
    json_i64(j, "interrupted_by_signal", r->signal);
    json_u64(j, "runs_dropped", r->unfinished_runs);
    json_u64(j, "runs_failed", r->failed_runs);
    json_u64(j, "runs_disturbed", disturbed);
    json_u64(j, "metric_lines_refused", r->refused_metrics.line_count);
    json_u64(j, "runs_with_metrics_lost", r->truncated_metrics);
    json_end(j);
}

static void put_notes(struct json *j, const struct doubt_list *notes)
{
    json_array(j, "notes");
    for (size_t i = 0; i < notes->count; i++) {
        json_object(j, NULL);
        json_string(j, "id", notes->items[i].id);
        json_string(j, "text", notes->items[i].text);
        json_end(j);
    }
    json_end(j);
}

void report_ab_json(struct strbuf *out, const struct ab_view *v)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "format", "assay-ab-1");
    json_string(&j, "assay", ASSAY_VERSION);
    put_started(&j, v);
    put_commands(&j, v);
    if (v->rounds) {
        put_settings(&j, v);
        json_u64(&j, "rounds", v->rounds->count);
        json_u64(&j, "elapsed_ns", v->rounds->elapsed_ns);
        json_string(&j, "end", end_name(v->rounds->end));
        put_events(&j, v);
    }
    json_bool(&j, "paired", !v->outcome->data->apart);
    json_bool(&j, "adaptive", v->outcome->data->experiment.adaptive);
    put_metrics(&j, v);
    if (v->layouts)
        put_layouts(&j, v);
    if (v->rounds) {
        json_array(&j, "runs");
        for (size_t i = 0; i < v->rounds->count; i++)
            for (size_t k = 0; k < v->rounds->contestant_count; k++)
                if (!v->rounds->items[i].runs[k].is_absent)
                    put_run(&j, v, i, k);
        json_end(&j);
        put_losses(&j, v);
    }
    report_ab_ranking_json(&j, v);
    CLEANUP(strbuf_done) struct strbuf suites = {0};
    json_string(&j, "suites", report_ab_suites(&suites, v) ? strbuf_text(&suites) : NULL);
    put_notes(&j, v->notes);
    if (v->machine)
        machine_write_json(v->machine, &j, "machine");
    json_end(&j);
}

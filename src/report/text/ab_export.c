/* SPDX-License-Identifier: MIT */
/* What `assay ab` found, as CSV and Markdown, and as hyperfine and google-benchmark write it: see
 * ab.h. */
#include "base/json.h"
#include "base/memory.h"
#include "report/text/ab.h"

#include <math.h>
#include <stdio.h>
#include <sys/wait.h>

void report_ab_csv(struct strbuf *out, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    if (v->machine) {
        strbuf_puts(out, "# machine: ");
        struct json j = {.out = out, .compact = true};
        machine_write_json(v->machine, &j, NULL);
    }
    if (v->spec)
        strbuf_printf(out, "# seed: %llu\n", (unsigned long long)v->spec->seed);
    for (size_t i = 0; i < v->notes->count; i++)
        strbuf_printf(out, "# note: %s\n", v->notes->items[i].text);
    strbuf_puts(out, "round,command,name,metric,unit,value,is_bound\n");
    for (size_t i = 0; i < o->set->count; i++) {
        const struct series *s = &o->set->items[i];
        for (size_t j = 0; j < o->set->contestant_count; j++)
            for (size_t k = 0; k < s->counts[j]; k++) {
                if (!isfinite(s->values[j][k]))
                    continue;
                strbuf_printf(out, "%zu,%zu,", k + 1, j + 1);
                strbuf_put_csv(out, o->participants[j].name);
                strbuf_putc(out, ',');
                strbuf_put_csv(out, s->name);
                strbuf_putc(out, ',');
                strbuf_put_csv(out, *s->unit ? s->unit : "count");
                strbuf_printf(out, ",%.17g,%d\n", s->values[j][k], s->is_bound[j]);
            }
    }
}

/* Text inside a cell of a Markdown table, as code. */
static void put_code(struct strbuf *out, const char *text)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, text, strlen(text), 200);
    /* A run of backquotes must be longer than any inside. */
    size_t ticks = 1, run = 0;
    for (const char *c = strbuf_text(&safe); *c; c++) {
        run = *c == '`' ? run + 1 : 0;
        ticks = run >= ticks ? run + 1 : ticks;
    }
    strbuf_pad(out, '`', ticks);
    strbuf_puts(out, ticks > 1 ? " " : "");
    for (const char *c = strbuf_text(&safe); *c; c++)
        if (*c == '|')
            strbuf_puts(out, "\\|");
        else
            strbuf_putc(out, *c);
    strbuf_puts(out, ticks > 1 ? " " : "");
    strbuf_pad(out, '`', ticks);
}

static void put_markdown_row(struct strbuf *out, const struct ab_view *v, size_t series,
                             size_t participant)
{
    const struct outcome *o = v->outcome;
    const struct series *s = &o->set->items[series];
    const struct outcome_cell *cell = outcome_cell(o, series, participant);
    if (!cell->summary.count)
        return;
    strbuf_printf(out, "| %s | ", s->name);
    put_code(out, o->participants[participant].name);
    strbuf_puts(out, s->is_bound[participant] ? " | ≤ " : " | ");
    strbuf_put_value(out, s, cell->summary.median);
    strbuf_puts(out, " | ");
    strbuf_put_deviation(out, s, &cell->summary);
    strbuf_puts(out, " | ");
    if (cell->is_compared)
        strbuf_put_ratio(out, s, &cell->comparison);
    strbuf_puts(out, " | ");
    if (cell->is_compared && cell->stands)
        strbuf_puts(out, "**");
    if (cell->is_compared)
        strbuf_put_verdict(out, s, cell);
    else if (o->participants[participant].is_reference && o->set->contestant_count > 1)
        strbuf_puts(out, "reference");
    if (cell->is_compared && cell->stands)
        strbuf_puts(out, "**");
    strbuf_puts(out, " |\n");
}

void report_ab_markdown(struct strbuf *out, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    strbuf_puts(out, "| metric | command | median | spread | ratio [95 % interval] | verdict |\n"
                     "|---|---|--:|--:|---|---|\n");
    for (size_t i = 0; i < o->set->count; i++)
        for (size_t j = 0; j < o->set->contestant_count; j++)
            if (report_ab_is_shown(v, i) || o->set->contestant_count == 1)
                put_markdown_row(out, v, i, j);
    strbuf_putc(out, '\n');
    for (int same = 1; same >= 0; same--) {
        size_t start = out->length;
        report_ab_folded(out, v, same);
        strbuf_puts(out, out->length > start ? "\n\n" : "");
    }
    if (v->rounds)
        strbuf_printf(out, "%zu rounds, seed %llu.\n", v->rounds->count,
                      (unsigned long long)v->spec->seed);
    for (size_t i = 0; i < v->notes->count; i++)
        strbuf_printf(out, "%s- %s\n", i ? "" : "\n", v->notes->items[i].text);
}

/* One number of the values of a series, in seconds. */
static double mean_seconds(const struct outcome *o, const char *name, size_t participant)
{
    const struct series *s = series_find(o->set, name);
    if (!s)
        return NAN;
    return outcome_cell(o, (size_t)(s - o->set->items), participant)->summary.mean / 1e9;
}

static void put_seconds(struct json *j, const char *key, const struct series *s, size_t participant,
                        double factor)
{
    json_array(j, key);
    for (size_t i = 0; i < s->counts[participant]; i++)
        json_double(j, NULL, s->values[participant][i] * factor);
    json_end(j);
}

static void put_parameters(struct json *j, const char *text)
{
    CLEANUP(memory_freep) char *copy = memory_strdup(text);
    json_object(j, "parameters");
    for (char *at = copy; *at;) {
        char *end = strstr(at, ", "), *next = end ? end + 2 : at + strlen(at);
        if (end)
            *end = '\0';
        char *value = strchr(at, '=');
        if (value)
            *value = '\0';
        json_string(j, at, value ? value + 1 : "");
        at = next;
    }
    json_end(j);
}

static void put_hyperfine_result(struct json *j, const struct ab_view *v, size_t participant)
{
    const struct outcome *o = v->outcome;
    const struct series *wall = series_find(o->set, "wall"), *rss = series_find(o->set, "peak-rss");
    const struct summary *s =
        &outcome_cell(o, (size_t)(wall - o->set->items), participant)->summary;
    json_object(j, NULL);
    json_string(j, "command", o->participants[participant].name);
    json_double(j, "mean", s->mean / 1e9);
    json_double(j, "stddev", s->stddev / 1e9);
    json_double(j, "median", s->median / 1e9);
    json_double(j, "user", mean_seconds(o, "user", participant));
    json_double(j, "system", mean_seconds(o, "sys", participant));
    json_double(j, "min", s->min / 1e9);
    json_double(j, "max", s->max / 1e9);
    put_seconds(j, "times", wall, participant, 1e-9);
    if (rss && !rss->is_bound[participant])
        put_seconds(j, "memory_usage_byte", rss, participant, 1);
    json_array(j, "exit_codes");
    for (size_t i = 0; v->rounds && i < v->rounds->count; i++) {
        int status = v->rounds->items[i].runs[participant].status;
        if (WIFSIGNALED(status))
            json_null(j, NULL);
        else
            json_i64(j, NULL, WEXITSTATUS(status));
    }
    json_end(j);
    if (*o->participants[participant].parameters)
        put_parameters(j, o->participants[participant].parameters);
    json_end(j);
}

void report_ab_hyperfine(struct strbuf *out, const struct ab_view *v)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_array(&j, "results");
    for (size_t i = 0;
         series_find(v->outcome->set, "wall") && i < v->outcome->set->contestant_count; i++)
        put_hyperfine_result(&j, v, i);
    json_end(&j);
    json_object(&j, "assay");
    json_bool(&j, "paired", v->outcome->set->paired);
    json_end(&j);
    json_end(&j);
}

static void put_google_context(struct json *j, const struct ab_view *v)
{
    char date[40];
    struct tm broken;
    localtime_r(&v->started, &broken);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S%z", &broken);
    json_object(j, "context");
    json_string(j, "date", date);
    json_string(j, "executable", "assay");
    if (v->machine)
        json_u64(j, "num_cpus", v->machine->cpu_count);
    json_string(j, "library_build_type", "release");
    json_end(j);
}

static double value_at(const struct outcome *o, const char *name, size_t participant, size_t index)
{
    const struct series *s = series_find(o->set, name);
    return s && index < s->counts[participant] ? s->values[participant][index] : NAN;
}

static void put_google_run(struct json *j, const struct outcome *o, size_t participant,
                           size_t index, size_t repetitions)
{
    const char *name = o->participants[participant].name;
    double user_ns = value_at(o, "user", participant, index);
    double sys_ns = value_at(o, "sys", participant, index);
    json_object(j, NULL);
    json_string(j, "name", name);
    json_u64(j, "family_index", participant);
    json_u64(j, "per_family_instance_index", 0);
    json_string(j, "run_name", name);
    json_string(j, "run_type", "iteration");
    json_u64(j, "repetitions", repetitions);
    json_u64(j, "repetition_index", index);
    json_u64(j, "threads", 1);
    json_u64(j, "iterations", 1);
    json_double(j, "real_time", value_at(o, "wall", participant, index));
    json_double(j, "cpu_time", isfinite(user_ns + sys_ns) ? user_ns + sys_ns : 0);
    json_string(j, "time_unit", "ns");
    /* Counters of other sources, by their names. */
    for (size_t i = 0; i < o->set->count; i++) {
        const struct series *s = &o->set->items[i];
        double value = index < s->counts[participant] ? s->values[participant][index] : NAN;
        if ((s->source == SERIES_EVENT || s->source == SERIES_PROGRAM) && isfinite(value))
            json_double(j, s->name, value);
    }
    json_end(j);
}

void report_ab_google(struct strbuf *out, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    const struct series *wall = series_find(o->set, "wall");
    struct json j = {.out = out};
    json_object(&j, NULL);
    put_google_context(&j, v);
    json_array(&j, "benchmarks");
    for (size_t i = 0; wall && i < o->set->contestant_count; i++)
        for (size_t k = 0; k < wall->counts[i]; k++)
            put_google_run(&j, o, i, k, wall->counts[i]);
    json_end(&j);
    json_end(&j);
}

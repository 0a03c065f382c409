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
    strbuf_puts(out, "round,command,name,metric,unit,value,is_bound,note\n");
    for (size_t i = 0; i < o->data->metric_count; i++) {
        const struct store_metric *m = &o->data->metrics[i];
        for (size_t j = 0; j < o->data->cell_count; j++) {
            struct dataset_column column = dataset_column(o->data, i, j);
            for (size_t k = 0; k < column.count; k++) {
                strbuf_printf(out, "%u,%zu,", column.rounds[k] + 1, j + 1);
                strbuf_put_csv(out, o->participants[j].name);
                strbuf_putc(out, ',');
                strbuf_put_csv(out, m->name);
                strbuf_putc(out, ',');
                strbuf_put_csv(out, *m->unit ? m->unit : "count");
                strbuf_printf(out, ",%.17g,%d,\n", column.values[k],
                              dataset_is_bound(o->data, i, j));
            }
        }
    }
    for (size_t i = 0; i < v->notes->count; i++) { /* about all of it: no round, no value */
        strbuf_printf(out, ",,,%s,,,,", v->notes->items[i].id);
        strbuf_put_csv(out, v->notes->items[i].text);
        strbuf_putc(out, '\n');
    }
}

void strbuf_put_markdown_code(struct strbuf *out, const char *text)
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

static void put_markdown_row(struct strbuf *out, const struct ab_view *v, size_t metric,
                             size_t participant)
{
    const struct outcome *o = v->outcome;
    const struct store_metric *m = &o->data->metrics[metric];
    const struct outcome_cell *cell = outcome_cell(o, metric, participant);
    const struct judge_row *judged = cell->judged;
    if (!cell->summary.count && metric != o->headline)
        return;
    strbuf_printf(out, "| %s | ", m->name);
    strbuf_put_markdown_code(out, o->participants[participant].name);
    if (!cell->summary.count) {
        strbuf_puts(out, " | – |  |  | ");
        strbuf_put_failure(out, v, participant);
        strbuf_puts(out, " |\n");
        return;
    }
    strbuf_puts(out, dataset_is_bound(o->data, metric, participant) ? " | ≤ " : " | ");
    strbuf_put_measured(out, cell->summary.median, m->unit);
    strbuf_puts(out, " | ");
    strbuf_put_deviation(out, m->unit, &cell->summary);
    strbuf_puts(out, " | ");
    if (judged)
        strbuf_put_ratio(out, m->unit, &judged->comparison);
    strbuf_puts(out, " | ");
    if (judged && judged->changed)
        strbuf_puts(out, "**");
    if (judged)
        strbuf_put_verdict(out, judged);
    else if (o->participants[participant].is_reference && o->data->cell_count > 1)
        strbuf_puts(out, "reference");
    if (judged && judged->changed)
        strbuf_puts(out, "**");
    strbuf_puts(out, " |\n");
}

void report_ab_markdown(struct strbuf *out, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    size_t before = out->length;
    compare_put_instead(out, &o->compare, o->headline, NULL);
    strbuf_puts(out, out->length > before ? "\n" : "");
    strbuf_puts(out, "| metric | command | median | spread | ratio [95 % interval] | verdict |\n"
                     "|---|---|--:|--:|---|---|\n");
    for (size_t i = 0; i < o->data->metric_count; i++)
        for (size_t j = 0; j < o->data->cell_count; j++)
            if (report_ab_is_shown(v, i) || o->data->cell_count == 1)
                put_markdown_row(out, v, i, v->order ? v->order[j] : j);
    strbuf_putc(out, '\n');
    strbuf_puts(out, report_ab_ranking(out, v) ? "\n" : "");
    strbuf_puts(out, report_ab_suites(out, v) ? "\n" : "");
    report_ab_distribution_markdown(out, v);
    for (int same = 1; same >= 0; same--) {
        size_t start = out->length;
        report_ab_folded(out, v, same);
        strbuf_puts(out, out->length > start ? "\n\n" : "");
    }
    if (v->rounds)
        strbuf_printf(out, "%zu %s, seed %llu.\n", v->rounds->count,
                      plural(v->rounds->count, "round", "rounds"),
                      (unsigned long long)v->spec->seed);
    for (size_t i = 0; i < v->notes->count; i++)
        strbuf_printf(out, "%s- %s\n", i ? "" : "\n", v->notes->items[i].text);
}

/* One number of the values of a series, in seconds. */
static double mean_seconds(const struct outcome *o, const char *name, size_t participant)
{
    size_t metric = dataset_metric(o->data, name);
    return metric == DATASET_NONE ? NAN : outcome_cell(o, metric, participant)->summary.mean / 1e9;
}

static void put_scaled(struct json *j, const char *key, struct dataset_column column, double factor)
{
    json_array(j, key);
    for (size_t i = 0; i < column.count; i++)
        json_double(j, NULL, column.values[i] * factor);
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
    size_t wall = dataset_metric(o->data, "wall"), rss = dataset_metric(o->data, "peak-rss");
    const struct summary *s = &outcome_cell(o, wall, participant)->summary;
    json_object(j, NULL);
    json_string(j, "command", o->participants[participant].name);
    json_double(j, "mean", s->mean / 1e9);
    json_double(j, "stddev", s->stddev / 1e9);
    json_double(j, "median", s->median / 1e9);
    json_double(j, "user", mean_seconds(o, "user", participant));
    json_double(j, "system", mean_seconds(o, "sys", participant));
    json_double(j, "min", s->min / 1e9);
    json_double(j, "max", s->max / 1e9);
    put_scaled(j, "times", dataset_column(o->data, wall, participant), 1e-9);
    if (rss != DATASET_NONE && !dataset_is_bound(o->data, rss, participant))
        put_scaled(j, "memory_usage_byte", dataset_column(o->data, rss, participant), 1);
    json_array(j, "exit_codes");
    for (size_t i = 0; v->rounds && i < v->rounds->count; i++) {
        const struct run_record *run = &v->rounds->items[i].runs[participant];
        int status = run->status;
        if (!run_counts(run))
            continue;
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
    bool has_wall = dataset_metric(v->outcome->data, "wall") != DATASET_NONE;
    for (size_t i = 0; has_wall && i < v->outcome->data->cell_count; i++)
        put_hyperfine_result(&j, v, i);
    json_end(&j);
    json_object(&j, "assay");
    json_bool(&j, "paired", !v->outcome->data->apart);
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

static double value_in_round(const struct outcome *o, size_t metric, size_t participant,
                             uint32_t round)
{
    if (metric == DATASET_NONE)
        return NAN;
    struct dataset_column column = dataset_column(o->data, metric, participant);
    for (size_t i = 0; i < column.count && column.rounds[i] <= round; i++)
        if (column.rounds[i] == round)
            return column.values[i];
    return NAN;
}

static double named_value(const struct outcome *o, const char *name, size_t participant,
                          uint32_t round)
{
    return value_in_round(o, dataset_metric(o->data, name), participant, round);
}

static void put_google_run(struct json *j, const struct outcome *o, size_t participant,
                           uint32_t round, size_t repetitions)
{
    const char *name = o->participants[participant].name;
    double user_ns = named_value(o, "user", participant, round);
    double sys_ns = named_value(o, "sys", participant, round);
    json_object(j, NULL);
    json_string(j, "name", name);
    json_u64(j, "family_index", participant);
    json_u64(j, "per_family_instance_index", 0);
    json_string(j, "run_name", name);
    json_string(j, "run_type", "iteration");
    json_u64(j, "repetitions", repetitions);
    json_u64(j, "repetition_index", round);
    json_u64(j, "threads", 1);
    json_u64(j, "iterations", 1);
    json_double(j, "real_time", named_value(o, "wall", participant, round));
    json_double(j, "cpu_time", isfinite(user_ns + sys_ns) ? user_ns + sys_ns : 0);
    json_string(j, "time_unit", "ns");
    /* Counters of other sources, by their names. */
    for (size_t i = 0; i < o->data->metric_count; i++) {
        const struct store_metric *m = &o->data->metrics[i];
        double value = value_in_round(o, i, participant, round);
        if (!str_eq(m->kind, "time") && isfinite(value))
            json_double(j, m->name, value);
    }
    json_end(j);
}

void report_ab_google(struct strbuf *out, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    size_t wall = dataset_metric(o->data, "wall");
    struct json j = {.out = out};
    json_object(&j, NULL);
    put_google_context(&j, v);
    json_array(&j, "benchmarks");
    for (size_t i = 0; wall != DATASET_NONE && i < o->data->cell_count; i++) {
        struct dataset_column column = dataset_column(o->data, wall, i);
        for (size_t k = 0; k < column.count; k++)
            put_google_run(&j, o, i, column.rounds[k], column.count);
    }
    json_end(&j);
    json_end(&j);
}

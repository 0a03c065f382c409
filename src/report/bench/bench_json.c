/* SPDX-License-Identifier: MIT */
/* What `assay bench` found, as JSON: see bench.h and docs/FORMATS.md. */
#include "base/json.h"
#include "base/memory.h"
#include "bench/layouts.h"
#include "config.h"
#include "report/bench/bench.h"
#include "report/text/ab.h"

#include <math.h>

static void put_started(struct json *j, time_t started)
{
    char text[32];
    struct tm tm;
    gmtime_r(&started, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_string(j, "started", text);
}

static void put_interval(struct json *j, const char *key, const struct bench_interval *i)
{
    json_object(j, key);
    json_double(j, "value", i->value);
    json_double(j, "low", i->low);
    json_double(j, "high", i->high);
    json_end(j);
}

static void put_said(struct json *j, const struct bench_said *said)
{
    json_object(j, "counters");
    for (size_t i = 0; i < said->figure_count; i++)
        json_double(j, said->figures[i].name, said->figures[i].value);
    json_end(j);
    if (said->law) {
        json_string(j, "expected_complexity", said->law);
        json_double(j, "complexity_n", said->n);
    }
}

static void put_samples(struct json *j, const struct bench_result *r, size_t side)
{
    json_array(j, "samples");
    for (size_t i = 0; i < r->sample_count; i++) {
        const struct bench_kept *s = &r->samples[i];
        if (s->side != side)
            continue;
        json_object(j, NULL);
        json_u64(j, "round", s->round);
        json_u64(j, "position", s->position);
        json_double(j, "ns", s->ns);
        json_double(j, "cpu_ns", s->cpu_ns);
        json_u64(j, "minor_faults", s->minor_faults);
        json_u64(j, "major_faults", s->major_faults);
        json_u64(j, "voluntary_switches", s->voluntary);
        json_u64(j, "involuntary_switches", s->involuntary);
        json_bool(j, "migrated", s->migrated);
        if (s->khz)
            json_u64(j, "frequency_khz", s->khz);
        else
            json_null(j, "frequency_khz");
        json_bool(j, "disturbed", s->disturbed);
        json_end(j);
    }
    json_end(j);
}

static void put_metric(struct json *j, const struct bench_view *v, size_t metric, size_t cell)
{
    const struct outcome *o = v->outcome;
    const struct outcome_cell *c = outcome_cell(o, metric, cell);
    if (!c->summary.count)
        return;
    json_object(j, o->data->metrics[metric].name);
    json_string(j, "unit",
                *o->data->metrics[metric].unit ? o->data->metrics[metric].unit : "count");
    json_u64(j, "n", c->summary.count);
    json_double(j, "median", c->summary.median);
    json_double(j, "median_low", c->median.low);
    json_double(j, "median_high", c->median.high);
    json_double(j, "median_level", c->median.level);
    json_double(j, "mad", c->summary.mad);
    json_double(j, "min", c->summary.min);
    json_double(j, "max", c->summary.max);
    struct dataset_column column = dataset_column(o->data, metric, cell);
    json_array(j, "values");
    for (size_t i = 0; i < column.count; i++)
        json_double(j, NULL, column.values[i]);
    json_end(j);
    json_end(j);
}

static void put_version(struct json *j, const struct bench_view *v, size_t index, size_t side)
{
    const struct bench_result *r = &v->results->items[index];
    const struct bench_side *s = &r->sides[side];
    struct bench_figures f;
    json_object(j, NULL);
    json_string(j, "name", v->names[side]);
    json_string(j, "status", s->failed ? "failed" : s->skipped ? "skipped" : "measured");
    json_string(j, "reason", s->failed ? s->failed : s->skipped);
    json_u64(j, "warmup_samples", s->warmup);
    json_bool(j, "timed_by_call", s->by_call);
    put_said(j, &s->said);
    if (bench_figures(r, side, &f)) {
        json_bool(j, "looks_empty", bench_is_empty(r, side));
        put_interval(j, "mean", &f.mean);
        put_interval(j, "p99", &f.p99);
        json_u64(j, "samples_disturbed", f.disturbed);
    }
    json_object(j, "metrics");
    for (size_t m = 0; m < v->outcome->data->metric_count; m++)
        put_metric(j, v, m, bench_cell(index, side, v->results->side_count));
    json_end(j);
    put_samples(j, r, side);
    json_end(j);
}

static void put_comparison(struct json *j, const struct bench_view *v, size_t metric, size_t index)
{
    const struct judge_row *judged =
        outcome_cell(v->outcome, metric, bench_cell(index, 1, 2))->judged;
    CLEANUP(strbuf_done) struct strbuf words = {0};
    if (!judged)
        return;
    const struct comparison *c = &judged->comparison;
    strbuf_put_verdict(&words, judged);
    json_object(j, v->outcome->data->metrics[metric].name);
    json_string(j, "scale", c->scale == COMPARISON_RATIO ? "ratio" : "difference");
    json_double(j, "estimate", c->estimate);
    json_double(j, "low", c->low);
    json_double(j, "high", c->high);
    json_double(j, "level", c->level);
    json_double(j, "p", c->p);
    json_double(j, "p_adjusted", judged->p_adjusted);
    json_bool(j, "stands", judged->changed);
    json_string(j, "verdict", verdict_name(judged->verdict.kind));
    json_string(j, "text", strbuf_text(&words));
    json_string(j, "method", c->method);
    json_end(j);
}

static void put_layouts(struct json *j, const struct bench_view *v, size_t index)
{
    struct layout_spread s;
    if (!v->layouts || !bench_layout_spread(&v->results->items[index], &s)) {
        json_null(j, "layouts");
        return;
    }
    json_object(j, "layouts");
    json_u64(j, "count", s.count);
    json_double(j, "low", s.low);
    json_double(j, "high", s.high);
    json_double(j, "share", s.share);
    json_bool(j, "is_noise", s.is_noise);
    json_end(j);
}

static void put_benchmark(struct json *j, const struct bench_view *v, size_t index)
{
    const struct bench_case *c = &v->cases->items[index];
    const struct bench_result *r = &v->results->items[index];
    json_object(j, NULL);
    json_string(j, "name", c->name);
    json_string(j, "label", c->label);
    json_string(j, "parameters", *c->parameters ? c->parameters : NULL);
    json_u64(j, "iterations_per_sample", r->iterations);
    json_u64(j, "samples_per_round", r->samples_a_round);
    json_u64(j, "rounds", r->round_count);
    json_array(j, "versions");
    for (size_t side = 0; side < v->results->side_count; side++)
        put_version(j, v, index, side);
    json_end(j);
    if (v->results->side_count > 1) {
        json_object(j, "comparison");
        for (size_t m = 0; m < v->outcome->data->metric_count; m++)
            put_comparison(j, v, m, index);
        json_end(j);
        put_layouts(j, v, index);
    }
    json_end(j);
}

static void put_notes(struct json *j, const struct bench_view *v)
{
    json_array(j, "notes");
    for (size_t i = 0; i < v->notes->count; i++) {
        json_object(j, NULL);
        json_string(j, "id", v->notes->items[i].id);
        json_string(j, "text", v->notes->items[i].text);
        json_end(j);
    }
    json_end(j);
}

static void put_growth(struct json *j, const struct bench_view *v)
{
    json_array(j, "complexity");
    for (size_t i = 0; i < v->fits->count; i++) {
        const struct bench_fit *f = &v->fits->items[i];
        json_object(j, NULL);
        json_string(j, "benchmark", f->label);
        json_string(j, "version", v->names[f->side]);
        json_string(j, "law", f->law);
        json_string(j, "trouble", f->trouble);
        if (!f->trouble) {
            json_double(j, "exponent", f->complexity.exponent);
            json_double(j, "low", f->complexity.low);
            json_double(j, "high", f->complexity.high);
            json_bool(j, "holds", f->complexity.holds);
            json_bool(j, "certain", f->complexity.is_certain);
            json_string(j, "nearest", f->complexity.best);
        }
        json_end(j);
    }
    json_end(j);
}

void report_bench_json(struct strbuf *out, const struct bench_view *v)
{
    struct json j = {.out = out};
    CLEANUP(strbuf_done) struct strbuf suite = {0};
    json_object(&j, NULL);
    json_string(&j, "format", "assay-bench-1");
    json_string(&j, "assay", ASSAY_VERSION);
    put_started(&j, v->started);
    json_u64(&j, "seed", v->seed);
    json_u64(&j, "rounds", v->results->round_count);
    json_u64(&j, "elapsed_ns", v->results->elapsed_ns);
    json_i64(&j, "cpu", v->results->cpu);
    json_i64(&j, "interrupted_by_signal", v->results->signal);
    json_double(&j, "empty_iteration_ns", v->results->loop_ns);
    json_double(&j, "clock_ns", v->results->clock_ns);
    json_array(&j, "versions");
    for (size_t side = 0; side < v->results->side_count; side++) {
        json_object(&j, NULL);
        json_string(&j, "name", v->names[side]);
        json_string(&j, "path", v->paths[side]);
        json_end(&j);
    }
    json_end(&j);
    json_array(&j, "benchmarks");
    for (size_t i = 0; i < v->cases->count; i++)
        put_benchmark(&j, v, i);
    json_end(&j);
    put_growth(&j, v);
    compare_put_suites(&suite, &v->outcome->compare, BENCH_THINGS);
    json_string(&j, "suite", suite.length ? strbuf_text(&suite) : NULL);
    put_notes(&j, v);
    if (v->machine)
        machine_write_json(v->machine, &j, "machine");
    json_end(&j);
}

void report_bench_list_json(struct strbuf *out, const struct bench_cases *cases)
{
    struct json j = {.out = out};
    json_array(&j, NULL);
    for (size_t i = 0; i < cases->count; i++) {
        json_object(&j, NULL);
        json_string(&j, "name", cases->items[i].name);
        json_string(&j, "parameters",
                    *cases->items[i].parameters ? cases->items[i].parameters : NULL);
        json_string(&j, "label", cases->items[i].label);
        json_end(&j);
    }
    json_end(&j);
}

/* SPDX-License-Identifier: MIT */
/* A comparison for programs. */
#include "base/json.h"
#include "base/memory.h"
#include "report/text/compare.h"
#include "report/text/nodes.h"

#include <math.h>

static void put_summary(struct json *j, const char *key, const struct summary *s)
{
    json_object(j, key);
    json_u64(j, "n", s->count);
    json_double(j, "median", s->median);
    json_double(j, "mean", s->mean);
    json_double(j, "stddev", s->stddev);
    json_double(j, "min", s->min);
    json_double(j, "max", s->max);
    json_end(j);
}

static void put_row(struct json *j, const struct compare *c, const struct compare_row *row)
{
    const struct comparison *m = &row->judged.comparison;
    json_object(j, NULL);
    json_string(j, "metric", row->metric->name);
    json_string(j, "unit", row->metric->unit);
    json_string(j, "kind", row->metric->kind);
    json_string(j, "cell", c->pairs[row->pair].label);
    json_bool(j, "headline", row->judged.headline);
    put_summary(j, "base", &row->judged.base);
    put_summary(j, "new", &row->judged.new);
    json_string(j, "scale", m->scale == COMPARISON_RATIO ? "ratio" : "difference");
    json_double(j, "estimate", m->estimate);
    json_double(j, "low", m->low);
    json_double(j, "high", m->high);
    json_double(j, "level", m->level);
    json_bool(j, "paired", m->paired);
    json_bool(j, "too_few", m->too_few);
    json_double(j, "p", m->p);
    json_double(j, "p_adjusted", row->judged.p_adjusted);
    json_bool(j, "changed", row->judged.changed);
    json_string(j, "same_as",
                row->folded_into == COMPARE_NONE ? NULL : c->rows[row->folded_into].metric->name);
    json_string(j, "verdict", verdict_name(row->judged.verdict.kind));
    json_string(j, "words", row->judged.verdict.text);
    json_end(j);
}

void report_compare_json(struct strbuf *out, const struct compare_view *v)
{
    const struct compare *c = v->c;
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "format", "assay-compare-1");
    json_string(&j, "emulated", report_compare_emulated(c));
    json_string(&j, "base", c->base_name);
    json_string(&j, "new", c->new_name);
    json_bool(&j, "within_one_experiment", c->within);
    json_u64(&j, "tests", c->test_count);
    json_u64(&j, "changed", c->changed_count);
    json_double(&j, "false_discovery_rate", JUDGE_RATE);
    json_u64(&j, "cells_compared", c->pair_count);
    json_u64(&j, "cells_without_partner", c->unmatched_base + c->unmatched_new);
    report_compare_nodes_json(&j, c);
    json_array(&j, "rows");
    for (size_t i = 0; i < c->row_count; i++)
        if (report_compare_shows(v, &c->rows[i]))
            put_row(&j, c, &c->rows[i]);
    json_end(&j);
    CLEANUP(strbuf_done) struct strbuf suites = {0};
    compare_put_suites(&suites, c, NULL);
    json_string(&j, "suites", suites.length ? strbuf_text(&suites) : NULL);
    CLEANUP(strbuf_done) struct strbuf layouts = {0};
    compare_put_layouts(&layouts, c);
    json_string(&j, "layouts", layouts.length ? strbuf_text(&layouts) : NULL);
    json_end(&j);
}

void report_compare_csv(struct strbuf *out, const struct compare_view *v)
{
    const struct compare *c = v->c;
    strbuf_puts(out, "metric,unit,cell,base_median,new_median,base_n,new_n,scale,estimate,low,high,"
                     "p,p_adjusted,changed,verdict\n");
    for (size_t i = 0; i < c->row_count; i++) {
        const struct compare_row *row = &c->rows[i];
        if (!report_compare_shows(v, row))
            continue;
        strbuf_put_csv(out, row->metric->name);
        strbuf_putc(out, ',');
        strbuf_put_csv(out, row->metric->unit);
        strbuf_putc(out, ',');
        strbuf_put_csv(out, c->pairs[row->pair].label);
        strbuf_printf(out, ",%.17g,%.17g,%zu,%zu,%s", row->judged.base.median,
                      row->judged.new.median, row->judged.base.count, row->judged.new.count,
                      row->judged.comparison.scale == COMPARISON_RATIO ? "ratio" : "difference");
        const double numbers[] = {row->judged.comparison.estimate, row->judged.comparison.low,
                                  row->judged.comparison.high, row->judged.comparison.p,
                                  row->judged.p_adjusted};
        for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
            strbuf_putc(out, ',');
            if (isfinite(numbers[k]))
                strbuf_printf(out, "%.17g", numbers[k]);
        }
        strbuf_printf(out, ",%s,%s\n", row->judged.changed ? "yes" : "no",
                      verdict_name(row->judged.verdict.kind));
    }
}

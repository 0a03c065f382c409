/* SPDX-License-Identifier: MIT */
/* What a gate found, as Markdown and JSON: see gate.h. */
#include "report/text/gate.h"
#include "base/json.h"
#include "base/measured.h"

static const char *result_name(enum gate_result result)
{
    return result == GATE_PASS ? "pass" : result == GATE_REGRESSION ? "regression" : "inconclusive";
}

void gate_put_interval(struct strbuf *out, const struct comparison *c, const char *unit)
{
    if (c->scale == COMPARISON_RATIO) {
        strbuf_printf(out, "%+.2f %% [%+.2f, %+.2f]", 100 * (c->estimate - 1), 100 * (c->low - 1),
                      100 * (c->high - 1));
        return;
    }
    strbuf_put_measured(out, c->estimate, unit);
    strbuf_puts(out, " [");
    strbuf_put_measured(out, c->low, unit);
    strbuf_puts(out, ", ");
    strbuf_put_measured(out, c->high, unit);
    strbuf_puts(out, "]");
}

void gate_write_markdown(struct strbuf *out, const struct gate_result_set *set)
{
    const char *head =
        set->control_failed        ? "inconclusive: the base differs from itself on this machine"
        : set->result == GATE_PASS ? "pass"
        : set->result == GATE_REGRESSION ? "regression"
                                         : "inconclusive: more rounds would be needed to tell";
    strbuf_printf(out,
                  "### assay gate: %s\n\nNew against base %.12s, at most %.3g %% worse allowed.\n\n"
                  "| metric | base | new | change (95 %%) | base against itself | rounds | |\n"
                  "|---|---:|---:|---:|---:|---:|---|\n",
                  head, set->base_commit, 100 * set->max_regression);
    for (size_t i = 0; i < set->count; i++) {
        const struct gate_row *row = &set->rows[i];
        strbuf_printf(out, "| %s%s%s | ", row->metric, row->cell[0] ? ", " : "", row->cell);
        strbuf_put_measured(out, row->change.comparison.base_median, row->unit);
        strbuf_puts(out, " | ");
        strbuf_put_measured(out, row->change.comparison.new_median, row->unit);
        strbuf_puts(out, " | ");
        gate_put_interval(out, &row->change.comparison, row->unit);
        strbuf_puts(out, " | ");
        gate_put_interval(out, &row->control.comparison, row->unit);
        strbuf_printf(out, "%s | %zu | %s |\n", row->control_failed ? " (differs)" : "",
                      row->change.comparison.base_count, result_name(row->result));
    }
    if (set->control_failed)
        strbuf_puts(out, "\nThe same commit, run twice in the same rounds, gave different results: "
                         "this machine is too noisy to fail anyone.\n");
}

static void put_comparison(struct json *j, const char *key, const struct comparison *c)
{
    json_object(j, key);
    json_string(j, "scale", c->scale == COMPARISON_RATIO ? "ratio" : "difference");
    json_double(j, "estimate", c->estimate);
    json_double(j, "low", c->low);
    json_double(j, "high", c->high);
    json_double(j, "p", c->p);
    json_u64(j, "rounds", c->base_count);
    json_bool(j, "too_few", c->too_few);
    json_end(j);
}

void gate_write_json(struct strbuf *out, const struct gate_result_set *set)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "format", "assay-gate-1");
    json_string(&j, "result", set->control_failed ? "inconclusive" : result_name(set->result));
    json_bool(&j, "control_failed", set->control_failed);
    json_string(&j, "base", set->base_commit);
    json_double(&j, "max_regression", set->max_regression);
    json_array(&j, "rows");
    for (size_t i = 0; i < set->count; i++) {
        const struct gate_row *row = &set->rows[i];
        json_object(&j, NULL);
        json_string(&j, "metric", row->metric);
        json_string(&j, "unit", row->unit);
        json_string(&j, "cell", row->cell);
        json_string(&j, "result", result_name(row->result));
        json_bool(&j, "control_failed", row->control_failed);
        json_double(&j, "base_median", row->change.comparison.base_median);
        json_double(&j, "new_median", row->change.comparison.new_median);
        put_comparison(&j, "change", &row->change.comparison);
        put_comparison(&j, "control", &row->control.comparison);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
}

/* SPDX-License-Identifier: MIT */
/* See gate.h. */
#include "base/json.h"
#include "base/memory.h"
#include "cmd/gate.h"
#include "report/text/experiment.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>

/* The cell of another side with all else equal. */
static size_t other_side(const struct dataset *d, size_t cell, size_t side, const char *name)
{
    for (size_t c = 0; c < d->cell_count; c++) {
        bool same = str_eq(d->cells[c].levels[side], name);
        for (size_t f = 0; same && f < d->factor_count; f++)
            same = f == side || str_eq(d->cells[c].levels[f], d->cells[cell].levels[f]);
        if (same)
            return c;
    }
    return DATASET_NONE;
}

/* The base differs from itself by as much as half of what is asked about. */
static bool control_fails(const struct comparison *c, double max_regression)
{
    if (!comparison_differs(c))
        return false;
    return c->scale == COMPARISON_RATIO ? fabs(log(c->estimate)) > log1p(max_regression) / 2 : true;
}

static char *cell_name(const struct dataset *d, size_t cell, size_t side)
{
    struct strbuf text = {0};
    for (size_t f = 0; f < d->factor_count; f++)
        if (f != side)
            strbuf_printf(&text, "%s%s=%s", text.length ? " " : "", d->factors[f],
                          d->cells[cell].levels[f]);
    return text.data ? text.data : memory_strdup("");
}

static void judge_cell(struct gate_result_set *set, const struct dataset *d, size_t metric,
                       size_t cell, size_t side)
{
    size_t control = other_side(d, cell, side, "control"), new = other_side(d, cell, side, "new");
    const struct store_metric *m = &d->metrics[metric];
    struct gate_row row = {0};
    if (!judge_cells(d, metric, cell, new, &row.change) ||
        !judge_cells(d, metric, cell, control, &row.control))
        return;
    row.metric = memory_strdup(m->name);
    row.unit = memory_strdup(m->unit);
    row.cell = cell_name(d, cell, side);
    row.base_median = dataset_median(d, metric, cell);
    row.new_median = dataset_median(d, metric, new);
    row.result = verdict_gate(&row.change, m->facts.better, set->max_regression);
    row.control_failed = control_fails(&row.control, set->max_regression);
    set->control_failed |= row.control_failed;
    if (row.result == GATE_REGRESSION ||
        (row.result == GATE_INCONCLUSIVE && set->result == GATE_PASS))
        set->result = row.result;
    ARRAY_PUSH(set->rows, set->count, set->capacity) = row;
}

int gate_judge(struct gate_result_set *set, const struct dataset *d, struct error *err)
{
    size_t side = dataset_factor(d, "side"), position = 0, metric;
    set->result = GATE_PASS;
    while ((metric = dataset_headline(d, &position)) != DATASET_NONE)
        for (size_t c = 0; c < d->cell_count && d->metrics[metric].facts.better != METRIC_NEITHER;
             c++)
            if (str_eq(d->cells[c].levels[side], "base"))
                judge_cell(set, d, metric, c, side);
    return set->count ? 0
                      : error_set(err, -ENODATA,
                                  "nothing can be judged: no headline metric says which way is "
                                  "better, or no round is complete");
}

void gate_result_set_done(struct gate_result_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free(set->rows[i].metric);
        free(set->rows[i].unit);
        free(set->rows[i].cell);
    }
    free(set->rows);
    set->rows = NULL;
    set->count = 0;
}

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
        strbuf_put_measured(out, row->base_median, row->unit);
        strbuf_puts(out, " | ");
        strbuf_put_measured(out, row->new_median, row->unit);
        strbuf_puts(out, " | ");
        gate_put_interval(out, &row->change, row->unit);
        strbuf_puts(out, " | ");
        gate_put_interval(out, &row->control, row->unit);
        strbuf_printf(out, "%s | %zu | %s |\n", row->control_failed ? " (differs)" : "",
                      row->change.base_count, result_name(row->result));
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
        json_double(&j, "base_median", row->base_median);
        json_double(&j, "new_median", row->new_median);
        put_comparison(&j, "change", &row->change);
        put_comparison(&j, "control", &row->control);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
}

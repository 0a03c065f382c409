/* SPDX-License-Identifier: MIT */
/* See gate.h. */
#include "base/memory.h"
#include "bisect/gate.h"

#include <errno.h>
#include <math.h>

static const char *const gate_sides[] = {"base", "control", "new"};

static double shift_of(const struct comparison *c)
{
    if (c->scale == COMPARISON_RATIO)
        return fabs(log(c->estimate));
    return c->base_median != 0 ? fabs(c->estimate / c->base_median) : fabs(c->estimate);
}

/* The base differs from itself by so much that the change says little: by half of what is asked
 * about, and not by far less than the change is. */
static bool control_fails(const struct gate_row *row, double max_regression)
{
    double own = shift_of(&row->control.comparison);
    return row->control.changed && own > log1p(max_regression) / 2 &&
           own > shift_of(&row->change.comparison) / 4;
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

/* Puts the row there that is to be judged. */
static void add_row(struct gate_result_set *set, const struct dataset *d, size_t metric,
                    size_t cell, size_t side)
{
    size_t control = dataset_cell_with(d, cell, side, "control");
    size_t new = dataset_cell_with(d, cell, side, "new");
    const struct store_metric *m = &d->metrics[metric];
    if (control == DATASET_NONE || new == DATASET_NONE)
        return;
    struct gate_row row = {
        .change = {.sides = {d, d, metric, metric, cell, new}, .headline = true},
        .control = {.sides = {d, d, metric, metric, cell, control}, .headline = true}};
    if (!judge_row(&row.change) || !judge_row(&row.control))
        return;
    row.metric = memory_strdup(m->name);
    row.unit = memory_strdup(m->unit);
    row.cell = cell_name(d, cell, side);
    ARRAY_PUSH(set->rows, set->count, set->capacity) = row;
}

/* By the centre and by the mean, whichever is worse: users feel both. */
static enum gate_result result_of(const struct gate_row *row, enum metric_better better,
                                  double max_regression)
{
    enum gate_result centre = verdict_gate(&row->change.comparison, better, max_regression);
    if (!row->change.tails.looked || !row->change.tails.beyond)
        return centre;
    enum gate_result mean = verdict_gate(&row->change.tails.mean, better, max_regression);
    return mean == GATE_REGRESSION || centre == GATE_PASS ? mean : centre;
}

/* All changes are one family, and so are all controls: with twenty metrics one of them always
 * looks different from itself. */
static void judge_rows(struct gate_result_set *set)
{
    CLEANUP(memory_freep) struct judge_row **rows = memory_zalloc(set->count + 1, sizeof(*rows));
    for (size_t i = 0; i < set->count; i++)
        rows[i] = &set->rows[i].change;
    judge_family(rows, set->count);
    for (size_t i = 0; i < set->count; i++)
        rows[i] = &set->rows[i].control;
    judge_family(rows, set->count);
    for (size_t i = 0; i < set->count; i++) {
        struct gate_row *row = &set->rows[i];
        const struct judge_sides *s = &row->change.sides;
        row->result =
            result_of(row, s->base->metrics[s->base_metric].facts.better, set->max_regression);
        row->control_failed = control_fails(row, set->max_regression);
        if (row->control_failed)
            row->result = GATE_INCONCLUSIVE;
        set->control_failed |= row->control_failed;
        if (row->result == GATE_REGRESSION ||
            (row->result == GATE_INCONCLUSIVE && set->result == GATE_PASS))
            set->result = row->result;
    }
    set->control_failed &= set->result != GATE_REGRESSION;
}

static bool has_round(const struct dataset_column *column, uint32_t round)
{
    size_t low = 0, high = column->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (column->rounds[middle] < round)
            low = middle + 1;
        else
            high = middle;
    }
    return low < column->count && column->rounds[low] == round;
}

/* The values of one metric and one cell, of the rounds that all sides of the cell have. */
static void keep_common(struct dataset *to, const struct dataset *d, size_t metric, size_t cell,
                        size_t side)
{
    struct dataset_column own = dataset_column(d, metric, cell), others[ARRAY_COUNT(gate_sides)];
    for (size_t s = 0; s < ARRAY_COUNT(gate_sides); s++) {
        size_t other = dataset_cell_with(d, cell, side, gate_sides[s]);
        others[s] =
            other == DATASET_NONE ? (struct dataset_column){0} : dataset_column(d, metric, other);
    }
    for (size_t i = 0; i < own.count; i++) {
        bool common = true;
        for (size_t s = 0; common && s < ARRAY_COUNT(gate_sides); s++)
            common = has_round(&others[s], own.rounds[i]);
        if (common)
            dataset_put(to, metric, cell, own.rounds[i], own.values[i]);
    }
}

/* The same table with whole rounds only: what a run that failed leaves out is left out for the
 * change and for the control alike. */
static void keep_whole_rounds(struct dataset *to, const struct dataset *d, size_t side)
{
    dataset_start(to, d->experiment.name);
    free(to->experiment.headline);
    to->experiment.headline = memory_strdup(d->experiment.headline);
    to->round_seconds = d->round_seconds;
    for (size_t f = 0; f < d->factor_count; f++)
        dataset_add_factor(to, d->factors[f]);
    for (size_t c = 0; c < d->cell_count; c++)
        dataset_add_cell(to, d->cells[c].label, d->cells[c].command,
                         (const char *const *)d->cells[c].levels);
    for (size_t m = 0; m < d->metric_count; m++) {
        const struct store_metric *metric = &d->metrics[m];
        dataset_add_metric(to, metric->name, metric->unit, metric->kind, metric->facts);
        for (size_t c = 0; c < d->cell_count; c++)
            keep_common(to, d, m, c, side);
    }
    dataset_settle(to);
    for (size_t m = 0; m < d->metric_count; m++)
        for (size_t c = 0; c < d->cell_count; c++)
            if (dataset_is_bound(d, m, c))
                dataset_mark_bound(to, m * d->cell_count + c);
}

int gate_judge(struct gate_result_set *set, const struct dataset *all, struct error *err)
{
    CLEANUP(dataset_done) struct dataset whole;
    const struct dataset *d = &whole;
    size_t side = dataset_factor(all, "side"), position = 0, metric;
    keep_whole_rounds(&whole, all, side);
    set->result = GATE_PASS;
    while ((metric = dataset_headline(d, &position)) != DATASET_NONE)
        for (size_t c = 0; c < d->cell_count; c++)
            if (d->metrics[metric].facts.better != METRIC_NEITHER &&
                str_eq(d->cells[c].levels[side], "base"))
                add_row(set, d, metric, c, side);
    judge_rows(set);
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

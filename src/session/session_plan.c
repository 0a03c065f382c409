/* SPDX-License-Identifier: MIT */
/* Where more rounds are worth their time: the cells whose intervals are widest, each with the cell
 * that it is compared with, because differences are taken within rounds. */
#include "analysis/judge.h"
#include "base/memory.h"
#include "session/session_internal.h"
#include "stats/plan.h"

#include <math.h>

/* A round takes the cells whose interval is at least this share of the widest. */
#define NEAR_WIDEST 0.5

void session_make_values(struct session *s)
{
    s->values = memory_zalloc(1, sizeof(*s->values));
    dataset_start(s->values, "");
    s->values->experiment.adaptive = session_wants_extra(s);
    for (size_t c = 0; c < s->matrix.count; c++)
        dataset_add_cell(s->values, s->matrix.cells[c].label, "", NULL);
    dataset_add_metric(s->values, "headline", "", "metric",
                       (struct metric_facts){.better = METRIC_NEITHER});
    dataset_add_metric(s->values, "cpu", "", "metric",
                       (struct metric_facts){.better = METRIC_NEITHER});
}

void session_note_cpu(struct session *s, size_t index, uint32_t round,
                      const struct run_result *result)
{
    double cpu_ns = session_cpu_ns(result);
    if (!s->options->cpu_stands_in || !str_eq(s->headline, "wall"))
        return;
    dataset_put(s->values, 1, index, round, cpu_ns);
    straight_note(&s->cells[index].straight, cpu_ns, (double)result->wall_ns,
                  (double)result->usage.ru_nvcsw);
}

void session_note_value(struct session *s, size_t index, uint32_t round, double value)
{
    struct session_cell *cell = &s->cells[index];
    cell->rounds =
        memory_grow(cell->rounds, &cell->capacity, cell->count + 1, sizeof(*cell->rounds));
    size_t place = cell->count;
    while (place > 0 && cell->rounds[place - 1] > round)
        place--;
    memmove(&cell->rounds[place + 1], &cell->rounds[place],
            (cell->count - place) * sizeof(*cell->rounds));
    cell->rounds[place] = round;
    cell->count++;
    dataset_put(s->values, 0, index, round, value);
}

bool session_has_round(const struct session_cell *cell, uint64_t round)
{
    for (size_t i = cell->count; i-- > 0 && cell->rounds[i] >= round;)
        if (cell->rounds[i] == round)
            return true;
    return false;
}

/* Against its baseline; a cell without one by itself. */
static bool compare_cell(const struct session *s, size_t metric, size_t cell,
                         struct comparison *ret)
{
    size_t baseline = s->matrix.cells[cell].baseline;
    dataset_settle(s->values);
    if (baseline != cell && s->kept[baseline])
        return judge_cells_by(s->values, metric, baseline, cell, s->options->judge_by, ret);
    return judge_centre(s->values, metric, cell, ret);
}

static double precision_of(const struct session *s)
{
    return s->options->no_precision    ? 0
           : s->options->precision > 0 ? s->options->precision
                                       : s->spec.precision;
}

/* Narrow enough, also for whoever asks for more than that. */
static bool is_precise(const struct session *s, size_t metric, size_t cell,
                       const struct comparison *c)
{
    const struct session_options *o = s->options;
    size_t baseline = s->matrix.cells[cell].baseline;
    struct judge_sides sides = {s->values, s->values, metric, metric, baseline, cell};
    double precision = precision_of(s);
    return precision > 0 && plan_may_stop(c, precision) &&
           (!o->may_stop || baseline == cell || o->may_stop(&sides, c, o->context));
}

/* How well the cell is known by one metric, and whether that is enough. */
static void measure_by(const struct session *s, size_t metric, size_t index,
                       struct session_cell *cell)
{
    struct comparison comparison;
    cell->is_precise = false;
    cell->half_width = INFINITY;
    if (!compare_cell(s, metric, index, &comparison) || comparison.base_count < 2)
        return;
    if (comparison.scale == COMPARISON_DIFFERENCE) { /* no relative precision to be had */
        cell->half_width = comparison.low == comparison.high ? 0 : NAN;
        cell->is_precise = true;
        return;
    }
    double width = plan_half_width(&comparison);
    cell->half_width = isnan(width) ? INFINITY : width;
    cell->is_precise = is_precise(s, metric, index, &comparison);
}

/* The same by the headline, or by CPU time where that stands in for it. */
static void measure_width(const struct session *s, size_t index, struct session_cell *cell)
{
    size_t baseline = s->matrix.cells[index].baseline;
    measure_by(s, 0, index, cell);
    if (!s->options->cpu_stands_in || !straight_never_waits(&cell->straight) ||
        !straight_never_waits(&s->cells[baseline].straight))
        return;
    struct session_cell by_cpu = *cell;
    measure_by(s, 1, index, &by_cpu);
    cell->half_width = fmin(cell->half_width, by_cpu.half_width);
    cell->is_precise |= by_cpu.is_precise;
}

bool session_cell_changed(const struct session *s, size_t cell)
{
    size_t baseline = s->matrix.cells[cell].baseline;
    struct comparison comparison;
    return baseline != cell && s->kept[baseline] && compare_cell(s, 0, cell, &comparison) &&
           comparison_differs(&comparison);
}

/* A baseline's own interval matters through the cells that are compared with it. */
static bool is_baseline_of_others(const struct session *s, size_t cell)
{
    for (size_t c = 0; c < s->matrix.count; c++)
        if (c != cell && s->kept[c] && s->matrix.cells[c].baseline == cell)
            return true;
    return false;
}

void session_measure_widths(struct session *s)
{
    s->widest = NAN;
    for (size_t c = 0; c < s->matrix.count; c++) {
        struct session_cell *cell = &s->cells[c];
        cell->half_width = NAN;
        if (!s->kept[c] || cell->count == 0 || is_baseline_of_others(s, c))
            continue;
        measure_width(s, c, cell);
        if (!isnan(cell->half_width) && !(cell->half_width <= s->widest))
            s->widest = cell->half_width;
    }
}

/* A control is worth something only in the rounds of the change: all that are compared with a
 * chosen baseline go on with it. */
static void choose_sides(const struct session *s, bool *chosen)
{
    for (size_t c = 0; c < s->matrix.count; c++)
        chosen[c] |= s->kept[c] && chosen[s->matrix.cells[c].baseline];
}

size_t session_choose_extra(struct session *s, size_t *ret_cells)
{
    session_measure_widths(s);
    double widest = 0; /* of those that are to go on */
    for (size_t c = 0; c < s->matrix.count; c++)
        if (!isnan(s->cells[c].half_width) && !s->cells[c].is_precise)
            widest = fmax(widest, s->cells[c].half_width);
    CLEANUP(memory_freep) bool *chosen = memory_zalloc(s->matrix.count, sizeof(bool));
    for (size_t c = 0; c < s->matrix.count; c++) {
        const struct session_cell *cell = &s->cells[c];
        if (isnan(cell->half_width) || cell->is_precise || cell->half_width < NEAR_WIDEST * widest)
            continue;
        chosen[c] = true;
        if (s->kept[s->matrix.cells[c].baseline])
            chosen[s->matrix.cells[c].baseline] = true;
    }
    if (s->options->side_count)
        choose_sides(s, chosen);
    size_t count = 0;
    for (size_t c = 0; c < s->matrix.count; c++)
        if (chosen[c])
            ret_cells[count++] = c;
    return count;
}

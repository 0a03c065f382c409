/* SPDX-License-Identifier: MIT */
/* Where more rounds are worth their time: the cells whose intervals are widest, each with the cell
 * that it is compared with, because differences are taken within rounds. */
#include "base/memory.h"
#include "session/session_internal.h"
#include "stats/comparison.h"
#include "stats/plan.h"

#include <math.h>

/* A round takes the cells whose interval is at least this share of the widest. */
#define NEAR_WIDEST 0.5

void session_note_value(struct session_cell *cell, uint32_t round, double value)
{
    size_t before = cell->capacity;
    cell->rounds =
        memory_grow(cell->rounds, &cell->capacity, cell->count + 1, sizeof(*cell->rounds));
    if (cell->capacity != before)
        cell->values = memory_resize(cell->values, cell->capacity, sizeof(*cell->values));
    size_t place = cell->count;
    while (place > 0 && cell->rounds[place - 1] > round)
        place--;
    memmove(&cell->rounds[place + 1], &cell->rounds[place],
            (cell->count - place) * sizeof(*cell->rounds));
    memmove(&cell->values[place + 1], &cell->values[place],
            (cell->count - place) * sizeof(*cell->values));
    cell->rounds[place] = round;
    cell->values[place] = value;
    cell->count++;
}

bool session_has_round(const struct session_cell *cell, uint64_t round)
{
    for (size_t i = cell->count; i-- > 0 && cell->rounds[i] >= round;)
        if (cell->rounds[i] == round)
            return true;
    return false;
}

/* The values of rounds that both have. */
static size_t pair_up(const struct session_cell *a, const struct session_cell *b, double *first,
                      double *second)
{
    size_t i = 0, k = 0, count = 0;
    while (i < a->count && k < b->count) {
        if (a->rounds[i] < b->rounds[k]) {
            i++;
        } else if (a->rounds[i] > b->rounds[k]) {
            k++;
        } else {
            if (isfinite(a->values[i]) && isfinite(b->values[k])) {
                first[count] = a->values[i];
                second[count++] = b->values[k];
            }
            i++;
            k++;
        }
    }
    return count;
}

/* Against its baseline; a cell without one is compared with a constant, which gives the interval of
 * its own centre. */
static double width_of(const struct session *s, size_t cell)
{
    const struct session_cell *c = &s->cells[cell];
    size_t baseline = s->matrix.cells[cell].baseline;
    const struct session_cell *b = &s->cells[baseline];
    CLEANUP(memory_freep) double *first = memory_zalloc(c->count + 1, sizeof(double));
    CLEANUP(memory_freep) double *second = memory_zalloc(c->count + 1, sizeof(double));
    size_t count = 0;
    if (baseline != cell && b->kept) {
        count = pair_up(b, c, first, second);
    } else {
        for (size_t i = 0; i < c->count; i++)
            if (isfinite(c->values[i])) {
                first[count] = 1;
                second[count++] = c->values[i];
            }
    }
    struct comparison comparison;
    if (count < 2 || stats_compare_paired(first, second, count, 0.95, &comparison, NULL) < 0)
        return INFINITY;
    if (comparison.scale == COMPARISON_DIFFERENCE) /* no relative precision to be had */
        return comparison.low == comparison.high ? 0 : NAN;
    double width = plan_half_width(&comparison);
    return isnan(width) ? INFINITY : width;
}

bool session_cell_changed(const struct session *s, size_t cell)
{
    size_t baseline = s->matrix.cells[cell].baseline;
    const struct session_cell *c = &s->cells[cell];
    CLEANUP(memory_freep) double *first = memory_zalloc(c->count + 1, sizeof(double));
    CLEANUP(memory_freep) double *second = memory_zalloc(c->count + 1, sizeof(double));
    struct comparison comparison;
    if (baseline == cell || !s->kept[baseline])
        return false;
    size_t count = pair_up(&s->cells[baseline], c, first, second);
    return count && stats_compare_paired(first, second, count, 0.95, &comparison, NULL) == 0 &&
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
        cell->half_width = width_of(s, c);
        if (!isnan(cell->half_width) && !(cell->half_width <= s->widest))
            s->widest = cell->half_width;
    }
}

size_t session_choose_extra(struct session *s, size_t *ret_cells)
{
    double precision = s->options->no_precision    ? 0
                       : s->options->precision > 0 ? s->options->precision
                                                   : s->spec.precision;
    session_measure_widths(s);
    if (isnan(s->widest) || (precision > 0 && s->widest <= precision))
        return 0;
    CLEANUP(memory_freep) bool *chosen = memory_zalloc(s->matrix.count, sizeof(bool));
    for (size_t c = 0; c < s->matrix.count; c++) {
        double width = s->cells[c].half_width;
        if (isnan(width) || width <= precision || width < NEAR_WIDEST * s->widest)
            continue;
        chosen[c] = true;
        if (s->kept[s->matrix.cells[c].baseline])
            chosen[s->matrix.cells[c].baseline] = true;
    }
    size_t count = 0;
    for (size_t c = 0; c < s->matrix.count; c++)
        if (chosen[c])
            ret_cells[count++] = c;
    return count;
}

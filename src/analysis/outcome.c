/* SPDX-License-Identifier: MIT */
/* See outcome.h. */
#include "analysis/outcome.h"
#include "base/memory.h"
#include "stats/plan.h"

#include <math.h>

size_t outcome_reference(const struct outcome *o, size_t participant)
{
    size_t base = o->data->cells[participant].baseline;
    return base == DATASET_NONE ? participant : base;
}

void outcome_judge(struct outcome *o, const struct dataset *d,
                   const struct participant *participants, const char *headline)
{
    size_t count = d->metric_count * d->cell_count;
    *o = (struct outcome){.data = d,
                          .participants = participants,
                          .headline = dataset_metric(d, headline),
                          .cells = memory_zalloc(count + 1, sizeof(*o->cells))};
    compare_baselines(&o->compare, d);
    for (size_t i = 0; i < count; i++) {
        struct outcome_cell *cell = &o->cells[i];
        size_t metric = i / d->cell_count, participant = i % d->cell_count;
        const struct compare_row *row = compare_find(&o->compare, metric, participant);
        if (!dataset_figures(d, metric, participant, &cell->summary, &cell->median))
            *cell = (struct outcome_cell){0};
        else
            cell->judged = row ? &row->judged : NULL;
    }
}

void outcome_done(struct outcome *o)
{
    compare_done(&o->compare);
    free(o->cells);
    *o = (struct outcome){0};
}

static double relative_half_width(const struct outcome_cell *cell)
{
    if (cell->judged) {
        const struct comparison *c = &cell->judged->comparison;
        double half = plan_half_width(c);
        return c->scale == COMPARISON_RATIO ? half : half / fabs(c->base_median);
    }
    return (cell->median.high - cell->median.low) / 2 / fabs(cell->median.median);
}

static bool any_is_compared(const struct outcome *o, size_t metric)
{
    for (size_t i = 0; i < o->data->cell_count; i++)
        if (outcome_cell(o, metric, i)->judged)
            return true;
    return false;
}

bool outcome_is_precise(const struct outcome *o, size_t metric, double half_width)
{
    bool any_compared = any_is_compared(o, metric), any = false;
    for (size_t i = 0; i < o->data->cell_count; i++) {
        const struct outcome_cell *cell = outcome_cell(o, metric, i);
        struct comparison c;
        if (!cell->summary.count || (cell->judged != NULL) != any_compared)
            continue;
        if (cell->judged)
            c = cell->judged->comparison;
        else if (!judge_centre(o->data, metric, i, &c))
            return false;
        if (!plan_may_stop(&c, half_width))
            return false;
        any = true;
    }
    return any;
}

double outcome_half_width(const struct outcome *o, size_t metric)
{
    double widest = NAN;
    bool any_compared = any_is_compared(o, metric);
    for (size_t i = 0; i < o->data->cell_count; i++) {
        const struct outcome_cell *cell = outcome_cell(o, metric, i);
        if (!cell->summary.count || (cell->judged != NULL) != any_compared)
            continue;
        double width = relative_half_width(cell);
        if (!isfinite(width))
            return NAN;
        widest = isnan(widest) || width > widest ? width : widest;
    }
    return widest;
}

bool outcome_differs(const struct outcome *o, size_t metric)
{
    for (size_t i = 0; i < o->data->cell_count; i++) {
        const struct judge_row *j = outcome_cell(o, metric, i)->judged;
        if (j && j->changed)
            return true;
    }
    return false;
}

bool outcome_is_same(const struct outcome *o, size_t metric)
{
    bool any = false;
    for (size_t i = 0; i < o->data->cell_count; i++) {
        const struct judge_row *j = outcome_cell(o, metric, i)->judged;
        any |= j != NULL;
        if (j && j->verdict.kind != VERDICT_SAME)
            return false;
    }
    return any;
}

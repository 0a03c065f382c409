/* SPDX-License-Identifier: MIT */
/* See ranking.h. */
#include "analysis/ranking.h"
#include "base/memory.h"

#include <string.h>

/* By which a participant stands in its group: its ratio to the reference, which is taken within
 * rounds, else its median.  Lower is better. */
static double place(const struct outcome *o, size_t metric, size_t participant)
{
    const struct outcome_cell *cell = outcome_cell(o, metric, participant);
    size_t reference = outcome_reference(o, participant);
    double median = outcome_cell(o, metric, reference)->summary.median, value;
    if (participant == reference)
        value = median;
    else if (cell->judged && cell->judged->comparison.scale == COMPARISON_RATIO)
        value = median * cell->judged->comparison.estimate;
    else
        value = cell->summary.median;
    return o->data->metrics[metric].facts.better == METRIC_HIGHER ? -value : value;
}

static size_t best_of(const struct outcome *o, size_t metric, size_t group, size_t *ret_count)
{
    size_t best = DATASET_NONE;
    *ret_count = 0;
    for (size_t i = 0; i < o->data->cell_count; i++) {
        if (o->participants[i].group != group || !outcome_cell(o, metric, i)->summary.count)
            continue;
        ++*ret_count;
        if (best == DATASET_NONE || place(o, metric, i) < place(o, metric, best))
            best = i;
    }
    return best;
}

const struct judge_row *ranking_row(const struct ranking *r, size_t participant)
{
    return outcome_cell(&r->against_best, r->metric, participant)->judged;
}

/* How far behind the best of its group; the best itself is first. */
static double distance(const struct ranking *r, size_t participant)
{
    const struct judge_row *row = ranking_row(r, participant);
    if (!row)
        return 0;
    double change = row->comparison.scale == COMPARISON_RATIO ? row->comparison.estimate - 1
                                                              : row->comparison.estimate;
    double behind = r->data.metrics[r->metric].facts.better == METRIC_HIGHER ? -change : change;
    return behind > 0 ? 1 + behind : 1 / (1 - behind); /* never before the best */
}

static void sort_groups(struct ranking *r, const struct participant *participants)
{
    for (size_t i = 1; i < r->count; i++)
        for (size_t k = i; k > 0; k--) {
            size_t a = r->order[k - 1], b = r->order[k];
            if (participants[a].group < participants[b].group ||
                (participants[a].group == participants[b].group &&
                 distance(r, a) <= distance(r, b)))
                break;
            r->order[k - 1] = b;
            r->order[k] = a;
        }
}

/* The best is known afterwards only: of k that are equal, the first and the last are further apart
 * than any two that were named before.  So all pairs of a group count, for each row that is left,
 * and twice, because the rows against the reference have a part of the error; unless the best is
 * the reference: then these are the rows that were asked for. */
static double pairs_per_row(const struct outcome *o, size_t metric)
{
    size_t pairs = 0, rows = 0;
    for (size_t i = 0; i < o->data->cell_count; i++) {
        size_t count, best = best_of(o, metric, o->participants[i].group, &count);
        if (best != i || count < 3)
            continue;
        pairs += (count - 1) * (outcome_reference(o, best) == best ? 1 : count);
        rows += count - 1;
    }
    return rows ? (double)pairs / (double)rows : 0;
}

bool ranking_make(struct ranking *r, const struct outcome *o, size_t metric)
{
    const struct dataset *d = o->data;
    *r = (struct ranking){.metric = metric};
    if (metric == DATASET_NONE || d->metrics[metric].facts.better == METRIC_NEITHER)
        return false;
    r->order = memory_zalloc(d->cell_count + 1, sizeof(*r->order));
    r->data = *d;
    r->data.cells = memory_zalloc(d->cell_count + 1, sizeof(*d->cells));
    memcpy(r->data.cells, d->cells, d->cell_count * sizeof(*d->cells));
    for (size_t i = 0; i < d->cell_count; i++) {
        size_t count, best = best_of(o, metric, o->participants[i].group, &count);
        bool takes_part = outcome_cell(o, metric, i)->summary.count && count >= 3;
        r->data.cells[i].baseline = takes_part && best != i ? best : DATASET_NONE;
        if (takes_part)
            r->order[r->count++] = i;
    }
    r->data.chosen_from = pairs_per_row(o, metric);
    if (!r->count) {
        ranking_done(r);
        return false;
    }
    outcome_judge(&r->against_best, &r->data, o->participants, d->metrics[metric].name);
    sort_groups(r, o->participants);
    return true;
}

void ranking_done(struct ranking *r)
{
    outcome_done(&r->against_best);
    free(r->data.cells);
    free(r->order);
    *r = (struct ranking){0};
}

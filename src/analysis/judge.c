/* SPDX-License-Identifier: MIT */
/* See judge.h. */
#include "analysis/judge.h"
#include "analysis/nodes.h"
#include "base/memory.h"
#include "stats/fdr.h"

#include <errno.h>
#include <math.h>

/* ---- pairing ---- */

size_t judge_pair_rounds(const struct dataset_column *a, const struct dataset_column *b,
                         double *first, double *second)
{
    size_t i = 0, k = 0, count = 0;
    while (i < a->count && k < b->count) {
        bool same_node = !a->nodes || !b->nodes || a->nodes[i] == b->nodes[k];
        if (a->rounds[i] == b->rounds[k] && !same_node) {
            i++;
            k++;
        } else if (a->rounds[i] == b->rounds[k]) {
            first[count] = a->values[i++];
            second[count++] = b->values[k++];
        } else if (a->rounds[i] < b->rounds[k]) {
            i++;
        } else {
            k++;
        }
    }
    return count;
}

int judge_values(const struct judge_values *v, double level, struct comparison *ret_comparison,
                 struct error *err)
{
    if (v->paired)
        return stats_compare_paired(v->base, v->new, v->base_count, level, ret_comparison, err);
    return stats_compare_unpaired(v->base, v->base_count, v->new, v->new_count, level,
                                  ret_comparison, err);
}

static int compare_sides(const struct judge_sides *s, double level, struct comparison *ret)
{
    struct dataset_column base = dataset_column(s->base, s->base_metric, s->base_cell);
    struct dataset_column new = dataset_column(s->new, s->new_metric, s->new_cell);
    if (!base.count || !new.count)
        return -ENODATA;
    CLEANUP(memory_freep) double *first = memory_zalloc(base.count, sizeof(*first));
    CLEANUP(memory_freep) double *second = memory_zalloc(base.count, sizeof(*second));
    struct judge_values apart = {base.values, new.values, base.count, new.count, false};
    struct judge_values paired = {.base = first, .new = second, .paired = true};
    if (s->base != s->new) {
        paired.base_count = nodes_pair(s->base, &base, s->new, &new, first, second, NULL);
        if (paired.base_count < COMPARISON_ROUNDS_MIN)
            return judge_values(&apart, level, ret, NULL);
    } else if (s->base->apart) {
        return judge_values(&apart, level, ret, NULL);
    } else {
        paired.base_count = judge_pair_rounds(&base, &new, first, second);
    }
    paired.new_count = paired.base_count;
    return paired.base_count ? judge_values(&paired, level, ret, NULL) : -ENODATA;
}

/* ---- one row ---- */

static const struct store_metric *metric_of(const struct judge_sides *s)
{
    return &s->base->metrics[s->base_metric];
}

static void put_words(struct judge_row *row)
{
    const struct store_metric *m = metric_of(&row->sides);
    struct verdict_options options = {
        .facts = m->facts, .unit = m->unit, .round_seconds = row->sides.new->round_seconds};
    verdict_judge(&row->comparison, &options, &row->verdict);
}

void judge_words(const struct comparison *comparison, struct metric_facts facts, const char *unit,
                 struct verdict *ret_verdict)
{
    struct verdict_options options = {.facts = facts, .unit = unit};
    verdict_judge(comparison, &options, ret_verdict);
}

static bool nothing_varies(const struct judge_row *row)
{
    return row->base.min == row->base.max && row->new.min == row->new.max &&
           row->base.min == row->new.min;
}

static bool summarise(const struct dataset *d, size_t metric, size_t cell, struct summary *ret)
{
    struct dataset_column column = dataset_column(d, metric, cell);
    return column.count && stats_summarise(column.values, column.count, ret, NULL) == 0;
}

bool judge_row(struct judge_row *row)
{
    const struct judge_sides *s = &row->sides;
    row->p_adjusted = NAN;
    row->tested = row->changed = false;
    if (dataset_is_bound(s->base, s->base_metric, s->base_cell) ||
        dataset_is_bound(s->new, s->new_metric, s->new_cell))
        return false; /* a bound says nothing about differences */
    if (!summarise(s->base, s->base_metric, s->base_cell, &row->base) ||
        !summarise(s->new, s->new_metric, s->new_cell, &row->new) ||
        compare_sides(s, JUDGE_LEVEL, &row->comparison) < 0)
        return false;
    row->tested = !row->skip && !row->comparison.too_few && !nothing_varies(row);
    row->p_adjusted = row->tested ? row->comparison.p : NAN;
    row->changed = row->tested && comparison_differs(&row->comparison);
    put_words(row);
    return true;
}

bool judge_cells(const struct dataset *d, size_t metric, size_t base, size_t new,
                 struct comparison *ret_comparison)
{
    struct judge_sides sides = {d, d, metric, metric, base, new};
    return base != DATASET_NONE &&
           new != DATASET_NONE &&compare_sides(&sides, JUDGE_LEVEL, ret_comparison) == 0;
}

/* ---- families ---- */

/* Headlines stand by themselves; all else is adjusted together (Benjamini & Hochberg). */
void judge_family(struct judge_row *const *rows, size_t count)
{
    CLEANUP(memory_freep) double *p = memory_zalloc(count + 1, sizeof(*p));
    for (size_t i = 0; i < count; i++)
        p[i] = rows[i]->tested && !rows[i]->headline ? rows[i]->comparison.p : NAN;
    fdr_adjust(p, count, p);
    for (size_t i = 0; i < count; i++) {
        struct judge_row *row = rows[i];
        if (!row->tested || row->headline)
            continue;
        row->p_adjusted = p[i];
        row->changed = comparison_differs(&row->comparison) && p[i] <= JUDGE_RATE;
    }
}

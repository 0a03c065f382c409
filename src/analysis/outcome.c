/* SPDX-License-Identifier: MIT */
/* What measured values say: see outcome.h. */
#include "analysis/outcome.h"
#include "base/memory.h"
#include "stats/fdr.h"
#include "stats/plan.h"
#include "stats/sort.h"

#include <math.h>

#define LEVEL 0.95
#define FALSE_DISCOVERIES 0.05

static struct outcome_cell *cell_of(struct outcome *o, size_t series, size_t participant)
{
    return &o->cells[series * o->set->contestant_count + participant];
}

size_t outcome_reference(const struct outcome *o, size_t participant)
{
    for (size_t i = 0; i < o->set->contestant_count; i++)
        if (o->participants[i].group == o->participants[participant].group &&
            o->participants[i].is_reference)
            return i;
    return participant;
}

static size_t longest(const struct series *s, size_t participant_count)
{
    size_t most = 0;
    for (size_t i = 0; i < participant_count; i++)
        most = s->counts[i] > most ? s->counts[i] : most;
    return most;
}

static struct verdict_options options_for(const struct outcome *o, const struct series *s)
{
    /* A program's own figures are its speed when one way is better. */
    bool speed = s->source == SERIES_CLOCK ||
                 (s->source == SERIES_PROGRAM && s->better != METRIC_NEITHER &&
                  s->kind != SERIES_BYTES && !str_eq(s->unit, "bytes") && !str_eq(s->unit, "B"));
    return (struct verdict_options){
        .better = s->better, .speed = speed, .round_seconds = o->round_seconds};
}

static int summarise(struct outcome *o, size_t series, size_t participant, double *scratch,
                     struct error *err)
{
    const struct series *s = &o->set->items[series];
    struct outcome_cell *cell = cell_of(o, series, participant);
    size_t count = series_values(s, participant, scratch);
    int r = stats_summarise(scratch, count, &cell->summary, err);
    if (r < 0 || !count)
        return r;
    sort_doubles(scratch, count);
    median_interval(scratch, count, LEVEL, &cell->median);
    return 0;
}

static int compare(struct outcome *o, size_t series, size_t participant, double *base_values,
                   double *new_values, struct error *err)
{
    const struct series *s = &o->set->items[series];
    struct outcome_cell *cell = cell_of(o, series, participant);
    size_t base = outcome_reference(o, participant);
    /* A bound says nothing about differences. */
    if (base == participant || s->is_bound[base] || s->is_bound[participant])
        return 0;
    int r = 0;
    if (o->set->paired) {
        size_t count = series_pairs(s, base, participant, base_values, new_values);
        if (!count)
            return 0;
        r = stats_compare_paired(base_values, new_values, count, LEVEL, &cell->comparison, err);
    } else {
        size_t base_count = series_values(s, base, base_values);
        size_t new_count = series_values(s, participant, new_values);
        if (!base_count || !new_count)
            return 0;
        r = stats_compare_unpaired(base_values, base_count, new_values, new_count, LEVEL,
                                   &cell->comparison, err);
    }
    if (r < 0)
        return error_wrap(err, r, "%s of %s", s->name, o->participants[participant].name);
    struct verdict_options options = options_for(o, s);
    verdict_judge(&cell->comparison, &options, &cell->verdict);
    cell->is_compared = true;
    return 0;
}

static bool is_difference(enum verdict_kind kind)
{
    return kind == VERDICT_BETTER || kind == VERDICT_WORSE || kind == VERDICT_DIFFERENT;
}

/* The headline keeps its p; all other comparisons are adjusted together. */
static void adjust(struct outcome *o)
{
    size_t participants = o->set->contestant_count, count = o->set->count * participants;
    CLEANUP(memory_freep) double *p = memory_zalloc(count + 1, sizeof(*p));
    for (size_t i = 0; i < count; i++)
        p[i] = o->cells[i].is_compared && i / participants != o->headline ? o->cells[i].comparison.p
                                                                          : NAN;
    fdr_adjust(p, count, p);
    for (size_t i = 0; i < count; i++) {
        struct outcome_cell *cell = &o->cells[i];
        if (!cell->is_compared)
            continue;
        bool is_headline = i / participants == o->headline;
        cell->adjusted_p = is_headline ? cell->comparison.p : p[i];
        cell->stands = is_difference(cell->verdict.kind) &&
                       (is_headline || cell->adjusted_p <= FALSE_DISCOVERIES);
    }
}

int outcome_judge(struct outcome *o, const struct series_set *set,
                  const struct participant *participants, const char *headline,
                  double round_seconds, struct error *err)
{
    *o = (struct outcome){.set = set,
                          .participants = participants,
                          .headline = SIZE_MAX,
                          .round_seconds = round_seconds};
    o->cells = memory_zalloc(set->count * set->contestant_count + 1, sizeof(*o->cells));
    int r = 0;
    for (size_t i = 0; i < set->count && r == 0; i++) {
        const struct series *s = &set->items[i];
        size_t size = longest(s, set->contestant_count) + 1;
        CLEANUP(memory_freep) double *first = memory_zalloc(size, sizeof(*first));
        CLEANUP(memory_freep) double *second = memory_zalloc(size, sizeof(*second));
        if (str_eq(s->name, headline))
            o->headline = i;
        for (size_t j = 0; j < set->contestant_count && r == 0; j++) {
            r = summarise(o, i, j, first, err);
            if (r == 0)
                r = compare(o, i, j, first, second, err);
        }
    }
    if (r < 0)
        outcome_done(o);
    else
        adjust(o);
    return r;
}

void outcome_done(struct outcome *o)
{
    free(o->cells);
    *o = (struct outcome){0};
}

static double relative_half_width(const struct outcome_cell *cell)
{
    if (cell->is_compared) {
        double half = plan_half_width(&cell->comparison);
        return cell->comparison.scale == COMPARISON_RATIO
                   ? half
                   : half / fabs(cell->comparison.base_median);
    }
    return (cell->median.high - cell->median.low) / 2 / fabs(cell->median.median);
}

double outcome_half_width(const struct outcome *o, size_t series)
{
    double widest = NAN;
    bool any_compared = false;
    for (size_t i = 0; i < o->set->contestant_count; i++)
        any_compared |= outcome_cell(o, series, i)->is_compared;
    for (size_t i = 0; i < o->set->contestant_count; i++) {
        const struct outcome_cell *cell = outcome_cell(o, series, i);
        if (!cell->summary.count || cell->is_compared != any_compared)
            continue;
        double width = relative_half_width(cell);
        if (!isfinite(width))
            return NAN;
        widest = isnan(widest) || width > widest ? width : widest;
    }
    return widest;
}

bool outcome_differs(const struct outcome *o, size_t series)
{
    for (size_t i = 0; i < o->set->contestant_count; i++)
        if (outcome_cell(o, series, i)->stands)
            return true;
    return false;
}

bool outcome_is_same(const struct outcome *o, size_t series)
{
    bool any = false;
    for (size_t i = 0; i < o->set->contestant_count; i++) {
        const struct outcome_cell *cell = outcome_cell(o, series, i);
        any |= cell->is_compared;
        if (cell->is_compared && cell->verdict.kind != VERDICT_SAME)
            return false;
    }
    return any;
}

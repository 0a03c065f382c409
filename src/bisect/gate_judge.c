/* SPDX-License-Identifier: MIT */
/* See gate.h. */
#include "base/memory.h"
#include "base/process.h"
#include "bisect/gate.h"
#include "run/straight.h"
#include "stats/plan.h"

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
    return row->has_control && row->control.changed && own > log1p(max_regression) / 2 &&
           own > shift_of(&row->change.comparison) / 4;
}

enum metric_better gate_better(const struct gate_result_set *set, const struct store_metric *m)
{
    return set->has_better ? set->better : m->facts.better;
}

/* What the row keeps of its new cell: where it was, and the values for whoever compares later. */
static void describe_row(struct gate_row *row)
{
    const struct judge_sides *s = &row->change.sides;
    const struct dataset *d = s->new;
    const struct dataset_cell *cell = &d->cells[s->new_cell];
    CLEANUP(strbuf_done) struct strbuf text = {0};
    row->metric = memory_strdup(d->metrics[s->new_metric].name);
    row->unit = memory_strdup(d->metrics[s->new_metric].unit);
    row->command = memory_strdup(cell->command ? cell->command : "");
    row->factors = memory_zalloc(d->factor_count + 1, sizeof(*row->factors));
    row->levels = memory_zalloc(d->factor_count + 1, sizeof(*row->levels));
    for (size_t f = 0; f < d->factor_count; f++) {
        if (str_eq(d->factors[f], "side"))
            continue;
        strbuf_printf(&text, "%s%s=%s", text.length ? " " : "", d->factors[f], cell->levels[f]);
        row->factors[row->factor_count] = memory_strdup(d->factors[f]);
        row->levels[row->factor_count++] = memory_strdup(cell->levels[f]);
    }
    row->cell = memory_strdup(strbuf_text(&text));
    struct dataset_column columns[] = {dataset_column(s->base, s->base_metric, s->base_cell),
                                       dataset_column(d, s->new_metric, s->new_cell)};
    for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
        row->values[i] = memory_zalloc(columns[i].count + 1, sizeof(double));
        memcpy(row->values[i], columns[i].values, columns[i].count * sizeof(double));
        row->value_counts[i] = columns[i].count;
    }
}

static void row_done(struct gate_row *row)
{
    for (size_t f = 0; f < row->factor_count; f++) {
        free(row->factors[f]);
        free(row->levels[f]);
    }
    exact_functions_done(&row->functions[0]);
    exact_functions_done(&row->functions[1]);
    free(row->factors);
    free(row->levels);
    free(row->values[0]);
    free(row->values[1]);
    free(row->metric);
    free(row->unit);
    free(row->cell);
    free(row->command);
}

enum judge_by gate_judge_by(enum gate_by by)
{
    return by == GATE_BY_MEAN ? JUDGE_MEAN : by == GATE_BY_P95 ? JUDGE_P95 : JUDGE_MEDIAN;
}

bool gate_add_row(struct gate_result_set *set, const struct judge_sides *sides, size_t control_cell)
{
    enum judge_by by = gate_judge_by(set->by);
    struct gate_row row = {.change = {.sides = *sides, .by = by, .headline = true},
                           .control = {.sides = *sides, .by = by, .headline = true},
                           .has_control = control_cell != DATASET_NONE};
    row.control.sides.new_cell = control_cell;
    if (!judge_row(&row.change) || (row.has_control && !judge_row(&row.control)))
        return false;
    describe_row(&row);
    row.better = gate_better(set, &sides->new->metrics[sides->new_metric]);
    ARRAY_PUSH(set->rows, set->count, set->capacity) = row;
    return true;
}

/* The mean looks worse than allowed, by an error of this size. */
static bool is_suspect(const struct judge_tails *t, enum metric_better better,
                       double max_regression, double error)
{
    struct comparison point = t->mean;
    point.low = point.high = point.estimate;
    return t->looked && t->mean.p < error &&
           verdict_gate(&point, better, max_regression) != GATE_PASS;
}

/* By the centre and by the mean, whichever is worse: users feel both.  What looks bad and is not
 * certain is not passed. */
static enum gate_result result_of(const struct gate_result_set *set, const struct gate_row *row)
{
    const struct judge_tails *t = &row->change.tails;
    enum gate_result centre =
        verdict_gate(&row->change.comparison, row->better, set->max_regression);
    if (set->by != GATE_BY_BOTH || !t->looked)
        return centre;
    enum gate_result mean = verdict_gate(&t->mean, row->better, set->max_regression);
    if (t->beyond)
        return mean == GATE_REGRESSION || centre == GATE_PASS ? mean : centre;
    bool suspect = is_suspect(t, row->better, set->max_regression, JUDGE_RATE);
    return centre == GATE_PASS && suspect ? GATE_INCONCLUSIVE : centre;
}

/* Suspicions that are worth more rounds. */
#define SUSPICION 0.2

bool gate_may_stop(const struct gate_result_set *set, const struct judge_sides *sides,
                   const struct comparison *centre, enum metric_better better)
{
    size_t rounds = centre->base_count;
    if (set->by != GATE_BY_BOTH || centre->low == centre->high ||
        (better != METRIC_NEITHER &&
         verdict_gate(centre, better, set->max_regression) == GATE_REGRESSION))
        return true;
    struct judge_row row = {.sides = *sides, .headline = true};
    if (rounds < PLAN_TAILS_ROUNDS_MIN || !judge_row(&row))
        return false;
    /* A metric of a spec, whose direction is not known here, has clearly moved: if that is worse,
     * it is decided, and if it is better, the verdict looks at the mean of these rounds. */
    if (better == METRIC_NEITHER &&
        verdict_gate(centre, better, set->max_regression) == GATE_REGRESSION)
        return true;
    if (!is_suspect(&row.tails, better, set->max_regression, SUSPICION))
        return true;
    /* The tails' part of the error is divided among the looks as plan.h does. */
    double alpha = 1 - plan_look_level(1 - TAILS_SHARE * JUDGE_RATE, rounds);
    return plan_is_look(rounds) && row.tails.p <= alpha &&
           verdict_gate(&row.tails.mean, better, set->max_regression) == GATE_REGRESSION;
}

/* Each row's own result, and the worst of them. */
static void take_results(struct gate_result_set *set, size_t from)
{
    set->result = GATE_PASS;
    set->control_failed = false;
    for (size_t i = from; i < set->count; i++) {
        struct gate_row *row = &set->rows[i];
        row->limit = set->max_regression;
        row->result = result_of(set, row);
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

/* All changes are one family, and so are all controls: with twenty metrics one of them always
 * looks different from itself. */
static void judge_families(struct gate_row *rows, size_t count)
{
    CLEANUP(memory_freep) struct judge_row **family = memory_zalloc(count + 1, sizeof(*family));
    size_t controls = 0;
    for (size_t i = 0; i < count; i++)
        family[i] = &rows[i].change;
    judge_family(family, count);
    for (size_t i = 0; i < count; i++)
        if (rows[i].has_control)
            family[controls++] = &rows[i].control;
    judge_family(family, controls);
}

void gate_judge_rows(struct gate_result_set *set)
{
    judge_families(set->rows, set->count);
    take_results(set, 0);
}

/* ---- whole rounds ---- */

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

size_t gate_add_cpu(struct dataset *d)
{
    size_t user = dataset_metric(d, "user"), sys = dataset_metric(d, "sys");
    size_t cpu = dataset_metric(d, "cpu");
    if (cpu != DATASET_NONE || user == DATASET_NONE || sys == DATASET_NONE)
        return cpu;
    cpu = dataset_add_metric(d, "cpu", "ns", "time", (struct metric_facts){.better = METRIC_LOWER});
    for (size_t c = 0; c < d->cell_count; c++) {
        struct dataset_column u = dataset_column(d, user, c), s = dataset_column(d, sys, c);
        for (size_t i = 0; i < u.count && i < s.count; i++)
            if (u.rounds[i] == s.rounds[i])
                dataset_put(d, cpu, c, u.rounds[i], u.values[i] + s.values[i]);
    }
    dataset_settle(d);
    return cpu;
}

/* The same table with whole rounds only: what a run that failed leaves out is left out for the
 * change and for the control alike. */
static void keep_whole_rounds(struct dataset *to, const struct dataset *d, size_t side)
{
    dataset_start(to, d->experiment.name);
    free(to->experiment.headline);
    to->experiment.headline = memory_strdup(d->experiment.headline);
    to->experiment.adaptive = d->experiment.adaptive;
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

/* ---- CPU time in wall time's place ---- */

static bool never_waits(const struct dataset *d, size_t cell)
{
    size_t wall = dataset_metric(d, "wall"), cpu = dataset_metric(d, "cpu");
    size_t switches = dataset_metric(d, "voluntary-switches");
    struct straight straight = {0};
    if (wall == DATASET_NONE || cpu == DATASET_NONE || switches == DATASET_NONE)
        return false;
    struct dataset_column w = dataset_column(d, wall, cell), c = dataset_column(d, cpu, cell);
    struct dataset_column v = dataset_column(d, switches, cell);
    for (size_t i = 0; i < w.count && i < c.count && i < v.count; i++)
        straight_note(&straight, c.values[i], w.values[i], v.values[i]);
    return straight_never_waits(&straight);
}

static void add_rows(struct gate_result_set *set, const struct dataset *d, size_t metric)
{
    size_t side = dataset_factor(d, "side");
    for (size_t c = 0; c < d->cell_count; c++) {
        size_t control = dataset_cell_with(d, c, side, "control");
        size_t new = dataset_cell_with(d, c, side, "new");
        if (!str_eq(d->cells[c].levels[side], "base") || control == DATASET_NONE ||
            new == DATASET_NONE)
            continue;
        struct judge_sides sides = {d, d, metric, metric, c, new};
        gate_add_row(set, &sides, control);
    }
}

/* Wall time could not tell.  CPU time is judged with it in one family, since it is a second look;
 * where it can tell, it counts. */
static void try_cpu(struct gate_result_set *set, struct dataset *d)
{
    size_t walls = set->count, cpu = gate_add_cpu(d);
    for (size_t c = 0; c < d->cell_count; c++)
        if (!never_waits(d, c))
            return;
    if (cpu == DATASET_NONE)
        return;
    add_rows(set, d, cpu);
    struct gate_result_set look = *set;
    look.rows = memory_zalloc(set->count + 1, sizeof(*look.rows));
    memcpy(look.rows, set->rows, set->count * sizeof(*look.rows));
    judge_families(look.rows, look.count);
    take_results(&look, walls);
    bool tells = look.result != GATE_INCONCLUSIVE;
    for (size_t i = walls; tells && i < set->count; i++)
        set->rows[i] = look.rows[i];
    for (size_t i = 0; tells && i < walls; i++)
        set->rows[i].set_aside = true;
    while (!tells && set->count > walls)
        row_done(&set->rows[--set->count]);
    if (tells) {
        set->result = look.result;
        set->control_failed = look.control_failed;
        set->by_cpu = true;
    }
    free(look.rows);
}

int gate_judge(struct gate_result_set *set, const struct dataset *all, struct error *err)
{
    CLEANUP(dataset_done) struct dataset d;
    size_t position = 0, metric;
    set->started_at_ns = all->experiment.started_at_ns;
    keep_whole_rounds(&d, all, dataset_factor(all, "side"));
    while ((metric = dataset_headline(&d, &position)) != DATASET_NONE)
        if (gate_better(set, &d.metrics[metric]) != METRIC_NEITHER)
            add_rows(set, &d, metric);
    gate_judge_rows(set);
    if (set->count && set->result == GATE_INCONCLUSIVE && set->cpu_stands_in &&
        str_eq(d.experiment.headline, "wall\n"))
        try_cpu(set, &d);
    return set->count ? 0
                      : error_set(err, -ENODATA,
                                  "nothing can be judged: no headline metric says which way is "
                                  "better (--better does), or no round is complete");
}

void gate_note_failures(struct gate_result_set *set, const struct dataset *d,
                        bool (*is_machines)(int exit_code))
{
    for (size_t c = 0; c < d->cell_count; c++) {
        if (!d->cells[c].failed_count)
            continue;
        int code = process_exit_code(d->cells[c].last_status);
        if (is_machines && is_machines(code))
            set->failed_code = code;
        ARRAY_PUSH(set->failures, set->failure_count, set->failure_capacity) =
            (struct gate_failure){.cell = memory_strdup(d->cells[c].label),
                                  .failed_count = d->cells[c].failed_count,
                                  .run_count = d->cells[c].run_count};
    }
}

static enum gate_result effective(const struct gate_result_set *set)
{
    return set->control_failed ? GATE_INCONCLUSIVE : set->result;
}

void gate_require_too(struct gate_result_set *set, struct gate_result_set *from)
{
    enum gate_result first = effective(set), second = effective(from);
    for (size_t i = 0; i < from->count; i++)
        ARRAY_PUSH(set->rows, set->count, set->capacity) = from->rows[i];
    for (size_t i = 0; i < from->failure_count; i++)
        ARRAY_PUSH(set->failures, set->failure_count, set->failure_capacity) = from->failures[i];
    set->result = first == GATE_REGRESSION || second == GATE_REGRESSION ? GATE_REGRESSION
                  : first == GATE_PASS && second == GATE_PASS           ? GATE_PASS
                                                                        : GATE_INCONCLUSIVE;
    set->control_failed =
        set->result == GATE_INCONCLUSIVE && (set->control_failed || from->control_failed);
    set->by_cpu |= from->by_cpu;
    set->has_failed |= from->has_failed;
    from->count = from->failure_count = 0;
    gate_result_set_done(from);
}

void gate_result_set_done(struct gate_result_set *set)
{
    free(set->stored_command);
    free(set->new_command);
    set->stored_command = set->new_command = NULL;
    for (size_t i = 0; i < set->failure_count; i++)
        free(set->failures[i].cell);
    free(set->failures);
    set->failures = NULL;
    set->failure_count = 0;
    for (size_t i = 0; i < set->count; i++)
        row_done(&set->rows[i]);
    free(set->rows);
    set->rows = NULL;
    set->count = 0;
}

/* SPDX-License-Identifier: MIT */
/* `assay ab --layouts`: how much of a difference is the memory layout's? */
#include "base/memory.h"
#include "base/process.h"
#include "cmd/ab.h"

#include <errno.h>
#include <math.h>

int ab_layouts_check(const struct ab_options *o, size_t command_count, struct error *err)
{
    const char *other = o->rounds || o->min_rounds || o->max_rounds ? "--rounds"
                        : o->precision                              ? "--precision"
                        : o->duet                                   ? "--duet"
                        : o->exact                                  ? "--exact"
                        : o->sim                                    ? "--sim"
                        : o->no_padding                             ? "--no-padding"
                                                                    : NULL;
    if (o->links.count && !o->layouts)
        return error_set(err, -EINVAL, "--link goes with --layouts");
    if (!o->layouts)
        return 0;
    if (o->layouts < LAYOUTS_MIN || o->layouts > LAYOUTS_MAX)
        return error_set(err, -EINVAL, "--layouts %llu: must be between %d and %d",
                         (unsigned long long)o->layouts, LAYOUTS_MIN, LAYOUTS_MAX);
    if (other)
        return error_set(err, -EINVAL, "--layouts and %s cannot be used together", other);
    if (o->links.count && o->links.count != command_count)
        return error_set(err, -EINVAL,
                         "--link is given %zu %s for %zu %s; give it once for "
                         "each command, in the same order",
                         o->links.count, plural(o->links.count, "time", "times"), command_count,
                         plural(command_count, "command", "commands"));
    return 0;
}

int ab_layouts_link(struct relinked *l, const struct ab_options *o, const struct ab_plan *plan,
                    struct rounds_spec *spec, struct error *err)
{
    CLEANUP(memory_freep) const char **programs = memory_zalloc(plan->count + 1, sizeof(char *));
    CLEANUP(memory_freep) const char **commands = memory_zalloc(plan->count + 1, sizeof(char *));
    for (size_t i = 0; i < plan->count; i++) {
        const struct contestant *c = &plan->contestants[i];
        if (c->command.through_shell)
            return error_set(err, -EINVAL,
                             "--link replaces the program that a command starts, but a shell runs "
                             "'%s'; write it without one, as a program and its arguments",
                             c->command.text);
        programs[i] = c->command.program ? c->command.program : c->command.argv[0];
        commands[i] = o->links.items[c->source_index];
    }
    const struct relink_plan links = {.programs = programs,
                                      .commands = commands,
                                      .program_count = plan->count,
                                      .layout_count = o->layouts,
                                      .seed = spec->seed};
    process_signals_catch();
    int r = relink(l, &links, err);
    process_signals_restore();
    spec->layout_programs = l->paths;
    return r;
}

/* The values of one column: those of moving rounds, or of layouts that were linked one for each. */
static void fold_column(const struct dataset *d, size_t metric, size_t cell,
                        const struct rounds *rounds, size_t linked, struct dataset_value *ret,
                        size_t *ret_count)
{
    struct dataset_column column = dataset_column(d, metric, cell);
    CLEANUP(memory_freep) double *own = memory_zalloc(2 * column.count + 1, sizeof(*own));
    struct dataset_value v = {.metric = (uint32_t)metric,
                              .cell = (uint32_t)cell,
                              .is_bound = dataset_is_bound(d, metric, cell)};
    for (size_t i = 0; i < column.count && !linked; i++)
        if (column.rounds[i] >= rounds->count || !rounds->items[column.rounds[i]].is_still) {
            v.value = column.values[i];
            v.round = column.rounds[i];
            ret[(*ret_count)++] = v;
        }
    for (size_t layout = 0; layout < linked; layout++) {
        size_t count = 0;
        for (size_t i = 0; i < column.count; i++)
            if (column.rounds[i] < rounds->count &&
                rounds->items[column.rounds[i]].layout == layout)
                own[count++] = column.values[i];
        v.value = stats_median(own, count, own + column.count);
        v.round = (uint32_t)layout;
        if (count)
            ret[(*ret_count)++] = v;
    }
}

void ab_layouts_fold(struct dataset *d, const struct rounds *rounds, const struct rounds_spec *spec)
{
    size_t linked = spec->layout_programs ? spec->layout_count : 0;
    size_t columns = d->metric_count * d->cell_count, all = columns ? d->starts[columns] : 0;
    CLEANUP(memory_freep) struct dataset_value *values = memory_zalloc(all + 1, sizeof(*values));
    size_t count = 0;
    for (size_t metric = 0; metric < d->metric_count; metric++)
        for (size_t cell = 0; cell < d->cell_count; cell++)
            fold_column(d, metric, cell, rounds, linked, values, &count);
    dataset_deal(d, values, count);
}

/* The logarithms of new to base in still rounds, or in the others; returns how many. */
static size_t take_ratios(const struct dataset *d, size_t metric, size_t base, size_t cell,
                          const struct rounds *rounds, bool still, double *ret)
{
    struct dataset_column a = dataset_column(d, metric, base), b = dataset_column(d, metric, cell);
    size_t count = 0;
    for (size_t i = 0, k = 0; i < a.count && k < b.count;) {
        if (a.rounds[i] < b.rounds[k])
            i++;
        else if (b.rounds[k] < a.rounds[i])
            k++;
        else {
            if (rounds->items[a.rounds[i]].is_still == still)
                ret[count++] = log(b.values[k] / a.values[i]);
            i++, k++;
        }
    }
    return count;
}

/* Of the rounds of one layout, and of every other of them (half 0 or 1; -1: all). */
static double layout_ratio(const struct dataset *d, size_t metric, size_t base, size_t cell,
                           const struct rounds *rounds, size_t layout, size_t layouts, int half)
{
    struct dataset_column a = dataset_column(d, metric, base), b = dataset_column(d, metric, cell);
    CLEANUP(memory_freep) double *own = memory_zalloc(2 * rounds->count + 1, sizeof(*own));
    double medians[2];
    const struct dataset_column columns[2] = {a, b};
    for (size_t side = 0; side < 2; side++) {
        size_t count = 0;
        for (size_t i = 0; i < columns[side].count; i++) {
            uint32_t round = columns[side].rounds[i];
            if (rounds->items[round].layout == layout &&
                (half < 0 || round / layouts % 2 == (unsigned)half))
                own[count++] = columns[side].values[i];
        }
        medians[side] = stats_median(own, count, own + rounds->count);
    }
    return log(medians[1] / medians[0]);
}

static bool find_spread(const struct dataset *d, size_t metric, size_t base, size_t cell,
                        const struct rounds *rounds, const struct rounds_spec *spec,
                        struct layout_spread *ret)
{
    size_t room = rounds->count + spec->layout_count;
    CLEANUP(memory_freep) double *ratios = memory_zalloc(2 * room + 1, sizeof(*ratios));
    double *others = ratios + room;
    if (!spec->layout_programs) {
        size_t count = take_ratios(d, metric, base, cell, rounds, false, ratios);
        size_t still = take_ratios(d, metric, base, cell, rounds, true, others);
        return layout_spread_still(ratios, count, others, rounds->cannot_be_still ? 0 : still, ret);
    }
    for (size_t k = 0; k < spec->layout_count; k++) {
        size_t n = spec->layout_count;
        ratios[k] = layout_ratio(d, metric, base, cell, rounds, k, n, -1);
        others[k] = layout_ratio(d, metric, base, cell, rounds, k, n, 0) -
                    layout_ratio(d, metric, base, cell, rounds, k, n, 1);
    }
    return layout_spread(ratios, others, spec->layout_count, ret);
}

struct layout_spread *ab_layouts_spread(const struct dataset *all, const struct outcome *outcome,
                                        const struct rounds *rounds, const struct rounds_spec *spec)
{
    struct layout_spread *spreads = memory_zalloc(all->cell_count + 1, sizeof(*spreads));
    const char *name = outcome->data->metrics[outcome->headline].name;
    size_t metric = dataset_metric(all, name);
    for (size_t i = 0; i < all->cell_count; i++)
        if (metric != DATASET_NONE && outcome_cell(outcome, outcome->headline, i)->judged &&
            !find_spread(all, metric, outcome_reference(outcome, i), i, rounds, spec, &spreads[i]))
            spreads[i].count = 0;
    return spreads;
}

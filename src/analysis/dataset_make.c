/* SPDX-License-Identifier: MIT */
/* Filling a table of values: see dataset.h. */
#include "analysis/dataset.h"
#include "base/memory.h"
#include "base/strings.h"
#include "numbers/sort.h"
#include "stats/dependence.h"

#include <math.h>

void dataset_start(struct dataset *d, const char *name)
{
    *d = (struct dataset){0};
    struct store_experiment *e = &d->experiment;
    char **texts[] = {&e->uuid,     &e->question, &e->state,     &e->git_commit, &e->selection,
                      &e->baseline, &e->headline, &e->spec_path, &e->spec_hash};
    e->name = memory_strdup(name);
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        *texts[i] = memory_strdup("");
}

void dataset_add_factor(struct dataset *d, const char *name)
{
    d->factors = memory_resize(d->factors, d->factor_count + 1, sizeof(*d->factors));
    d->factors[d->factor_count++] = memory_strdup(name);
}

size_t dataset_add_cell(struct dataset *d, const char *label, const char *command,
                        const char *const *levels)
{
    struct dataset_cell *c = &ARRAY_PUSH(d->cells, d->cell_count, d->cell_capacity);
    *c = (struct dataset_cell){.id = (int64_t)d->cell_count,
                               .label = memory_strdup(label),
                               .command = memory_strdup(command),
                               .build_id = memory_strdup(""),
                               .levels = memory_zalloc(d->factor_count + 1, sizeof(char *)),
                               .baseline = DATASET_NONE};
    for (size_t f = 0; f < d->factor_count; f++)
        c->levels[f] = memory_strdup(levels[f]);
    return d->cell_count - 1;
}

size_t dataset_add_metric(struct dataset *d, const char *name, const char *unit, const char *kind,
                          struct metric_facts facts)
{
    for (size_t m = 0; m < d->metric_count; m++)
        if (str_eq(d->metrics[m].name, name) && str_eq(d->metrics[m].unit, unit))
            return m;
    ARRAY_PUSH(d->metrics, d->metric_count, d->metric_capacity) =
        (struct store_metric){.id = (int64_t)d->metric_count + 1,
                              .name = memory_strdup(name),
                              .unit = memory_strdup(unit),
                              .kind = memory_strdup(kind),
                              .facts = facts};
    return d->metric_count - 1;
}

void dataset_put(struct dataset *d, size_t metric, size_t cell, uint32_t round, double value)
{
    if (isfinite(value))
        ARRAY_PUSH(d->loose, d->loose_count, d->loose_capacity) =
            (struct dataset_value){.value = value,
                                   .metric = (uint32_t)metric,
                                   .cell = (uint32_t)cell,
                                   .round = round,
                                   .node = DATASET_NO_NODE};
}

void dataset_settle(struct dataset *d)
{
    bool has_columns = d->settled_columns == d->metric_count * d->cell_count || !d->loose_count;
    if (d->starts && d->settled_count == d->loose_count && has_columns)
        return;
    dataset_deal(d, d->loose, d->loose_count);
    d->settled_count = d->loose_count;
}

/* Within a column the rounds ascend but for runs that were repeated: nearly sorted. */
static void order_column(double *values, uint32_t *rounds, uint32_t *nodes, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        double value = values[i];
        uint32_t round = rounds[i], node = nodes ? nodes[i] : 0;
        size_t k = i;
        for (; k > 0 && rounds[k - 1] > round; k--) {
            values[k] = values[k - 1];
            rounds[k] = rounds[k - 1];
            if (nodes)
                nodes[k] = nodes[k - 1];
        }
        values[k] = value;
        rounds[k] = round;
        if (nodes)
            nodes[k] = node;
    }
}

void dataset_mark_bound(struct dataset *d, size_t column)
{
    if (!d->bounds)
        d->bounds = memory_zalloc(d->metric_count * d->cell_count + 1, sizeof(*d->bounds));
    d->bounds[column] = true;
}

static void make_room(struct dataset *d, size_t columns, size_t count)
{
    free(d->starts);
    free(d->values);
    free(d->rounds);
    free(d->value_nodes);
    free(d->bounds);
    d->starts = memory_zalloc(columns + 2, sizeof(*d->starts));
    d->values = memory_zalloc(count + 1, sizeof(*d->values));
    d->rounds = memory_zalloc(count + 1, sizeof(*d->rounds));
    d->value_nodes = d->node_count ? memory_zalloc(count + 1, sizeof(*d->value_nodes)) : NULL;
    d->bounds = NULL;
}

/* By counting: a million values take some milliseconds. */
void dataset_deal(struct dataset *d, const struct dataset_value *values, size_t count)
{
    size_t columns = d->metric_count * d->cell_count;
    make_room(d, columns, count);
    d->settled_columns = columns;
    for (size_t i = 0; i < count; i++)
        d->starts[values[i].metric * d->cell_count + values[i].cell + 2]++;
    for (size_t c = 2; c < columns + 2; c++)
        d->starts[c] += d->starts[c - 1];
    for (size_t i = 0; i < count; i++) {
        const struct dataset_value *v = &values[i];
        size_t column = v->metric * d->cell_count + v->cell;
        size_t place = d->starts[column + 1]++;
        d->values[place] = v->value;
        d->rounds[place] = v->round;
        if (d->value_nodes)
            d->value_nodes[place] = v->node;
        if (v->is_bound)
            dataset_mark_bound(d, column);
    }
    for (size_t c = 0; c < columns; c++)
        order_column(d->values + d->starts[c], d->rounds + d->starts[c],
                     d->value_nodes ? d->value_nodes + d->starts[c] : NULL,
                     d->starts[c + 1] - d->starts[c]);
}

bool dataset_is_bound(const struct dataset *d, size_t metric, size_t cell)
{
    return d->bounds && d->bounds[metric * d->cell_count + cell];
}

bool dataset_figures(const struct dataset *d, size_t metric, size_t cell,
                     struct summary *ret_summary, struct median_interval *ret_median)
{
    struct dataset_column column = dataset_column(d, metric, cell);
    if (!column.count || stats_summarise(column.values, column.count, ret_summary, NULL) < 0)
        return false;
    CLEANUP(memory_freep) double *sorted = memory_zalloc(column.count, sizeof(double));
    memcpy(sorted, column.values, column.count * sizeof(double));
    sort_doubles(sorted, column.count);
    median_interval(sorted, column.count, 0.95, ret_median);
    if (d->experiment.adaptive) {
        struct median_interval *m = ret_median;
        double widening = dependence_running(column.values, column.count);
        m->low = m->median - widening * (m->median - m->low);
        m->high = m->median + widening * (m->high - m->median);
    }
    return true;
}

/* ---- baselines ---- */

/* The factor that the text begins with, "NAME=…", from `from` on. */
static size_t named_factor(const struct dataset *d, const char *text, size_t from)
{
    for (size_t f = from; f < d->factor_count; f++)
        if (str_has_prefix(text, d->factors[f]) && text[strlen(d->factors[f])] == '=')
            return f;
    return DATASET_NONE;
}

/* Reads "factor=value factor=value …" into a level for each factor that it names.  Values may hold
 * blanks, so each is one of the levels that there are, and the rest must fit, too. */
static bool read_baseline(const struct dataset *d, const char *text, const char **levels)
{
    if (!*text)
        return true;
    for (size_t f = named_factor(d, text, 0); f != DATASET_NONE; f = named_factor(d, text, f + 1)) {
        const char *value = text + strlen(d->factors[f]) + 1;
        for (size_t c = 0; c < d->cell_count && !levels[f]; c++) {
            const char *level = d->cells[c].levels[f];
            size_t length = strlen(level);
            if (strncmp(value, level, length) != 0 || (value[length] && value[length] != ' '))
                continue;
            levels[f] = level;
            if (read_baseline(d, value + length + (value[length] == ' '), levels))
                return true;
            levels[f] = NULL;
        }
    }
    return false;
}

struct baseline_order {
    const struct dataset *d;
    const char **levels; /* NULL for factors that the baseline does not name */
};

/* Cells that share a baseline stand together. */
static int compare_cells(const void *a, const void *b, void *context)
{
    const struct baseline_order *o = context;
    const struct dataset_cell *x = &o->d->cells[*(const size_t *)a];
    const struct dataset_cell *y = &o->d->cells[*(const size_t *)b];
    int order = 0;
    for (size_t f = 0; f < o->d->factor_count && order == 0; f++)
        if (!o->levels[f])
            order = strcmp(x->levels[f], y->levels[f]);
    return order;
}

static bool is_baseline(const struct dataset *d, size_t cell, const char *const *levels)
{
    for (size_t f = 0; f < d->factor_count; f++)
        if (levels[f] && !str_eq(levels[f], d->cells[cell].levels[f]))
            return false;
    return true;
}

void dataset_find_baselines(struct dataset *d)
{
    CLEANUP(memory_freep) const char **levels = memory_zalloc(d->factor_count + 1, sizeof(*levels));
    CLEANUP(memory_freep) size_t *order = memory_zalloc(d->cell_count + 1, sizeof(*order));
    struct baseline_order context = {.d = d, .levels = levels};
    for (size_t c = 0; c < d->cell_count; c++) {
        d->cells[c].baseline = DATASET_NONE;
        order[c] = c;
    }
    if (!*d->experiment.baseline || !read_baseline(d, d->experiment.baseline, levels))
        return;
    qsort_r(order, d->cell_count, sizeof(*order), compare_cells, &context);
    for (size_t first = 0, end; first < d->cell_count; first = end) {
        size_t base = DATASET_NONE;
        for (end = first;
             end < d->cell_count && compare_cells(&order[first], &order[end], &context) == 0; end++)
            if (base == DATASET_NONE && is_baseline(d, order[end], levels))
                base = order[end];
        for (size_t i = first; i < end; i++)
            d->cells[order[i]].baseline = order[i] == base ? DATASET_NONE : base;
    }
}

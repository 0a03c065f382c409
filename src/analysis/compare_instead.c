/* SPDX-License-Identifier: MIT */
/* When the metric that was asked for cannot tell, but another can: see compare.h. */
#include "analysis/compare.h"
#include "base/memory.h"

/* In the order in which they are believed: wall time on a busy machine is noisier than these. */
static const char *const costs[] = {
    "cpu", "task-clock", "instructions", "instructions:u", "sim:instructions", "user"};

static const struct compare_row *row_that_tells(const struct compare *c, size_t metric, size_t cell)
{
    for (size_t i = 0; i < ARRAY_COUNT(costs); i++) {
        size_t cost = dataset_metric(c->new, costs[i]);
        const struct compare_row *row =
            cost == DATASET_NONE || cost == metric ? NULL : compare_find(c, cost, cell);
        if (row && row->judged.changed && verdict_is_difference(&row->judged.verdict))
            return row;
    }
    return NULL;
}

/* " sort n=64:" */
static void put_thing(struct strbuf *out, const struct dataset *d, const struct dataset_cell *cell)
{
    strbuf_printf(out, " %s", cell->levels[0]);
    for (size_t f = 1; f + 1 < d->factor_count; f++)
        if (*cell->levels[f])
            strbuf_printf(out, " %s=%s", d->factors[f], cell->levels[f]);
    strbuf_putc(out, ':');
}

void compare_put_instead(struct strbuf *out, const struct compare *c, size_t metric,
                         const char *things)
{
    for (size_t cell = 0; metric != DATASET_NONE && cell < c->new->cell_count; cell++) {
        const struct compare_row *row = compare_find(c, metric, cell);
        if (!row || row->judged.verdict.kind != VERDICT_CANNOT_TELL)
            continue;
        const struct compare_row *other = row_that_tells(c, metric, cell);
        if (!other)
            continue;
        const struct dataset_cell *base_cell =
            &row->judged.sides.base->cells[row->judged.sides.base_cell];
        const struct dataset_cell *new_cell = &c->new->cells[cell];
        size_t last = c->new->factor_count - 1; /* of things: the version */
        const char *base = things ? base_cell->levels[last] : base_cell->label;
        const char *new = things ? new_cell->levels[last] : new_cell->label;
        if (things)
            put_thing(out, c->new, new_cell);
        strbuf_printf(out, " %s cannot tell ", row->metric->name);
        strbuf_put_safe(out, new, strlen(new), 60);
        strbuf_puts(out, " from ");
        strbuf_put_safe(out, base, strlen(base), 60);
        strbuf_printf(out, ", but %s can: %s\n", other->metric->name, other->judged.verdict.text);
    }
}

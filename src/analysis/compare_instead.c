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
        const char *base = things ? base_cell->levels[1] : base_cell->label;
        const char *new = things ? c->new->cells[cell].levels[1] : c->new->cells[cell].label;
        if (things)
            strbuf_printf(out, " %s:", c->new->cells[cell].levels[0]);
        strbuf_printf(out, " %s cannot tell ", row->metric->name);
        strbuf_put_safe(out, new, strlen(new), 60);
        strbuf_puts(out, " from ");
        strbuf_put_safe(out, base, strlen(base), 60);
        strbuf_printf(out, ", but %s can: %s\n", other->metric->name, other->judged.verdict.text);
    }
}

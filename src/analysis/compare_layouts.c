/* SPDX-License-Identifier: MIT */
/*
 * Whether a result holds in every memory layout.  Where each round has a layout of its own, a pair
 * of values of one round compares the two sides in that layout; a difference whose sign is not
 * the same everywhere belongs to the layout as much as to what is compared.
 */
#include "analysis/compare.h"
#include "base/memory.h"

/* Counts that differ by less are equal: short runs repeat no better. */
#define SAME_SHARE 0.005

struct signs {
    size_t less, more, count;
};

static struct signs count_signs(const struct judge_sides *s)
{
    struct dataset_column base = dataset_column(s->base, s->base_metric, s->base_cell);
    struct dataset_column new = dataset_column(s->new, s->new_metric, s->new_cell);
    size_t most = base.count < new.count ? base.count : new.count;
    CLEANUP(memory_freep) double *first = memory_zalloc(most + 1, sizeof(*first));
    CLEANUP(memory_freep) double *second = memory_zalloc(most + 1, sizeof(*second));
    struct signs signs = {.count = judge_pair_rounds(&base, &new, first, second)};
    for (size_t i = 0; i < signs.count; i++) {
        signs.less += second[i] < first[i] * (1 - SAME_SHARE);
        signs.more += second[i] > first[i] * (1 + SAME_SHARE);
    }
    return signs;
}

static void put_signs(struct strbuf *out, const struct signs *n)
{
    if (n->less && n->more)
        strbuf_printf(out, "depends on the layout: less in %zu of %zu, more in %zu", n->less,
                      n->count, n->more);
    else if (n->less == n->count || n->more == n->count)
        strbuf_printf(out, "%s in all %zu memory layouts", n->less ? "less" : "more", n->count);
    else if (n->less || n->more)
        strbuf_printf(out, "depends on the layout: %s in %zu of %zu, the same in the others",
                      n->less ? "less" : "more", n->less + n->more, n->count);
    else
        strbuf_printf(out, "the same in all %zu memory layouts", n->count);
}

void compare_put_layouts(struct strbuf *out, const struct compare *c)
{
    if (!c->base->has_layouts || !c->new->has_layouts)
        return;
    for (size_t i = 0; i < c->row_count; i++) {
        const struct compare_row *row = &c->rows[i];
        struct signs signs = {0};
        if (row->judged.headline && row->judged.is_there)
            signs = count_signs(&row->judged.sides);
        if (signs.count < 2)
            continue;
        strbuf_printf(out, "%s%s%s: ", row->metric->name, c->pairs[row->pair].label[0] ? ", " : "",
                      c->pairs[row->pair].label);
        put_signs(out, &signs);
        strbuf_putc(out, '\n');
    }
}

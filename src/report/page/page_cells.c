/* SPDX-License-Identifier: MIT */
/* Cells of a matrix seen along its factors: what plots and rows ask. */
#include "base/memory.h"
#include "report/page/page.h"

#include <math.h>
#include <string.h>

void page_axis_init(struct page_axis *axis, const struct dataset *d, size_t factor)
{
    *axis = (struct page_axis){.factor = factor};
    axis->levels = memory_zalloc(d->cell_count + 1, sizeof(*axis->levels));
    axis->numbers = memory_zalloc(d->cell_count + 1, sizeof(*axis->numbers));
    bool numeric = true;
    for (size_t c = 0; c < d->cell_count; c++) {
        size_t k = 0;
        while (k < axis->count && !str_eq(axis->levels[k], d->cells[c].levels[factor]))
            k++;
        if (k < axis->count)
            continue;
        axis->levels[k] = d->cells[c].levels[factor];
        numeric &= dataset_level_number(axis->levels[k], &axis->numbers[k]);
        axis->count++;
    }
    if (!numeric) {
        free(axis->numbers);
        axis->numbers = NULL;
    }
    for (size_t i = 1; numeric && i < axis->count; i++)
        for (size_t k = i; k > 0 && axis->numbers[k - 1] > axis->numbers[k]; k--) {
            double number = axis->numbers[k];
            const char *level = axis->levels[k];
            axis->numbers[k] = axis->numbers[k - 1];
            axis->levels[k] = axis->levels[k - 1];
            axis->numbers[k - 1] = number;
            axis->levels[k - 1] = level;
        }
}

void page_axis_done(struct page_axis *axis)
{
    free(axis->levels);
    free(axis->numbers);
}

static bool varies(const struct dataset *d, size_t factor)
{
    for (size_t c = 1; c < d->cell_count; c++)
        if (!str_eq(d->cells[c].levels[factor], d->cells[0].levels[factor]))
            return true;
    return false;
}

char *page_where(const struct dataset *d, size_t cell, size_t factor, size_t other)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    for (size_t f = 0; f < d->factor_count; f++)
        if (f != factor && f != other && varies(d, f))
            strbuf_printf(&text, "%s%s=%s", text.length ? " " : "", d->factors[f],
                          d->cells[cell].levels[f]);
    return memory_strdup(strbuf_text(&text));
}

bool page_is_first(const struct dataset *d, size_t cell, size_t factor, size_t other)
{
    for (size_t e = 0; e < cell; e++) {
        bool same = true;
        for (size_t f = 0; same && f < d->factor_count; f++)
            same = f == factor || f == other ||
                   str_eq(d->cells[e].levels[f], d->cells[cell].levels[f]);
        if (same)
            return false;
    }
    return true;
}

/* Where a cell of the view came from. */
static void find_side(const struct page *page, size_t metric, size_t cell,
                      const struct dataset **ret_set, size_t *ret_metric, size_t *ret_cell)
{
    size_t half = page->is_joint ? page->data.sets[0].cell_count : 0;
    bool second = page->is_joint && cell >= half;
    *ret_set = page->is_joint ? &page->data.sets[second] : page->view;
    *ret_metric =
        page->is_joint ? dataset_metric(*ret_set, page->view->metrics[metric].name) : metric;
    *ret_cell = second ? cell - half : cell;
}

bool page_compare(const struct page *page, size_t metric, size_t base, size_t new,
                  struct comparison *ret_comparison)
{
    for (size_t i = 0; i < page->row_count; i++) {
        const struct page_row *row = &page->rows[i];
        if (row->compared && row->metric == metric && row->cell == new && row->base_cell == base) {
            *ret_comparison = row->comparison;
            return true;
        }
    }
    struct judge_row row = {0};
    struct judge_sides *s = &row.sides;
    find_side(page, metric, base, &s->base, &s->base_metric, &s->base_cell);
    find_side(page, metric, new, &s->new, &s->new_metric, &s->new_cell);
    if (s->base_metric == DATASET_NONE || s->new_metric == DATASET_NONE || !judge_row(&row))
        return false;
    *ret_comparison = row.comparison;
    return true;
}

/* SPDX-License-Identifier: MIT */
/* Cells of a matrix seen along its factors: what plots and rows ask. */
#include "base/memory.h"
#include "report/page/page.h"
#include "stats/sort.h"

#include <math.h>
#include <string.h>

/* "64", "1.5", "64k", "100%". */
static bool level_number(const char *text, double *ret_number)
{
    uint64_t bytes;
    if (parse_double(text, ret_number, NULL) == 0)
        return isfinite(*ret_number);
    if (parse_size_bytes(text, &bytes, NULL) < 0)
        return false;
    *ret_number = (double)bytes;
    return true;
}

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
        numeric &= level_number(axis->levels[k], &axis->numbers[k]);
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

size_t page_cell_with(const struct dataset *d, size_t like, size_t factor, const char *level)
{
    for (size_t c = 0; c < d->cell_count; c++) {
        bool same = str_eq(d->cells[c].levels[factor], level);
        for (size_t f = 0; same && f < d->factor_count; f++)
            same = f == factor || str_eq(d->cells[c].levels[f], d->cells[like].levels[f]);
        if (same)
            return c;
    }
    return DATASET_NONE;
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

bool page_compare(const struct page *page, size_t metric, size_t base, size_t new,
                  struct comparison *ret_comparison)
{
    const struct dataset *d = page->view;
    struct dataset_column a = dataset_column(d, metric, base), b = dataset_column(d, metric, new);
    size_t half = page->is_joint ? page->data.sets[0].cell_count : 0;
    if (page->is_joint && (base < half) != (new < half))
        return a.count && b.count &&
               stats_compare_unpaired(a.values, a.count, b.values, b.count, 0.95, ret_comparison,
                                      NULL) == 0;
    CLEANUP(memory_freep) double *first = memory_zalloc(a.count + 1, sizeof(double));
    CLEANUP(memory_freep) double *second = memory_zalloc(a.count + 1, sizeof(double));
    size_t count = dataset_pair(&a, &b, first, second);
    return count > 0 && stats_compare_paired(first, second, count, 0.95, ret_comparison, NULL) == 0;
}

bool page_median(const struct dataset *d, size_t metric, size_t cell,
                 struct median_interval *ret_interval)
{
    struct dataset_column column = dataset_column(d, metric, cell);
    if (!column.count || stats_check_finite(column.values, column.count, "value", NULL) < 0)
        return false;
    CLEANUP(memory_freep) double *sorted = memory_zalloc(column.count, sizeof(double));
    memcpy(sorted, column.values, column.count * sizeof(double));
    sort_doubles(sorted, column.count);
    median_interval(sorted, column.count, 0.95, ret_interval);
    return true;
}

bool page_counts_workers(const char *factor)
{
    static const char *const words[] = {"thread", "core",   "cpu", "task",      "worker",
                                        "proc",   "client", "job", "connection"};
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (strcasestr(factor, words[i]))
            return true;
    return false;
}

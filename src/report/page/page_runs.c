/* SPDX-License-Identifier: MIT */
/* Plots of single runs: strips, distributions, percentiles; and of pairs of cells. */
#include "base/memory.h"
#include "numbers/sort.h"
#include "report/page/page.h"
#include "report/text/experiment.h"
#include "stats/summary.h"

#include <math.h>
#include <stdio.h>

enum { CELLS_MAX = 64, LINES_MAX = 8, SHOWN_MAX = 2000 };

/* By its variant each of the first cells has a look. */
static void find_looks(const struct page *page, size_t count, size_t *ret_looks)
{
    struct page_axis axis;
    memset(ret_looks, 0, count * sizeof(*ret_looks));
    if (page->variant == DATASET_NONE)
        return;
    page_axis_init(&axis, page->view, page->variant);
    for (size_t c = 0; c < count; c++)
        while (ret_looks[c] < axis.count &&
               !str_eq(axis.levels[ret_looks[c]], page->view->cells[c].levels[page->variant]))
            ret_looks[c]++;
    page_axis_done(&axis);
}

enum { GROUPS_MAX = 10 };

/* Cells side by side, and the factors that change among them: what they have in common names none
 * of them. */
struct strip_cells {
    const struct dataset *d;
    size_t *cells, count;
    size_t *factors, factor_count;
};

/* Takes the cells, as many as there are. */
static void strip_cells_init(struct strip_cells *s, const struct dataset *d, size_t *cells,
                             size_t count)
{
    *s = (struct strip_cells){.d = d, .cells = cells, .count = count};
    s->factors = memory_zalloc(d->factor_count + 1, sizeof(*s->factors));
    for (size_t f = 0; f < d->factor_count; f++) {
        size_t i = 1;
        while (i < count && str_eq(d->cells[cells[i]].levels[f], d->cells[cells[0]].levels[f]))
            i++;
        if (i < count)
            s->factors[s->factor_count++] = f;
    }
}

static void strip_cells_done(struct strip_cells *s)
{
    free(s->cells);
    free(s->factors);
}

/* Whether one of the first factors changes from the cell before. */
static bool begins(const struct strip_cells *s, size_t i, size_t factor_count)
{
    for (size_t f = 0; i > 0 && f < factor_count; f++)
        if (!str_eq(s->d->cells[s->cells[i - 1]].levels[s->factors[f]],
                    s->d->cells[s->cells[i]].levels[s->factors[f]]))
            return true;
    return i == 0;
}

/* The levels of the factors [first, end) that begin at the i-th cell; "" where none does. */
static const char *levels_from(struct plot *p, const struct strip_cells *s, size_t i, size_t first,
                               size_t end)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    for (size_t f = first; f < end; f++)
        if (begins(s, i, f + 1))
            strbuf_printf(&text, "%s%s", text.length ? " " : "",
                          s->d->cells[s->cells[i]].levels[s->factors[f]]);
    return plot_text(p, "%s", strbuf_text(&text));
}

/*
 * What stands below cells side by side: where a group begins, the levels that change there.  Groups
 * are by as many factors, from the first on, as have room.  Where those are several, the last has a
 * row of its own, above the others.
 */
static void name_cells(struct plot *p, const struct strip_cells *s)
{
    const char **words = arena_alloc(&p->arena, (s->count + 1) * sizeof(*words));
    const char **outer = arena_alloc(&p->arena, (s->count + 1) * sizeof(*outer));
    size_t depth = s->factor_count;
    for (; depth > 1; depth--) {
        size_t groups = 0;
        for (size_t i = 0; i < s->count; i++)
            groups += begins(s, i, depth);
        if (groups <= GROUPS_MAX)
            break;
    }
    bool two_rows = depth > 1;
    for (size_t i = 0; i < s->count; i++) {
        words[i] = depth ? levels_from(p, s, i, two_rows ? depth - 1 : 0, depth)
                         : s->d->cells[s->cells[i]].label;
        outer[i] = levels_from(p, s, i, 0, two_rows ? depth - 1 : 0);
    }
    p->x.words = words;
    p->x.outer = two_rows ? outer : NULL;
    p->x.word_count = s->count;
}

/* "cell: variant, size" */
static const char *cell_axis(struct plot *p, const struct strip_cells *s)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    for (size_t f = 0; f < s->factor_count; f++)
        strbuf_printf(&text, "%s%s", f ? ", " : ": ", s->d->factors[s->factors[f]]);
    return plot_text(p, "cell%s", strbuf_text(&text));
}

/* Raw runs, moved a little sideways so that equal ones do not hide each other. */
static void plot_strip(struct page *page, size_t metric)
{
    const struct dataset *d = page->view;
    const struct store_metric *m = &d->metrics[metric];
    struct plot *p = page_add_plot(page, "strip", "every run: %s", m->name);
    size_t shown = d->cell_count < CELLS_MAX ? d->cell_count : CELLS_MAX;
    size_t *cells = memory_zalloc(shown + 1, sizeof(*cells));
    CLEANUP(strip_cells_done) struct strip_cells strip;
    bool wide; /* values over nearly a decade: a logarithmic axis */
    double least = INFINITY, most = 0;
    for (size_t c = 0; c < shown; c++)
        cells[c] = c;
    size_t looks[CELLS_MAX];
    find_looks(page, shown, looks);
    strip_cells_init(&strip, d, cells, shown);
    for (size_t look = 0; look < LINES_MAX; look++) {
        plot_add_series(p, NULL, PLOT_DOTS, look);
        plot_add_series(p, NULL, PLOT_MARKS | PLOT_BARS, look);
    }
    for (size_t c = 0; c < shown; c++) {
        struct dataset_column column = dataset_column(d, metric, c);
        size_t look = looks[c] % LINES_MAX;
        size_t step = column.count * shown > SHOWN_MAX ? column.count * shown / SHOWN_MAX + 1 : 1;
        for (size_t i = 0; i < column.count; i += step) {
            double shift = 0.22 * ((double)(i * 7 % 5) - 2) / 2;
            plot_add_point(&p->series[2 * look], (double)c + shift, column.values[i], NAN, NAN);
            least = fmin(least, column.values[i]);
            most = fmax(most, column.values[i]);
        }
        struct summary summary;
        struct median_interval v;
        if (dataset_figures(d, metric, c, &summary, &v))
            plot_add_point(&p->series[2 * look + 1], (double)c, v.median, v.low, v.high);
    }
    wide = least > 0 && most / least > 8;
    p->x = (struct plot_axis){.label = cell_axis(p, &strip), .unit = ""};
    name_cells(p, &strip);
    p->y = (struct plot_axis){
        .label = page_metric_label(p, m->name, m->unit), .unit = m->unit, .log = wide};
    p->description = plot_text(
        p, "Each dot is one run's %s; the mark is the cell's median with its 95 %% interval.",
        m->name);
    if (shown < d->cell_count)
        p->note = plot_text(p, "The first %zu of %zu cells are drawn.", shown, d->cell_count);
}

/* How many cells go into one picture: the rivals of the first context, or the first cells. */
static size_t choose_cells(const struct page *page, size_t metric, size_t *cells)
{
    const struct dataset *d = page->view;
    size_t count = 0, first = 0;
    while (first < d->cell_count && !dataset_column(d, metric, first).count)
        first++;
    for (size_t c = first; c < d->cell_count && count < LINES_MAX; c++) {
        bool same = dataset_column(d, metric, c).count > 0;
        for (size_t f = 0; same && page->variant != DATASET_NONE && f < d->factor_count; f++)
            same = f == page->variant || str_eq(d->cells[c].levels[f], d->cells[first].levels[f]);
        if (same)
            cells[count++] = c;
    }
    return count;
}

static void plot_ecdf(struct page *page, size_t metric)
{
    const struct dataset *d = page->view;
    const struct store_metric *m = &d->metrics[metric];
    size_t cells[LINES_MAX], count = choose_cells(page, metric, cells);
    if (!count)
        return;
    CLEANUP(memory_freep) char *where = page_where(d, cells[0], page->variant, page->variant);
    struct plot *p = page_add_plot(page, "ecdf", "distribution of the runs: %s%s%s", m->name,
                                   page->variant != DATASET_NONE && *where ? ", " : "",
                                   page->variant != DATASET_NONE ? where : "");
    for (size_t i = 0; i < count; i++) {
        struct dataset_column column = dataset_column(d, metric, cells[i]);
        CLEANUP(memory_freep) double *sorted = memory_zalloc(column.count + 1, sizeof(double));
        memcpy(sorted, column.values, column.count * sizeof(double));
        sort_doubles(sorted, column.count);
        struct plot_series *s =
            plot_add_series(p,
                            page->variant != DATASET_NONE ? d->cells[cells[i]].levels[page->variant]
                                                          : d->cells[cells[i]].label,
                            PLOT_STEPS, i);
        plot_add_point(s, sorted[0], 0, NAN, NAN);
        size_t step = column.count / 200 + 1;
        for (size_t k = 0; k < column.count; k += step)
            plot_add_point(s, sorted[k], (double)(k + 1) / (double)column.count, NAN, NAN);
        plot_add_point(s, sorted[column.count - 1], 1, NAN, NAN);
    }
    p->x = (struct plot_axis){.label = page_metric_label(p, m->name, m->unit), .unit = m->unit};
    p->y =
        (struct plot_axis){.label = "share of the runs at or below", .unit = "", .from_zero = true};
    p->description =
        plot_text(p, "For each value of %s, the share of the runs at or below it.", m->name);
}

void page_plot_runs(struct page *page, size_t metric)
{
    plot_strip(page, metric);
    plot_ecdf(page, metric);
}

/* "latency_ns_p99", "p99.9_latency", "lat.p50": the share, or NAN. */
static double percentile_of(const char *name, char *family, size_t size)
{
    for (const char *at = name; (at = strchr(at, 'p')); at++) {
        bool starts = at == name || strchr("_.-:/", at[-1]);
        size_t digits = strspn(at + 1, "0123456789");
        size_t length = digits;
        if (length && at[1 + length] == '.' && strspn(at + 2 + length, "0123456789"))
            length += 1 + strspn(at + 2 + length, "0123456789");
        if (!starts || !digits || (at[1 + length] && !strchr("_.-:/", at[1 + length])))
            continue;
        double value = strtod(at + 1, NULL);
        if (digits == length && digits > 2) /* p999 is 99.9 */
            value /= pow(10, (double)digits - 2);
        snprintf(family, size, "%.*s%s", (int)(at - name), name, at + 1 + length);
        for (size_t end = strlen(family); end && strchr("_.-:/", family[end - 1]);)
            family[--end] = '\0';
        return value > 0 && value < 100 ? value : NAN;
    }
    return NAN;
}

struct percentile {
    double share;
    size_t metric;
};

static void plot_family(struct page *page, const char *family, const struct percentile *items,
                        size_t count)
{
    const struct dataset *d = page->view;
    size_t cells[LINES_MAX], cell_count = choose_cells(page, items[0].metric, cells);
    struct plot *p = page_add_plot(page, "percentiles", "percentiles: %s", family);
    const char **words = arena_alloc(&p->arena, count * sizeof(*words));
    for (size_t k = 0; k < count; k++)
        words[k] = plot_text(p, "p%g", items[k].share);
    for (size_t i = 0; i < cell_count; i++) {
        struct plot_series *s =
            plot_add_series(p,
                            page->variant != DATASET_NONE ? d->cells[cells[i]].levels[page->variant]
                                                          : d->cells[cells[i]].label,
                            PLOT_LINE | PLOT_MARKS | PLOT_BARS, i);
        for (size_t k = 0; k < count; k++) {
            struct summary summary;
            struct median_interval v;
            if (dataset_figures(d, items[k].metric, cells[i], &summary, &v))
                plot_add_point(s, (double)k, v.median, v.low, v.high);
        }
    }
    p->x =
        (struct plot_axis){.label = "percentile", .unit = "", .words = words, .word_count = count};
    p->y = (struct plot_axis){
        .label = plot_text(p, "%s", family), .unit = d->metrics[items[0].metric].unit, .log = true};
    p->description = plot_text(
        p,
        "Medians of the percentiles that the program reported in each run, with 95 %% intervals.");
}

void page_plot_percentiles(struct page *page)
{
    const struct dataset *d = page->view;
    CLEANUP(memory_freep) bool *done = memory_zalloc(d->metric_count + 1, sizeof(bool));
    CLEANUP(memory_freep)
    struct percentile *items = memory_zalloc(d->metric_count + 1, sizeof(*items));
    for (size_t m = 0; m < d->metric_count; m++) {
        char family[128], other[128];
        double share = percentile_of(d->metrics[m].name, family, sizeof(family));
        if (done[m] || isnan(share))
            continue;
        size_t count = 0;
        for (size_t n = m; n < d->metric_count; n++) {
            share = percentile_of(d->metrics[n].name, other, sizeof(other));
            if (isnan(share) || !str_eq(family, other))
                continue;
            done[n] = true;
            size_t at = count++;
            for (; at > 0 && items[at - 1].share > share; at--)
                items[at] = items[at - 1];
            items[at] = (struct percentile){share, n};
        }
        if (count > 1)
            plot_family(page, family, items, count);
    }
}

/* Each pair of cells of a comparison: the ratio with its interval. */
void page_plot_pairs(struct page *page, size_t metric)
{
    const struct store_metric *m = &page->view->metrics[metric];
    size_t count = 0;
    for (size_t i = 0; i < page->row_count; i++)
        count +=
            page->rows[i].metric == metric && page->rows[i].comparison.scale == COMPARISON_RATIO;
    if (!count)
        return;
    struct plot *p = page_add_plot(page, "pairs", "new / base: %s", m->name);
    CLEANUP(strip_cells_done) struct strip_cells strip;
    size_t *cells = memory_zalloc(count + 1, sizeof(*cells));
    struct plot_series *sure = plot_add_series(p, "differs", PLOT_MARKS | PLOT_BARS, 1);
    size_t sure_at = p->series_count - 1;
    plot_add_series(p, "no difference, or cannot tell", PLOT_MARKS | PLOT_BARS, 7);
    size_t at = 0;
    for (size_t i = 0; i < page->row_count && at < count; i++) {
        const struct page_row *r = &page->rows[i];
        if (r->metric != metric || r->comparison.scale != COMPARISON_RATIO)
            continue;
        cells[at] = r->cell;
        sure = &p->series[r->changed ? sure_at : sure_at + 1];
        plot_add_point(sure, (double)at, r->comparison.estimate, r->comparison.low,
                       r->comparison.high);
        at++;
    }
    plot_add_mark(p, false, 1, NAN, NAN, "1: same");
    strip_cells_init(&strip, page->view, cells, at);
    p->x = (struct plot_axis){.label = cell_axis(p, &strip), .unit = ""};
    name_cells(p, &strip);
    p->y = (struct plot_axis){
        .label = plot_text(p, "%s, new / base", m->name), .unit = "", .log = true};
    p->description = "The ratio of the new median to the base's in each cell, with its interval.";
}

/* SPDX-License-Identifier: MIT */
/* Plots along a numeric factor: the metric, its ratio to the baseline with the crossover, how it
 * scales with workers, and what a unit of work costs. */
#include "base/clock.h"
#include "base/memory.h"
#include "fits/crossover.h"
#include "fits/scaling.h"
#include "report/page/page.h"
#include "report/text/experiment.h"
#include "stats/summary.h"

#include <math.h>
#include <stdio.h>

enum { CONTEXTS_MAX = 2, SMALL_MAX = 9, VARIANTS_MAX = 8, CROSSING_COLUMNS = 16 };

/* A size may be of anything, and "kilobytes" are not bytes: only the word itself says it. */
static const char *axis_unit(const char *factor)
{
    static const char word[] = "bytes", apart[] = "_-. ";
    for (const char *at = factor; (at = strcasestr(at, word)); at++) {
        bool starts = at == factor || strchr(apart, at[-1]);
        char next = at[strlen(word)];
        if (starts && (!next || strchr(apart, next)))
            return "bytes";
    }
    return "";
}

const char *page_metric_label(struct plot *p, const char *name, const char *unit)
{
    static const char *const times[] = {"ns", "us", "µs", "ms", "s"};
    for (size_t i = 0; i < ARRAY_COUNT(times); i++)
        if (str_eq(unit, times[i]))
            return plot_text(p, "%s (time)", name);
    return plot_text(p, *unit && !measured_scales(unit) ? "%s (%s)" : "%s", name, unit);
}

/* One curve of the cells along an axis, all else as in `like`. */
static void add_curve(struct plot *p, const struct dataset *d, size_t metric, size_t like,
                      const struct page_axis *axis, const char *name, size_t look)
{
    struct plot_series *s = plot_add_series(p, name, PLOT_LINE | PLOT_MARKS | PLOT_BARS, look);
    for (size_t k = 0; k < axis->count; k++) {
        size_t c = dataset_cell_with(d, like, axis->factor, axis->levels[k]);
        struct summary summary;
        struct median_interval m;
        if (c != DATASET_NONE && dataset_figures(d, metric, c, &summary, &m))
            plot_add_point(s, axis->numbers[k], m.median, m.low, m.high);
    }
}

struct sweep {
    struct page *page;
    size_t metric;
    struct page_axis axis, variants; /* variants.count 0 for none */
    size_t cell;                     /* the context's first */
    char *where;
    bool is_small; /* one of several side by side, which have one scale */
};

static const char *title_where(const struct sweep *s)
{
    return s->where;
}

static size_t variant_cell(const struct sweep *s, size_t k)
{
    return s->variants.count
               ? dataset_cell_with(s->page->view, s->cell, s->page->variant, s->variants.levels[k])
               : s->cell;
}

/* The variant's cell anywhere along the axis: the context's own level may be excluded. */
static size_t variant_anywhere(const struct sweep *s, size_t k)
{
    size_t found = variant_cell(s, k);
    for (size_t i = 0; found == DATASET_NONE && i < s->axis.count; i++) {
        size_t at = dataset_cell_with(s->page->view, s->cell, s->axis.factor, s->axis.levels[i]);
        if (at != DATASET_NONE)
            found = dataset_cell_with(s->page->view, at, s->page->variant, s->variants.levels[k]);
    }
    return found;
}

static void set_x(struct plot *p, const struct sweep *s)
{
    const char *factor = s->page->view->factors[s->axis.factor];
    p->x = (struct plot_axis){.label = plot_text(p, "%s", factor),
                              .unit = axis_unit(factor),
                              .log = true,
                              .at_values = true};
}

static struct plot *start_plot(const struct sweep *s, const char *kind, const char *what)
{
    const struct dataset *d = s->page->view;
    struct plot *p = page_add_plot(s->page, kind, "%s v %s%s%s", what, d->factors[s->axis.factor],
                                   *s->where ? ", " : "", title_where(s));
    set_x(p, s);
    if (s->is_small)
        p->group = plot_text(p, "%s v %s", what, d->factors[s->axis.factor]);
    return p;
}

static void plot_metric(const struct sweep *s)
{
    const struct dataset *d = s->page->view;
    const struct store_metric *m = &d->metrics[s->metric];
    struct plot *p = start_plot(s, "curve", m->name);
    p->y = (struct plot_axis){
        .label = page_metric_label(p, m->name, m->unit), .unit = m->unit, .log = true};
    size_t count = s->variants.count ? s->variants.count : 1;
    for (size_t k = 0; k < count && k < VARIANTS_MAX; k++) {
        size_t like = variant_anywhere(s, k);
        if (like != DATASET_NONE)
            add_curve(p, d, s->metric, like, &s->axis,
                      s->variants.count ? s->variants.levels[k] : NULL, k);
    }
    p->description = plot_text(
        p, "The median of %s at each %s, with 95 %% intervals; both axes are logarithmic.", m->name,
        d->factors[s->axis.factor]);
    if (count > VARIANTS_MAX)
        p->note = plot_text(p, "Only the first %d of %zu are drawn; the table has them all.",
                            VARIANTS_MAX, count);
}

/* Ratios of one variant to the baseline along the axis; fills points for the crossover. */
static size_t add_ratios(const struct sweep *s, struct plot *p, size_t base_level, size_t k,
                         struct crossover_point *points)
{
    const struct dataset *d = s->page->view;
    struct plot_series *series =
        plot_add_series(p, s->variants.levels[k], PLOT_LINE | PLOT_MARKS | PLOT_BAND, k);
    size_t count = 0;
    for (size_t i = 0; i < s->axis.count; i++) {
        size_t base = variant_anywhere(s, base_level), new = variant_anywhere(s, k);
        base = base == DATASET_NONE ? base
                                    : dataset_cell_with(d, base, s->axis.factor, s->axis.levels[i]);
        new = new == DATASET_NONE ? new
                                  : dataset_cell_with(d, new, s->axis.factor, s->axis.levels[i]);
        struct comparison c;
        if (base == DATASET_NONE || new == DATASET_NONE ||
            !page_compare(s->page, s->metric, base, new, &c) || c.scale != COMPARISON_RATIO)
            continue;
        bool sure = comparison_shows_interval(&c);
        plot_add_point(series, s->axis.numbers[i], c.estimate, sure ? c.low : NAN,
                       sure ? c.high : NAN);
        if (isfinite(c.low) && isfinite(c.high) && s->axis.numbers[i] > 0)
            points[count++] = (struct crossover_point){s->axis.numbers[i], c};
    }
    return count;
}

static void mark_crossovers(struct plot *p, const char *name, const struct crossover_point *points,
                            size_t count)
{
    struct crossovers found = {0};
    if (count < 2 || crossovers_find(points, count, &found, NULL) < 0)
        return;
    for (size_t i = 0; found.state == CROSSOVER_FOUND && i < found.count; i++) {
        const struct crossover *x = &found.items[i];
        char label[160];
        CLEANUP(strbuf_done) struct strbuf word = {0};
        svg_put_word(&word, name, CROSSING_COLUMNS);
        snprintf(label, sizeof(label),
                 x->size < 100 ? "%s crosses at %.3g [%.3g, %.3g]"
                               : "%s crosses at %.0f [%.0f, %.0f]",
                 strbuf_text(&word), x->size, x->low, x->high);
        plot_add_mark(p, true, x->size, x->low, x->high, label);
    }
    crossovers_done(&found);
}

static void plot_ratio(const struct sweep *s)
{
    const struct dataset *d = s->page->view;
    size_t base_level = DATASET_NONE;
    for (size_t k = 0; k < s->variants.count; k++) {
        size_t c = variant_anywhere(s, k);
        if (c != DATASET_NONE && d->cells[c].baseline == DATASET_NONE)
            base_level = k;
    }
    if (!*d->experiment.baseline || base_level == DATASET_NONE)
        return;
    const struct store_metric *m = &d->metrics[s->metric];
    CLEANUP(memory_freep)
    char *what = memory_printf("ratio to %s: %s", s->variants.levels[base_level], m->name);
    struct plot *p = start_plot(s, "ratio", what);
    p->y = (struct plot_axis){
        .label = plot_text(p, "%s / %s's", m->name, s->variants.levels[base_level]),
        .unit = "",
        .log = true};
    CLEANUP(memory_freep)
    struct crossover_point *points = memory_zalloc(s->axis.count + 1, sizeof(*points));
    for (size_t k = 0; k < s->variants.count && k < VARIANTS_MAX; k++) {
        if (k == base_level)
            continue;
        size_t count = add_ratios(s, p, base_level, k, points);
        mark_crossovers(p, s->variants.levels[k], points, count);
    }
    plot_add_mark(p, false, 1, NAN, NAN, plot_text(p, "1: %s", s->variants.levels[base_level]));
    p->description =
        plot_text(p,
                  "The ratio to the baseline's %s at each %s. The bands are 95 %% intervals; where "
                  "one crosses 1, a grey stripe marks the interval of the crossover.",
                  m->name, d->factors[s->axis.factor]);
    p->note = !plot_has_points(p)                ? NULL /* the baseline has no such cells */
              : m->facts.better == METRIC_LOWER  ? "Below 1 is better."
              : m->facts.better == METRIC_HIGHER ? "Above 1 is better."
                                                 : NULL;
}

/* ---- workers ---- */

static void add_fit(struct plot *p, const struct sweep *s, size_t like, const char *name,
                    size_t look, struct strbuf *note)
{
    const struct dataset *d = s->page->view;
    double *threads = NULL, *values = NULL;
    size_t count = 0, capacity = 0, value_count = 0, value_capacity = 0;
    for (size_t k = 0; k < s->axis.count; k++) {
        size_t c = dataset_cell_with(d, like, s->axis.factor, s->axis.levels[k]);
        struct dataset_column column = {0};
        if (c != DATASET_NONE)
            column = dataset_column(d, s->metric, c);
        for (size_t i = 0; i < column.count; i++) {
            ARRAY_PUSH(threads, count, capacity) = s->axis.numbers[k];
            ARRAY_PUSH(values, value_count, value_capacity) = column.values[i];
        }
    }
    struct scaling fit;
    struct error err = {0};
    if (count && scaling_fit(threads, values, count, d->experiment.seed, &fit, &err) == 0) {
        char label[96];
        snprintf(label, sizeof(label), "%s: fitted law", name);
        struct plot_series *line = plot_add_series(p, label, PLOT_GUIDE, look);
        double low = s->axis.numbers[0], high = s->axis.numbers[s->axis.count - 1];
        for (int i = 0; i <= 40; i++) {
            double x = low * pow(high / low, i / 40.0);
            plot_add_point(line, x, scaling_throughput(&fit, x), NAN, NAN);
        }
        strbuf_printf(
            note, "%s%s: contention %.2g %% [%.2g, %.2g], coherence %.2g %% [%.2g, %.2g].",
            note->length ? " " : "", name, 100 * fit.sigma.value, 100 * fit.sigma.low,
            100 * fit.sigma.high, 100 * fit.kappa.value, 100 * fit.kappa.low, 100 * fit.kappa.high);
    } else if (!note->length) {
        strbuf_printf(note, "No law was fitted: %s.", count ? err.message : "there are no values");
    }
    free(threads);
    free(values);
}

static void plot_scaling(const struct sweep *s)
{
    const struct dataset *d = s->page->view;
    const struct store_metric *m = &d->metrics[s->metric];
    CLEANUP(memory_freep)
    char *what = memory_printf("scaling: %s", m->name);
    struct plot *p = start_plot(s, "scaling", what);
    p->y = (struct plot_axis){
        .label = plot_text(p, "%s", what + strlen("scaling: ")), .unit = m->unit, .log = true};
    CLEANUP(strbuf_done) struct strbuf note = {0};
    double best = 0;
    size_t count = s->variants.count ? s->variants.count : 1;
    for (size_t k = 0; k < count && k < VARIANTS_MAX; k++) {
        size_t like = variant_anywhere(s, k);
        if (like == DATASET_NONE)
            continue;
        const char *name = s->variants.count ? s->variants.levels[k] : m->name;
        struct plot_series *series =
            plot_add_series(p, name, PLOT_LINE | PLOT_MARKS | PLOT_BARS, k);
        for (size_t i = 0; i < s->axis.count; i++) {
            size_t c = dataset_cell_with(d, like, s->axis.factor, s->axis.levels[i]);
            struct summary summary;
            struct median_interval v;
            if (c == DATASET_NONE || !dataset_figures(d, s->metric, c, &summary, &v) ||
                v.median <= 0)
                continue;
            plot_add_point(series, s->axis.numbers[i], v.median, v.low, v.high);
        }
        if (series->count && series->points[0].x == s->axis.numbers[0])
            best = fmax(best, series->points[0].y);
        add_fit(p, s, like, name, k, &note);
    }
    if (best > 0) {
        struct plot_series *ideal = plot_add_series(
            p, s->is_small ? "ideal" : "ideal: twice the workers, twice the throughput", PLOT_GUIDE,
            7);
        for (size_t i = 0; i < s->axis.count; i++)
            plot_add_point(ideal, s->axis.numbers[i],
                           best * s->axis.numbers[i] / s->axis.numbers[0], NAN, NAN);
    }
    p->description =
        plot_text(p,
                  "Throughput against the number of %s, with the line of ideal scaling and, given "
                  "six points or more, the universal scalability law.",
                  d->factors[s->axis.factor]);
    p->note = plot_text(p, "%s", strbuf_text(&note));
}

/* Says what is not drawn: of many combinations of the other factors some are. */
static void note_others(struct page *page, size_t factor, size_t count, size_t drawn)
{
    CLEANUP(memory_freep)
    char *note = memory_printf("Plots against %s are drawn for %zu of %zu combinations of the "
                               "other factors; the table has them all.\n",
                               page->view->factors[factor], drawn, count);
    if (!strstr(strbuf_text(&page->notes), note)) /* another metric's were the same */
        strbuf_puts(&page->notes, note);
}

/* What a series reaches, its intervals included where they are drawn. */
static void reach(const struct plot_series *s, double *low, double *high)
{
    bool has_intervals = s->style & (PLOT_BAND | PLOT_BARS);
    for (size_t n = 0; n < s->count; n++) {
        const struct plot_point *p = &s->points[n];
        *low = fmin(*low, has_intervals ? fmin(p->y, p->low) : p->y);
        *high = fmax(*high, has_intervals ? fmax(p->y, p->high) : p->y);
    }
}

/* One scale for all of a group, so that they can be compared by eye. */
static void share_scales(struct page *page, size_t first)
{
    for (size_t i = first; i < page->plot_count; i++) {
        struct plot *p = &page->plots[i];
        double low = NAN, high = NAN;
        for (size_t k = first; p->group && k < page->plot_count; k++) {
            const struct plot *other = &page->plots[k];
            for (size_t s = 0;
                 other->group && str_eq(other->group, p->group) && s < other->series_count; s++)
                reach(&other->series[s], &low, &high);
        }
        if (low < high) {
            p->y.low = low;
            p->y.high = high;
        }
    }
}

/* Whether the cell is the first of a context in which some variant has two points or more: where
 * combinations are excluded, others have one, which is no curve. */
static bool is_sweep(struct sweep *s, size_t cell)
{
    const struct dataset *d = s->page->view;
    if (!page_is_first(d, cell, s->axis.factor, s->page->variant))
        return false;
    s->cell = cell;
    size_t count = s->variants.count ? s->variants.count : 1;
    for (size_t k = 0; k < count; k++) {
        size_t like = variant_anywhere(s, k), points = 0;
        for (size_t i = 0; like != DATASET_NONE && i < s->axis.count; i++)
            points += dataset_cell_with(d, like, s->axis.factor, s->axis.levels[i]) != DATASET_NONE;
        if (points > 1)
            return true;
    }
    return false;
}

static void each_sweep(struct page *page, size_t metric, bool only_first,
                       void (*fn)(const struct sweep *s))
{
    const struct dataset *d = page->view;
    for (size_t f = 0; f < d->factor_count; f++) {
        struct sweep s = {.page = page, .metric = metric};
        page_axis_init(&s.axis, d, f);
        bool usable =
            f != page->variant && s.axis.numbers && s.axis.count > 1 && s.axis.numbers[0] > 0;
        if (usable && page->variant != DATASET_NONE)
            page_axis_init(&s.variants, d, page->variant);
        size_t contexts = 0, at = 0, taken = 0;
        for (size_t c = 0; usable && c < d->cell_count; c++)
            contexts += is_sweep(&s, c);
        /* A few side by side, where there are several; then those that are evenly spread. */
        size_t drawn = only_first ? 1 : contexts < SMALL_MAX ? contexts : SMALL_MAX;
        size_t first_plot = page->plot_count;
        s.is_small = drawn > CONTEXTS_MAX;
        if (contexts > drawn && !only_first)
            note_others(page, f, contexts, drawn);
        for (size_t c = 0; usable && c < d->cell_count; c++) {
            if (!is_sweep(&s, c))
                continue;
            /* The first, the last, and what lies evenly between. */
            size_t next = drawn > 1 ? taken * (contexts - 1) / (drawn - 1) : 0;
            bool wanted = taken < drawn && at == next;
            at++;
            taken += wanted;
            if (!wanted)
                continue;
            s.where = page_where(d, c, f, page->variant);
            fn(&s);
            free(s.where);
        }
        share_scales(page, first_plot);
        page_axis_done(&s.axis);
        page_axis_done(&s.variants);
        if (contexts && only_first)
            return;
    }
}

static bool scales(const struct sweep *s)
{
    const struct dataset *d = s->page->view;
    return d->metrics[s->metric].facts.better == METRIC_HIGHER &&
           dataset_counts_workers(d->factors[s->axis.factor]);
}

/* Where workers are counted, the curve of scaling shows all that a plain one would. */
static void plot_three(const struct sweep *s)
{
    if (!scales(s))
        plot_metric(s);
    if (s->variants.count > 1)
        plot_ratio(s);
    if (scales(s))
        plot_scaling(s);
}

void page_plot_curves(struct page *page, size_t metric)
{
    each_sweep(page, metric, false, plot_three);
}

/* ---- cost of a unit of work ---- */

struct cost {
    const char *name, *words;
    size_t metrics[2];
    size_t count;
};

/* The median over the runs of cost for a unit of work; what was done is the rate times the time.
 */
static bool cost_of(const struct dataset *d, const struct cost *cost, size_t rate, size_t wall,
                    size_t cell, struct median_interval *ret)
{
    struct dataset_column r = dataset_column(d, rate, cell), w = dataset_column(d, wall, cell);
    CLEANUP(memory_freep) double *values = memory_zalloc(r.count + 1, sizeof(double));
    size_t count = 0;
    for (size_t i = 0; i < r.count; i++) {
        double sum = 0, seconds = NAN;
        for (size_t k = 0; k < w.count; k++)
            if (w.rounds[k] == r.rounds[i])
                seconds = w.values[k] / NS_PER_S;
        for (size_t n = 0; n < cost->count; n++) {
            struct dataset_column c = dataset_column(d, cost->metrics[n], cell);
            double value = NAN;
            for (size_t k = 0; k < c.count; k++)
                if (c.rounds[k] == r.rounds[i])
                    value = c.values[k];
            sum += value;
        }
        double unit = sum / (r.values[i] * seconds);
        if (isfinite(unit) && unit > 0)
            values[count++] = unit;
    }
    if (!count)
        return false;
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && values[k - 1] > values[k]; k--) {
            double swap = values[k];
            values[k] = values[k - 1];
            values[k - 1] = swap;
        }
    median_interval(values, count, 0.95, ret);
    return true;
}

static void plot_cost(const struct sweep *s, const struct cost *cost, size_t wall, const char *unit,
                      const char *kind, const char *note)
{
    const struct dataset *d = s->page->view;
    CLEANUP(memory_freep) char *what = memory_printf("%s per %s", cost->words, unit);
    struct plot *p = start_plot(s, kind, what);
    p->y = (struct plot_axis){.label = plot_text(p, "%s", what),
                              .unit = str_eq(cost->name, "cpu") ? "ns" : "",
                              .log = true};
    size_t count = s->variants.count ? s->variants.count : 1;
    for (size_t k = 0; k < count && k < VARIANTS_MAX; k++) {
        size_t like = variant_anywhere(s, k);
        if (like == DATASET_NONE)
            continue;
        struct plot_series *series =
            plot_add_series(p, s->variants.count ? s->variants.levels[k] : NULL,
                            PLOT_LINE | PLOT_MARKS | PLOT_BARS, k);
        for (size_t i = 0; i < s->axis.count; i++) {
            size_t c = dataset_cell_with(d, like, s->axis.factor, s->axis.levels[i]);
            struct median_interval m;
            if (c != DATASET_NONE && cost_of(d, cost, s->metric, wall, c, &m))
                plot_add_point(series, s->axis.numbers[i], m.median, m.low, m.high);
        }
    }
    p->description = plot_text(p, "%s for each %s done, at each %s.", cost->words, unit,
                               d->factors[s->axis.factor]);
    p->note = note ? plot_text(p, "%s", note) : NULL;
}

static void plot_costs(const struct sweep *s)
{
    const struct dataset *d = s->page->view;
    const struct store_metric *m = &d->metrics[s->metric];
    char unit[32];
    snprintf(unit, sizeof(unit), "%.*s", (int)(strlen(m->unit) - 2), m->unit);
    size_t wall = dataset_metric(d, "wall"), user = dataset_metric(d, "user");
    size_t sys = dataset_metric(d, "sys"), cycles = dataset_metric(d, "cycles");
    size_t misses = dataset_metric(d, "cache-misses");
    if (wall == DATASET_NONE)
        return;
    static const char none[] =
        "are not available: that machine has no usable hardware PMU (see the capability record)";
    char note[256];
    if (cycles != DATASET_NONE) {
        struct cost cost = {"cycles", "cycles", {cycles}, 1};
        plot_cost(s, &cost, wall, unit, "efficiency", NULL);
    } else if (user != DATASET_NONE && sys != DATASET_NONE) {
        struct cost cost = {"cpu", "CPU time", {user, sys}, 2};
        snprintf(note, sizeof(note), "Cycles %s. The plot shows CPU time instead.", none);
        plot_cost(s, &cost, wall, unit, "efficiency", note);
    }
    if (misses != DATASET_NONE) {
        struct cost cost = {"misses", "cache misses", {misses}, 1};
        plot_cost(s, &cost, wall, unit, "misses", NULL);
    } else {
        struct plot *p = start_plot(s, "misses", "cache misses");
        p->note = plot_text(p, "Cache misses %s. 'assay stat --sim=full' models them.", none);
    }
}

void page_plot_efficiency(struct page *page, size_t metric)
{
    const char *unit = page->view->metrics[metric].unit;
    if (page->view->metrics[metric].facts.better == METRIC_HIGHER && str_has_suffix(unit, "/s") &&
        strlen(unit) > 2 && strlen(unit) < 30)
        each_sweep(page, metric, true, plot_costs);
}

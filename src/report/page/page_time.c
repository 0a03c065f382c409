/* SPDX-License-Identifier: MIT */
/* Plots over time: what monitors read during a run, and an experiment's history with the places
 * where its level changed. */
#include "base/memory.h"
#include "fits/changepoint.h"
#include "report/page/page.h"

#include <math.h>
#include <stdio.h>

static void plot_monitor(struct page *page, const struct embedded_monitor *m)
{
    struct plot *p = page_add_plot(page, "monitor", "during a run: %s", m->name);
    p->x = (struct plot_axis){.label = "seconds since the start of the run", .unit = ""};
    p->y = (struct plot_axis){.label = page_metric_label(p, m->name, m->unit),
                              .unit = plot_text(p, "%s", m->unit),
                              .from_zero = true};
    for (size_t t = 0; t < m->count; t++) {
        const struct embedded_trace *trace = &m->traces[t];
        const struct dataset *d = &page->data.sets[0];
        struct plot_series *s = plot_add_series(p, d->cells[trace->cell].label, PLOT_LINE, t);
        for (size_t i = 0; i < trace->count; i++)
            plot_add_point(s, trace->seconds[i], trace->values[i], NAN, NAN);
    }
    p->description = plot_text(p, "Readings of %s during the last run of some cells.", m->name);
}

enum { HISTORY_FROM = 8 };

static void find_changes(const struct page *page, const struct embedded_history *h,
                         struct change_points *changes)
{
    struct error ignored;
    for (size_t i = 0; i < h->count; i++)
        if (!isfinite(h->medians[i]))
            return;
    if (h->count >= HISTORY_FROM)
        change_points_find(h->medians, h->count, 0.05, page->view ? page->view->experiment.seed : 1,
                           changes, &ignored);
}

static void plot_history(struct page *page, const struct embedded_history *h)
{
    struct plot *p = page_add_plot(page, "history", "history: %s%s%s", h->metric,
                                   *h->label ? ", " : "", h->label);
    const char **words = arena_alloc(&p->arena, (h->count + 1) * sizeof(*words));
    struct plot_series *s = plot_add_series(p, NULL, PLOT_LINE | PLOT_MARKS | PLOT_BARS, 0);
    for (size_t i = 0; i < h->count; i++) {
        words[i] = plot_text(p, "%lld%s%.7s", (long long)h->experiments[i],
                             *h->commits[i] ? " " : "", h->commits[i]);
        plot_add_point(s, (double)i, h->medians[i], h->lows[i], h->highs[i]);
    }
    struct change_points changes = {0};
    find_changes(page, h, &changes);
    for (size_t i = 0; i < changes.count; i++) {
        const struct change_point *c = &changes.points[i];
        char label[96];
        snprintf(label, sizeof(label), "changed: ×%.3g", c->change.estimate);
        plot_add_mark(p, true, (double)c->index - 0.5, NAN, NAN,
                      c->change.scale == COMPARISON_RATIO ? label : "changed");
    }
    p->x = (struct plot_axis){.label = "experiment and commit, oldest first",
                              .unit = "",
                              .words = words,
                              .word_count = h->count};
    p->y = (struct plot_axis){.label = page_metric_label(p, h->metric, h->unit),
                              .unit = plot_text(p, "%s", h->unit)};
    p->note =
        h->count < HISTORY_FROM ? "The search for change points needs eight experiments or more."
        : changes.count
            ? plot_text(p, "The level changed %s, at a chance of 5 %%.",
                        changes.count == 1 ? "once" : plot_text(p, "%zu times", changes.count))
            : "No significant change of level.";
    p->description = plot_text(p,
                               "The median of %s in experiments of this name, with intervals; "
                               "dashed lines are change points.",
                               h->metric);
    change_points_done(&changes);
}

void page_plot_time(struct page *page)
{
    for (size_t i = 0; i < page->data.monitor_count && page->view; i++)
        plot_monitor(page, &page->data.monitors[i]);
    for (size_t i = 0; i < page->data.history_count; i++)
        plot_history(page, &page->data.histories[i]);
}

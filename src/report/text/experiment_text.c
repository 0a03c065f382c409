/* SPDX-License-Identifier: MIT */
/* Lists of experiments, and one experiment in tables. */
#include "analysis/compare.h"
#include "base/clock.h"
#include "base/memory.h"
#include "report/text/experiment.h"
#include "report/text/nodes.h"

#include <math.h>
#include <stdio.h>

static const char bold[] = "\033[1m", dim[] = "\033[2m", plain[] = "\033[0m";

static void put_styled(struct strbuf *out, const char *style, const char *text, bool colour)
{
    strbuf_printf(out, "%s%s%s", colour ? style : "", text, colour ? plain : "");
}

static const char *state_of(const struct store_experiment *e)
{
    return str_eq(e->state, "running") && !e->alive ? "killed" : e->state;
}

void report_list_text(struct strbuf *out, const struct store_list *list, bool colour)
{
    if (list->count == 0) {
        strbuf_puts(out, "The store contains no experiments.\n");
        return;
    }
    char line[256];
    snprintf(line, sizeof(line), "%5s  %-16s  %-8s %6s %7s  %-10s  %s\n", "id", "started", "state",
             "cells", "runs", "commit", "name");
    put_styled(out, bold, line, colour);
    for (size_t i = 0; i < list->count; i++) {
        const struct store_experiment *e = &list->items[i];
        char moment[32], commit[12];
        bool dirty = str_has_suffix(e->git_commit, "-dirty");
        snprintf(commit, sizeof(commit), "%.9s%s", e->git_commit, dirty ? "*" : "");
        strbuf_printf(out, "%5lld  %-16s  %-8s %6llu %7llu  %-10s  ", (long long)e->id,
                      format_moment(e->started_at_ns, moment, sizeof(moment)), state_of(e),
                      (unsigned long long)e->cell_count, (unsigned long long)e->run_count, commit);
        strbuf_put_safe(out, e->name, strlen(e->name), 80);
        if (e->selection[0]) {
            strbuf_puts(out, " (");
            strbuf_put_safe(out, e->selection, strlen(e->selection), 60);
            strbuf_puts(out, ")");
        }
        if (e->failed_count)
            strbuf_printf(out, ", %llu failed", (unsigned long long)e->failed_count);
        if (e->disturbed_count)
            strbuf_printf(out, ", %llu disturbed", (unsigned long long)e->disturbed_count);
        strbuf_putc(out, '\n');
    }
}

static void put_line(struct strbuf *out, const char *name, const char *text, bool colour)
{
    if (!*text)
        return;
    char head[32];
    snprintf(head, sizeof(head), "%-10s ", name);
    put_styled(out, dim, head, colour);
    strbuf_put_safe(out, text, strlen(text), 400);
    strbuf_putc(out, '\n');
}

void report_head_text(struct strbuf *out, const struct dataset *d, bool colour)
{
    const struct store_experiment *e = &d->experiment;
    char moment[32], text[160];
    strbuf_puts(out, colour ? bold : "");
    strbuf_printf(out, "experiment %lld: ", (long long)e->id);
    strbuf_put_safe(out, e->name, strlen(e->name), 200);
    strbuf_printf(out, "%s\n", colour ? plain : "");
    put_line(out, "question", e->question, colour);
    snprintf(text, sizeof(text), "%s, started %s, %llu %s, %llu %s%s", state_of(e),
             format_moment(e->started_at_ns, moment, sizeof(moment)),
             (unsigned long long)e->cell_count, plural(e->cell_count, "cell", "cells"),
             (unsigned long long)e->run_count, plural(e->run_count, "run", "runs"),
             str_eq(e->state, "done") || e->alive ? "" : " (assay run resumes it)");
    put_line(out, "state", text, colour);
    put_line(out, "commit", e->git_commit, colour);
    put_line(out, "spec", e->spec_path, colour);
    put_line(out, "selection", e->selection, colour);
    put_line(out, "baseline", e->baseline, colour);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)e->seed);
    put_line(out, "seed", text, colour);
    if (d->emulated)
        put_line(out, "note", d->emulated, colour);
    if (e->failed_count || e->disturbed_count) {
        snprintf(text, sizeof(text), "%llu %s failed, %llu %s disturbed (kept and counted)",
                 (unsigned long long)e->failed_count, plural(e->failed_count, "run", "runs"),
                 (unsigned long long)e->disturbed_count, plural(e->disturbed_count, "was", "were"));
        put_line(out, "doubts", text, colour);
    }
}

static size_t label_width(const struct dataset *d)
{
    size_t width = 4;
    for (size_t c = 0; c < d->cell_count; c++) {
        size_t columns = str_columns(d->cells[c].label);
        width = columns > width ? columns : width;
    }
    return width < 60 ? width : 60;
}

static void put_padded(struct strbuf *out, const char *text, size_t width, bool right)
{
    size_t columns = str_columns(text), gap = columns < width ? width - columns : 0;
    if (right)
        strbuf_pad(out, ' ', gap);
    strbuf_put_safe(out, text, strlen(text), 200);
    if (!right)
        strbuf_pad(out, ' ', gap);
}

static void put_cell(struct strbuf *out, const struct compare *c, size_t metric, size_t cell,
                     size_t width)
{
    const struct dataset *d = c->new;
    struct dataset_column column = dataset_column(d, metric, cell);
    struct summary summary;
    CLEANUP(strbuf_done) struct strbuf value = {0};
    put_padded(out, d->cells[cell].label, width, false);
    if (column.count == 0 || stats_summarise(column.values, column.count, &summary, NULL) < 0) {
        strbuf_puts(out, "             -\n");
        return;
    }
    strbuf_put_measured(&value, summary.median, d->metrics[metric].unit);
    put_padded(out, strbuf_text(&value), 16, true);
    if (summary.median != 0 && column.count > 1)
        strbuf_printf(out, "  ±%5.1f %%", 100 * fabs(summary.mad / summary.median));
    else
        strbuf_puts(out, "          ");
    strbuf_printf(out, "  n=%-4zu", column.count);
    const struct compare_row *row = compare_find(c, metric, cell);
    if (row)
        strbuf_printf(out, "  %s", row->judged.verdict.text);
    if (d->cells[cell].disturbed_count)
        strbuf_printf(out, "  (%zu disturbed)", d->cells[cell].disturbed_count);
    strbuf_putc(out, '\n');
}

static void put_metric(struct strbuf *out, const struct compare *compare, size_t metric,
                       bool colour)
{
    const struct dataset *d = compare->new;
    const struct store_metric *m = &d->metrics[metric];
    size_t width = label_width(d);
    CLEANUP(strbuf_done) struct strbuf head = {0};
    strbuf_put_safe(&head, m->name, strlen(m->name), 100);
    if (m->facts.better != METRIC_NEITHER)
        strbuf_puts(&head, m->facts.better == METRIC_HIGHER ? " (higher is better)"
                                                            : " (lower is better)");
    strbuf_putc(out, '\n');
    put_styled(out, bold, strbuf_text(&head), colour);
    strbuf_puts(out, ": median ± spread\n");
    for (size_t c = 0; c < d->cell_count; c++)
        put_cell(out, compare, metric, c, width);
}

void report_cells_text(struct strbuf *out, const struct dataset *d, bool all, bool colour)
{
    if (d->metric_count == 0) {
        strbuf_puts(out, "\nNo run has succeeded yet.\n");
        return;
    }
    CLEANUP(memory_freep) bool *shown = memory_zalloc(d->metric_count, sizeof(bool));
    CLEANUP(compare_done) struct compare compare;
    compare_baselines(&compare, d);
    size_t position = 0, metric;
    while ((metric = dataset_headline(d, &position)) != DATASET_NONE)
        if (!shown[metric]) {
            put_metric(out, &compare, metric, colour);
            compare_put_instead(out, &compare, metric);
            shown[metric] = true;
        }
    for (size_t m = 0; all && m < d->metric_count; m++)
        if (!shown[m])
            put_metric(out, &compare, m, colour);
    CLEANUP(strbuf_done) struct strbuf suites = {0};
    compare_put_suites(&suites, &compare);
    if (suites.length)
        strbuf_printf(out, "\n%s", strbuf_text(&suites));
    report_nodes_text(out, d);
    if (!all)
        strbuf_printf(out, "\n%zu %s recorded; --all shows all.\n", d->metric_count,
                      plural(d->metric_count, "metric was", "metrics were"));
}

/* SPDX-License-Identifier: MIT */
/* Lists of experiments, and one experiment in tables. */
#include "analysis/compare.h"
#include "analysis/losses.h"
#include "base/clock.h"
#include "base/memory.h"
#include "report/text/compare.h"
#include "report/text/experiment.h"
#include "report/text/nodes.h"
#include "report/text/stat.h"

#include <math.h>
#include <stdio.h>

static const char bold[] = "\033[1m", dim[] = "\033[2m", plain[] = "\033[0m";

static void put_styled(struct strbuf *out, const char *style, const char *text, bool colour)
{
    strbuf_printf(out, "%s%s%s", colour ? style : "", text, colour ? plain : "");
}

/* The name, and what is amiss. */
static void put_about(struct strbuf *out, const struct store_experiment *e)
{
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
}

/* Where the terminal has no room for columns: the number and the name, below them the rest. */
static void put_narrow(struct strbuf *out, const struct store_experiment *e, size_t columns)
{
    char moment[32], head[16];
    CLEANUP(strbuf_done) struct strbuf about = {0}, rest = {0};
    size_t indent = (size_t)snprintf(head, sizeof(head), "%5lld  ", (long long)e->id);
    put_about(&about, e);
    strbuf_printf(&rest, "%s, %s, %llu %s, %llu %s",
                  format_moment(e->started_at_ns, moment, sizeof(moment)), losses_state(e),
                  (unsigned long long)e->cell_count, plural(e->cell_count, "cell", "cells"),
                  (unsigned long long)e->run_count, plural(e->run_count, "run", "runs"));
    if (*e->git_commit)
        strbuf_printf(&rest, ", %.9s%s", e->git_commit,
                      str_has_suffix(e->git_commit, "-dirty") ? "*" : "");
    strbuf_puts(out, head);
    strbuf_put_wrapped(out, strbuf_text(&about), indent, columns);
    strbuf_putc(out, '\n');
    strbuf_pad(out, ' ', indent);
    strbuf_put_wrapped(out, strbuf_text(&rest), indent, columns);
    strbuf_putc(out, '\n');
}

void report_list_text(struct strbuf *out, const struct store_list *list, bool colour,
                      size_t columns)
{
    enum { BEFORE_NAME = 63, NAME_LEAST = 16 };
    if (list->count == 0) {
        strbuf_puts(out, "The store contains no experiments.\n");
        return;
    }
    bool narrow = columns && columns < BEFORE_NAME + NAME_LEAST;
    char line[256];
    snprintf(line, sizeof(line), "%5s  %-16s  %-8s %6s %7s  %-10s  %s\n", "id", "started", "state",
             "cells", "runs", "commit", "name");
    put_styled(out, bold, narrow ? "" : line, colour && !narrow);
    for (size_t i = 0; i < list->count; i++) {
        const struct store_experiment *e = &list->items[i];
        if (narrow) {
            put_narrow(out, e, columns);
            continue;
        }
        CLEANUP(strbuf_done) struct strbuf about = {0};
        char moment[32], commit[12];
        bool dirty = str_has_suffix(e->git_commit, "-dirty");
        snprintf(commit, sizeof(commit), "%.9s%s", e->git_commit, dirty ? "*" : "");
        strbuf_printf(out, "%5lld  %-16s  %-8s %6llu %7llu  %-10s  ", (long long)e->id,
                      format_moment(e->started_at_ns, moment, sizeof(moment)), losses_state(e),
                      (unsigned long long)e->cell_count, (unsigned long long)e->run_count, commit);
        put_about(&about, e);
        strbuf_put_wrapped(out, strbuf_text(&about), BEFORE_NAME, columns ? columns : SIZE_MAX);
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
    snprintf(text, sizeof(text), "%s, started %s, %llu %s, %llu %s%s", losses_state(e),
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

enum {
    FOLD_FROM = 12, /* cells that did not change; fewer are listed */
    EMPTY_FROM = 2, /* cells that this metric does not concern */
    VALUE_USUAL = 16,
    VALUE_MOST = 28, /* columns for a value and its unit */
    LABEL_MOST = 60,
    LABEL_BYTES = 400,
    WIDTH_MOST = 120, /* of what is no table where nobody knows the width */
    WORDS_LEAST = 24, /* columns for a verdict beside the figures */
    FAILURES_MOST = 12,
};

void report_losses_text(struct strbuf *out, const struct dataset *d, bool colour)
{
    CLEANUP(strbuf_done) struct strbuf state = {0}, failed = {0};
    static const char red[] = "\033[1;31m";
    size_t shown = 0, count = 0;
    losses_put_state(&state, &d->experiment);
    losses_put_failed(&failed, d);
    if (state.length) {
        strbuf_putc(out, '\n');
        put_styled(out, bold, strbuf_text(&state), colour);
        strbuf_putc(out, '\n');
    }
    if (!failed.length)
        return;
    strbuf_putc(out, '\n');
    put_styled(out, red, strbuf_text(&failed), colour);
    strbuf_putc(out, '\n');
    for (size_t c = 0; c < d->cell_count; c++) {
        const struct dataset_cell *cell = &d->cells[c];
        if (!cell->failed_count || ++count > FAILURES_MOST)
            continue;
        CLEANUP(strbuf_done) struct strbuf words = {0};
        losses_put_cell(&words, cell);
        strbuf_puts(out, "  ");
        strbuf_put_safe(out, cell->label, strlen(cell->label), LABEL_MOST);
        strbuf_printf(out, ": %s", strbuf_text(&words));
        if (cell->last_words) {
            const char *last = cell->last_words;
            size_t length = strlen(last);
            while (length && (last[length - 1] == '\n' || last[length - 1] == ' '))
                length--;
            size_t from = length;
            while (from && last[from - 1] != '\n')
                from--;
            strbuf_puts(out, ": ");
            strbuf_put_safe(out, last + from, length - from, 120);
        }
        strbuf_putc(out, '\n');
        shown++;
    }
    if (count > shown)
        strbuf_printf(out, "  … and %zu more %s\n", count - shown,
                      plural(count - shown, "cell", "cells"));
}

static void put_padded(struct strbuf *out, const char *text, size_t width, bool right)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, text, strlen(text), 400);
    size_t columns = str_columns(strbuf_text(&safe)), gap = columns < width ? width - columns : 0;
    if (right)
        strbuf_pad(out, ' ', gap);
    if (columns > width && width > 1) {
        strbuf_append(out, strbuf_text(&safe), str_column_bytes(strbuf_text(&safe), width - 1));
        strbuf_puts(out, "…");
    } else {
        strbuf_puts(out, strbuf_text(&safe));
    }
    if (!right)
        strbuf_pad(out, ' ', gap);
}

/* One metric's table. */
struct cells_table {
    const struct compare *compare;
    const struct cells_view *v;
    size_t metric, label_width, value_width;
    bool has_bars;
    struct ratio_scale scale;
};

static const struct compare_row *row_of(const struct cells_table *t, size_t cell)
{
    return compare_find(t->compare, t->metric, cell);
}

/* What moved, then what did not, then what is compared with nothing, then what lost its values,
 * then what has none of this metric. */
enum rank { RANK_CHANGED, RANK_SAME, RANK_ALONE, RANK_LOST, RANK_EMPTY, RANK_COUNT };

static enum rank rank_of(const struct cells_table *t, size_t cell)
{
    const struct dataset *d = t->compare->new;
    const struct compare_row *row = row_of(t, cell);
    if (!dataset_column(d, t->metric, cell).count) {
        CLEANUP(strbuf_done) struct strbuf lost = {0};
        losses_put_cell(&lost, &d->cells[cell]);
        return lost.length ? RANK_LOST : RANK_EMPTY;
    }
    return !row ? RANK_ALONE : row->judged.changed ? RANK_CHANGED : RANK_SAME;
}

static void put_words(struct strbuf *out, const struct cells_table *t, size_t cell, size_t used)
{
    const struct dataset *d = t->compare->new;
    const struct compare_row *row = row_of(t, cell);
    CLEANUP(strbuf_done) struct strbuf words = {0}, caveat = {0};
    if (row)
        strbuf_puts(&words, row->judged.verdict.text);
    losses_put_caveat(&caveat, row ? &d->cells[row->judged.sides.base_cell] : NULL,
                      &d->cells[cell]);
    if (caveat.length)
        strbuf_printf(&words, "%s(%s)", words.length ? " " : "", strbuf_text(&caveat));
    if (d->cells[cell].disturbed_count)
        strbuf_printf(&words, "%s(%zu disturbed)", words.length ? "  " : "",
                      d->cells[cell].disturbed_count);
    if (!words.length)
        return;
    size_t columns = t->v->columns;
    if (!columns) {
        strbuf_printf(out, "  %s", strbuf_text(&words));
    } else if (used + 2 + WORDS_LEAST <= columns) {
        strbuf_puts(out, "  ");
        strbuf_put_wrapped(out, strbuf_text(&words), used + 2, columns);
    } else {
        strbuf_puts(out, "\n    ");
        strbuf_put_wrapped(out, strbuf_text(&words), 4, columns);
    }
}

/* A label without room has lines of its own: its end is what tells it from others. */
static void put_label(struct strbuf *out, const struct cells_table *t, size_t cell, bool narrow)
{
    const char *label = t->compare->new->cells[cell].label;
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, label, strlen(label), LABEL_BYTES);
    if (!narrow && str_columns(strbuf_text(&safe)) <= t->label_width) {
        put_padded(out, label, t->label_width, false);
        return;
    }
    strbuf_put_wrapped(out, strbuf_text(&safe), 2, t->v->columns ? t->v->columns : WIDTH_MOST);
    if (!narrow) {
        strbuf_putc(out, '\n');
        strbuf_pad(out, ' ', t->label_width);
    }
}

static void put_cell(struct strbuf *out, const struct cells_table *t, size_t cell)
{
    const struct dataset *d = t->compare->new;
    struct dataset_column column = dataset_column(d, t->metric, cell);
    struct summary summary;
    CLEANUP(strbuf_done) struct strbuf value = {0};
    bool narrow = t->v->columns && t->v->columns < t->label_width + 36;
    put_label(out, t, cell, narrow);
    if (column.count == 0 || stats_summarise(column.values, column.count, &summary, NULL) < 0) {
        CLEANUP(strbuf_done) struct strbuf lost = {0};
        losses_put_cell(&lost, &d->cells[cell]);
        strbuf_printf(out, "  %s\n", lost.length ? strbuf_text(&lost) : "             -");
        return;
    }
    if (narrow)
        strbuf_puts(out, "\n ");
    strbuf_put_measured(&value, summary.median, d->metrics[t->metric].unit);
    put_padded(out, strbuf_text(&value), narrow ? 1 : t->value_width, true);
    if (summary.median != 0 && column.count > 1)
        strbuf_printf(out, "  ±%5.1f %%", 100 * fabs(summary.mad / summary.median));
    else
        strbuf_puts(out, "          ");
    strbuf_printf(out, "  n=%-4zu", column.count);
    size_t used =
        (narrow ? 1 + str_columns(strbuf_text(&value)) : t->label_width + t->value_width) + 18;
    const struct compare_row *row = row_of(t, cell);
    if (t->has_bars) {
        strbuf_puts(out, "  ");
        strbuf_put_ratio_bar(out, &t->scale, row ? &row->judged.comparison : NULL);
        used += RATIO_BAR + 2;
    }
    put_words(out, t, cell, used);
    strbuf_putc(out, '\n');
}

/* A value has its unit in full: "322.2 transactions/s". */
static void widen_for(struct cells_table *t, size_t cell)
{
    const struct dataset *d = t->compare->new;
    struct dataset_column column = dataset_column(d, t->metric, cell);
    struct summary summary;
    CLEANUP(strbuf_done) struct strbuf value = {0};
    if (column.count == 0 || stats_summarise(column.values, column.count, &summary, NULL) < 0)
        return;
    strbuf_put_measured(&value, summary.median, d->metrics[t->metric].unit);
    size_t columns = str_columns(strbuf_text(&value)) + 2;
    t->value_width = columns > t->value_width ? columns : t->value_width;
}

static void find_layout(struct cells_table *t)
{
    const struct dataset *d = t->compare->new;
    t->label_width = 4;
    t->value_width = VALUE_USUAL;
    for (size_t c = 0; c < d->cell_count; c++) {
        size_t columns = str_columns(d->cells[c].label);
        t->label_width = columns > t->label_width ? columns : t->label_width;
        const struct compare_row *row = row_of(t, c);
        if (row)
            ratio_scale_take(&t->scale, &row->judged.comparison);
        widen_for(t, c);
    }
    t->value_width = t->value_width < VALUE_MOST ? t->value_width : VALUE_MOST;
    t->label_width = t->label_width < LABEL_MOST ? t->label_width : LABEL_MOST;
    size_t columns = t->v->columns;
    if (columns && t->label_width + 4 > columns)
        t->label_width = columns > 8 ? columns - 4 : 4;
    bool room = columns >= t->label_width + t->value_width + 18 + RATIO_BAR + 4 + WORDS_LEAST;
    t->has_bars = t->scale.reach > 0 && t->v->bars && room;
}

static void put_metric(struct strbuf *out, const struct compare *compare, size_t metric,
                       const struct cells_view *v)
{
    const struct dataset *d = compare->new;
    const struct store_metric *m = &d->metrics[metric];
    struct cells_table t = {.compare = compare, .v = v, .metric = metric};
    find_layout(&t);
    CLEANUP(strbuf_done) struct strbuf head = {0};
    strbuf_put_safe(&head, m->name, strlen(m->name), 100);
    if (m->facts.better != METRIC_NEITHER)
        strbuf_puts(&head, m->facts.better == METRIC_HIGHER ? " (higher is better)"
                                                            : " (lower is better)");
    strbuf_putc(out, '\n');
    put_styled(out, bold, strbuf_text(&head), v->colour);
    strbuf_puts(out, ": median ± spread\n");
    size_t counts[RANK_COUNT] = {0};
    for (size_t c = 0; c < d->cell_count; c++)
        counts[rank_of(&t, c)]++;
    for (size_t rank = 0; rank < RANK_COUNT; rank++) {
        bool is_same = rank == RANK_SAME && counts[RANK_CHANGED] && counts[rank] > FOLD_FROM;
        bool is_empty = rank == RANK_EMPTY && counts[rank] > EMPTY_FROM;
        bool folded = !v->all && (is_same || is_empty);
        for (size_t c = 0; c < d->cell_count && !folded; c++)
            if (rank_of(&t, c) == rank)
                put_cell(out, &t, c);
        if (folded)
            strbuf_printf(out, "… %zu %s %s; --all lists them\n", counts[rank],
                          plural(counts[rank], "cell", "cells"),
                          is_same ? "did not change for certain" : "without values");
    }
}

void report_cells_text(struct strbuf *out, const struct dataset *d, const struct cells_view *v)
{
    report_losses_text(out, d, v->colour);
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
            put_metric(out, &compare, metric, v);
            compare_put_instead(out, &compare, metric, NULL);
            shown[metric] = true;
        }
    for (size_t m = 0; v->all && m < d->metric_count; m++)
        if (!shown[m])
            put_metric(out, &compare, m, v);
    CLEANUP(strbuf_done) struct strbuf suites = {0};
    compare_put_suites(&suites, &compare, NULL);
    if (suites.length)
        strbuf_putc(out, '\n');
    for (const char *line = strbuf_text(&suites); *line;) {
        size_t length = strcspn(line, "\n");
        CLEANUP(memory_freep) char *text = memory_strndup(line, length);
        if (v->columns)
            strbuf_put_wrapped(out, text, 0, v->columns);
        else
            strbuf_puts(out, text);
        strbuf_putc(out, '\n');
        line += length + (line[length] == '\n');
    }
    report_nodes_text(out, d);
    if (!v->all)
        strbuf_printf(out, "\n%zu %s recorded; --all shows all.\n", d->metric_count,
                      plural(d->metric_count, "metric was", "metrics were"));
}

/* SPDX-License-Identifier: MIT */
/* What `assay ab` found, as text: a table for each metric that matters, and a line for those that
 * do not: see ab.h. */
#include "base/clock.h"
#include "base/memory.h"
#include "report/text/ab.h"
#include "report/text/ab_table.h"
#include "report/text/stat.h"

#include <math.h>
#include <stdio.h>

#define NAME_COLUMNS_MAX 44

enum { COLUMN_NAME, COLUMN_MEDIAN, COLUMN_SPREAD, COLUMN_RATIO };

void strbuf_put_ab_name(struct strbuf *out, const char *name)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, name, strlen(name), SIZE_MAX);
    const char *text = strbuf_text(&safe);
    if (str_columns(text) <= NAME_COLUMNS_MAX) {
        strbuf_puts(out, text);
        return;
    }
    strbuf_append(out, text, str_column_bytes(text, NAME_COLUMNS_MAX - 1));
    strbuf_puts(out, "…");
}

static const char *colour_of(const struct ab_view *v, const struct outcome_cell *cell)
{
    if (!v->colour || !cell->judged)
        return "";
    enum verdict_kind kind = cell->judged->verdict.kind;
    if (cell->judged->changed)
        return kind == VERDICT_BETTER ? "\033[32m" : kind == VERDICT_WORSE ? "\033[31m" : "\033[1m";
    return kind == VERDICT_SAME ? "" : "\033[33m";
}

static void add_participant(struct ab_table *t, const struct ab_view *v, size_t metric,
                            size_t participant)
{
    const struct outcome *o = v->outcome;
    const char *unit = o->data->metrics[metric].unit;
    const struct outcome_cell *cell = outcome_cell(o, metric, participant);
    struct ab_row *row = ab_table_add(t);
    strbuf_put_ab_name(&row->cells[COLUMN_NAME], o->participants[participant].name);
    if (!cell->summary.count) {
        strbuf_puts(&row->cells[COLUMN_MEDIAN], "–");
        if (metric == o->headline)
            strbuf_put_failure(&row->verdict, v, participant);
        row->colour = v->colour && row->verdict.length ? "\033[31m" : "";
        return;
    }
    strbuf_puts(&row->cells[COLUMN_MEDIAN],
                dataset_is_bound(o->data, metric, participant) ? "≤ " : "");
    strbuf_put_measured(&row->cells[COLUMN_MEDIAN], cell->summary.median, unit);
    strbuf_put_deviation(&row->cells[COLUMN_SPREAD], unit, &cell->summary);
    row->colour = colour_of(v, cell);
    if (cell->judged) {
        strbuf_put_ratio(&row->cells[COLUMN_RATIO], unit, &cell->judged->comparison);
        strbuf_put_verdict(&row->verdict, cell->judged);
    } else if (o->participants[participant].is_reference) {
        strbuf_puts(&row->cells[COLUMN_RATIO], "1, the reference");
    } else {
        strbuf_puts(&row->cells[COLUMN_RATIO], "not compared");
    }
}

static void put_metric(struct strbuf *out, const struct ab_view *v, size_t metric)
{
    const struct outcome *o = v->outcome;
    CLEANUP(ab_table_done) struct ab_table t = {.left = COLUMN_RATIO};
    struct ab_row *head = ab_table_add(&t);
    strbuf_puts(&head->cells[COLUMN_NAME], o->data->metrics[metric].name);
    strbuf_puts(&head->cells[COLUMN_MEDIAN], "median");
    strbuf_puts(&head->cells[COLUMN_SPREAD], "spread");
    strbuf_puts(&head->cells[COLUMN_RATIO], "ratio [95 % interval]");
    for (size_t i = 0; i < o->data->cell_count; i++)
        add_participant(&t, v, metric, v->order ? v->order[i] : i);
    strbuf_puts(out, v->colour ? "\033[1m" : "");
    size_t start = out->length;
    ab_table_put(out, &t, v->columns);
    if (v->colour) {
        /* Bold ends with the head's line. */
        CLEANUP(memory_freep) char *text = memory_strdup(out->data + start);
        size_t head_length = strcspn(text, "\n");
        out->length = start;
        strbuf_append(out, text, head_length);
        strbuf_puts(out, "\033[0m");
        strbuf_puts(out, text + head_length);
    }
    strbuf_putc(out, '\n');
}

/* One contestant alone: a row for each metric. */
static void put_alone(struct strbuf *out, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    CLEANUP(ab_table_done) struct ab_table t = {.left = COLUMN_RATIO};
    struct ab_row *head = ab_table_add(&t);
    strbuf_put_ab_name(&head->cells[COLUMN_NAME], o->participants[0].name);
    strbuf_puts(&head->cells[COLUMN_MEDIAN], "median");
    strbuf_puts(&head->cells[COLUMN_SPREAD], "spread");
    strbuf_puts(&head->cells[COLUMN_RATIO], "95 % interval of the median");
    strbuf_puts(&head->verdict, "min … max");
    for (size_t i = 0; i < o->data->metric_count; i++) {
        const struct store_metric *m = &o->data->metrics[i];
        const struct outcome_cell *cell = outcome_cell(o, i, 0);
        if (!cell->summary.count)
            continue;
        struct ab_row *row = ab_table_add(&t);
        strbuf_puts(&row->cells[COLUMN_NAME], m->name);
        strbuf_puts(&row->cells[COLUMN_MEDIAN], dataset_is_bound(o->data, i, 0) ? "≤ " : "");
        strbuf_put_measured(&row->cells[COLUMN_MEDIAN], cell->summary.median, m->unit);
        strbuf_put_deviation(&row->cells[COLUMN_SPREAD], m->unit, &cell->summary);
        struct strbuf *interval = &row->cells[COLUMN_RATIO];
        if (cell->median.level > 0.9499) {
            strbuf_putc(interval, '[');
            strbuf_put_measured(interval, cell->median.low, m->unit);
            strbuf_puts(interval, ", ");
            strbuf_put_measured(interval, cell->median.high, m->unit);
            strbuf_putc(interval, ']');
        } else {
            strbuf_puts(interval, "too few runs");
        }
        strbuf_put_measured(&row->verdict, cell->summary.min, m->unit);
        strbuf_puts(&row->verdict, " … ");
        strbuf_put_measured(&row->verdict, cell->summary.max, m->unit);
    }
    ab_table_put(out, &t, v->columns > 120 ? v->columns : 120);
    strbuf_putc(out, '\n');
}

/* A line of metrics without a table, broken where it must be. */
static void put_folded(struct strbuf *out, const struct ab_view *v, bool same)
{
    CLEANUP(strbuf_done) struct strbuf line = {0};
    report_ab_folded(&line, v, same);
    if (!line.length)
        return;
    size_t column = 0;
    for (const char *item = strbuf_text(&line); *item;) {
        const char *comma = strstr(item, ", ");
        size_t length = comma ? (size_t)(comma - item) + 1 : strlen(item);
        CLEANUP(memory_freep) char *one = memory_strndup(item, length);
        size_t width = str_columns(one);
        if (column && column + 1 + width > v->columns) {
            strbuf_puts(out, "\n  ");
            column = 2;
        }
        strbuf_printf(out, " %s", one);
        column += 1 + width;
        item += length + (comma != NULL);
    }
    strbuf_putc(out, '\n');
}

static void put_head(struct strbuf *out, const struct ab_view *v)
{
    const struct rounds *r = v->rounds;
    char time[32];
    if (!r) {
        strbuf_printf(out, "\n read from files; %s\n\n",
                      !v->outcome->data->apart ? "rounds of assay ab, paired"
                                               : "runs of one command after the other, unpaired");
        return;
    }
    if (!r->count) {
        strbuf_printf(out, "\n no round was finished; seed %llu\n\n",
                      (unsigned long long)v->spec->seed);
        return;
    }
    strbuf_printf(out, "\n %zu %sround%s in %s", r->count, r->is_partial ? "unfinished " : "",
                  r->count == 1 ? "" : "s",
                  format_duration((double)r->elapsed_ns, time, sizeof(time)));
    if (r->warmup_done)
        strbuf_printf(out, " after %zu warm-up %s", r->warmup_done,
                      plural(r->warmup_done, "round", "rounds"));
    if (v->spec->duet)
        strbuf_printf(out, ", duets on CPUs %d and %d, swapped after each round", r->duet_cpus[0],
                      r->duet_cpus[1]);
    else if (r->contestant_count > 1)
        strbuf_puts(out, ", in shuffled order");
    strbuf_printf(out, "; seed %llu\n\n", (unsigned long long)v->spec->seed);
}

/* What can tell, where the headline cannot. */
static void put_instead(struct strbuf *out, const struct ab_view *v)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    compare_put_instead(&text, &v->outcome->compare, v->outcome->headline, NULL);
    if (text.length)
        strbuf_printf(out, "%s\n", strbuf_text(&text));
}

/* Each line broken where it must be. */
static void put_lines(struct strbuf *out, const struct ab_view *v, const char *text)
{
    strbuf_printf(out, "%s", v->colour ? "\033[1m" : "");
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        CLEANUP(memory_freep) char *one = memory_strndup(line, length);
        strbuf_putc(out, ' ');
        strbuf_put_wrapped(out, one, 1, v->columns);
        strbuf_putc(out, '\n');
        line += length + (line[length] == '\n');
    }
    strbuf_printf(out, "%s\n", v->colour ? "\033[0m" : "");
}

/* The last word of more than two commands, and of commands at several values of their parameters.
 */
static void put_last_words(struct strbuf *out, const struct ab_view *v)
{
    CLEANUP(strbuf_done) struct strbuf ranking = {0}, suites = {0};
    if (report_ab_ranking(&ranking, v))
        put_lines(out, v, strbuf_text(&ranking));
    if (report_ab_suites(&suites, v))
        put_lines(out, v, strbuf_text(&suites));
}

/* What this machine lacks is the same in every result. */
static bool is_constant(const struct ab_view *v, const struct doubt *note)
{
    bool by_default = !v->events_given && str_eq(note->id, "not-supported");
    return by_default || str_eq(note->id, "rss-bound");
}

static void put_notes(struct strbuf *out, const struct ab_view *v)
{
    size_t hidden = 0;
    for (size_t i = 0; i < v->notes->count; i++)
        if (!v->verbose && is_constant(v, &v->notes->items[i]))
            hidden++;
        else
            strbuf_put_note(out, v->notes->items[i].text, v->colour);
    if (hidden)
        strbuf_printf(out, "  %zu %s about this machine that %s always the same: --verbose\n",
                      hidden, plural(hidden, "note", "notes"), plural(hidden, "is", "are"));
    if (v->notes->count)
        strbuf_putc(out, '\n');
}

void report_ab_text(struct strbuf *out, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    put_head(out, v);
    bool finished = !v->rounds || v->rounds->count;
    if (finished && !o->data->metric_count) {
        strbuf_puts(out, "  nothing was measured\n\n");
    } else if (finished && o->data->cell_count == 1) {
        put_alone(out, v);
        report_ab_distribution(out, v);
    } else if (finished) {
        put_instead(out, v);
        for (size_t i = 0; i < o->data->metric_count; i++) {
            if (report_ab_is_shown(v, i))
                put_metric(out, v, i);
            if (i == o->headline)
                report_ab_distribution(out, v);
        }
        size_t start = out->length;
        put_folded(out, v, true);
        put_folded(out, v, false);
        if (out->length > start)
            strbuf_putc(out, '\n');
        report_ab_ranking_table(out, v);
        put_last_words(out, v);
    }
    put_notes(out, v);
}

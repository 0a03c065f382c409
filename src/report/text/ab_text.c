/* SPDX-License-Identifier: MIT */
/* What `assay ab` found, as text: a table for each metric that matters, and a line for those that
 * do not: see ab.h. */
#include "base/clock.h"
#include "base/memory.h"
#include "report/text/ab.h"
#include "report/text/stat.h"

#include <math.h>
#include <stdio.h>

#define NAME_COLUMNS_MAX 44
#define VERDICT_COLUMNS 28 /* a verdict of this width still belongs into the row */

enum { COLUMN_NAME, COLUMN_MEDIAN, COLUMN_SPREAD, COLUMN_RATIO, COLUMN_COUNT };

/* A table whose columns are as wide as they need to be. */
struct row {
    struct strbuf cells[COLUMN_COUNT], verdict;
    const char *colour;
};

struct table {
    struct row *rows;
    size_t count, capacity;
};

static struct row *add_row(struct table *t)
{
    struct row *row = &ARRAY_PUSH(t->rows, t->count, t->capacity);
    *row = (struct row){.colour = ""};
    return row;
}

static void table_done(struct table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        for (size_t j = 0; j < COLUMN_COUNT; j++)
            strbuf_done(&t->rows[i].cells[j]);
        strbuf_done(&t->rows[i].verdict);
    }
    free(t->rows);
}

static void put_padded(struct strbuf *out, const char *text, size_t width, bool right)
{
    size_t columns = str_columns(text), pad = width > columns ? width - columns : 0;
    strbuf_pad(out, ' ', right ? pad : 0);
    strbuf_puts(out, text);
    strbuf_pad(out, ' ', right ? 0 : pad);
}

static void strip(struct strbuf *out)
{
    while (out->length && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
}

static void put_row(struct strbuf *out, const struct row *row, const size_t *widths, size_t columns,
                    bool is_head)
{
    size_t start = out->length;
    strbuf_puts(out, is_head ? " " : "   ");
    put_padded(out, strbuf_text(&row->cells[COLUMN_NAME]), widths[COLUMN_NAME] + (is_head ? 2 : 0),
               false);
    for (size_t i = COLUMN_MEDIAN; i < COLUMN_COUNT; i++) {
        strbuf_puts(out, "  ");
        put_padded(out, strbuf_text(&row->cells[i]), widths[i], i != COLUMN_RATIO);
    }
    if (!row->verdict.length)
        strip(out);
    size_t used = str_columns(out->data + start);
    size_t verdict = str_columns(strbuf_text(&row->verdict));
    if (verdict && used + 2 + verdict > columns && verdict > VERDICT_COLUMNS) {
        strip(out);
        strbuf_puts(out, "\n     ");
    } else if (verdict) {
        strbuf_puts(out, "  ");
    }
    if (verdict)
        strbuf_printf(out, "%s%s%s", row->colour, strbuf_text(&row->verdict),
                      *row->colour ? "\033[0m" : "");
    strbuf_putc(out, '\n');
}

static void put_table(struct strbuf *out, const struct table *t, size_t columns)
{
    size_t widths[COLUMN_COUNT] = {0};
    for (size_t i = 0; i < t->count; i++)
        for (size_t j = 0; j < COLUMN_COUNT; j++) {
            size_t width = str_columns(strbuf_text(&t->rows[i].cells[j]));
            widths[j] = width > widths[j] ? width : widths[j];
        }
    for (size_t i = 0; i < t->count; i++)
        put_row(out, &t->rows[i], widths, columns, i == 0);
}

static void put_name(struct strbuf *out, const char *name)
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
    if (!v->colour || !cell->is_compared)
        return "";
    if (cell->stands)
        return cell->verdict.kind == VERDICT_BETTER  ? "\033[32m"
               : cell->verdict.kind == VERDICT_WORSE ? "\033[31m"
                                                     : "\033[1m";
    return cell->verdict.kind == VERDICT_SAME ? "" : "\033[33m";
}

static void add_participant(struct table *t, const struct ab_view *v, size_t series,
                            size_t participant)
{
    const struct outcome *o = v->outcome;
    const struct series *s = &o->set->items[series];
    const struct outcome_cell *cell = outcome_cell(o, series, participant);
    struct row *row = add_row(t);
    put_name(&row->cells[COLUMN_NAME], o->participants[participant].name);
    if (!cell->summary.count) {
        strbuf_puts(&row->cells[COLUMN_MEDIAN], "–");
        return;
    }
    strbuf_puts(&row->cells[COLUMN_MEDIAN], s->is_bound[participant] ? "≤ " : "");
    strbuf_put_value(&row->cells[COLUMN_MEDIAN], s, cell->summary.median);
    strbuf_put_deviation(&row->cells[COLUMN_SPREAD], s, &cell->summary);
    row->colour = colour_of(v, cell);
    if (cell->is_compared) {
        strbuf_put_ratio(&row->cells[COLUMN_RATIO], s, &cell->comparison);
        strbuf_put_verdict(&row->verdict, s, cell);
    } else if (o->participants[participant].is_reference) {
        strbuf_puts(&row->cells[COLUMN_RATIO], "1, the reference");
    } else {
        strbuf_puts(&row->cells[COLUMN_RATIO], "not compared");
    }
}

static void put_series(struct strbuf *out, const struct ab_view *v, size_t series)
{
    const struct outcome *o = v->outcome;
    CLEANUP(table_done) struct table t = {0};
    struct row *head = add_row(&t);
    strbuf_puts(&head->cells[COLUMN_NAME], o->set->items[series].name);
    strbuf_puts(&head->cells[COLUMN_MEDIAN], "median");
    strbuf_puts(&head->cells[COLUMN_SPREAD], "spread");
    strbuf_puts(&head->cells[COLUMN_RATIO], "ratio [95 % interval]");
    for (size_t i = 0; i < o->set->contestant_count; i++)
        add_participant(&t, v, series, i);
    strbuf_puts(out, v->colour ? "\033[1m" : "");
    size_t start = out->length;
    put_table(out, &t, v->columns);
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
    CLEANUP(table_done) struct table t = {0};
    struct row *head = add_row(&t);
    put_name(&head->cells[COLUMN_NAME], o->participants[0].name);
    strbuf_puts(&head->cells[COLUMN_MEDIAN], "median");
    strbuf_puts(&head->cells[COLUMN_SPREAD], "spread");
    strbuf_puts(&head->cells[COLUMN_RATIO], "95 % interval of the median");
    strbuf_puts(&head->verdict, "min … max");
    for (size_t i = 0; i < o->set->count; i++) {
        const struct series *s = &o->set->items[i];
        const struct outcome_cell *cell = outcome_cell(o, i, 0);
        if (!cell->summary.count)
            continue;
        struct row *row = add_row(&t);
        strbuf_puts(&row->cells[COLUMN_NAME], s->name);
        strbuf_puts(&row->cells[COLUMN_MEDIAN], s->is_bound[0] ? "≤ " : "");
        strbuf_put_value(&row->cells[COLUMN_MEDIAN], s, cell->summary.median);
        strbuf_put_deviation(&row->cells[COLUMN_SPREAD], s, &cell->summary);
        struct strbuf *interval = &row->cells[COLUMN_RATIO];
        if (cell->median.level > 0.9499) {
            strbuf_putc(interval, '[');
            strbuf_put_value(interval, s, cell->median.low);
            strbuf_puts(interval, ", ");
            strbuf_put_value(interval, s, cell->median.high);
            strbuf_putc(interval, ']');
        } else {
            strbuf_puts(interval, "too few runs");
        }
        strbuf_put_value(&row->verdict, s, cell->summary.min);
        strbuf_puts(&row->verdict, " … ");
        strbuf_put_value(&row->verdict, s, cell->summary.max);
    }
    put_table(out, &t, v->columns > 120 ? v->columns : 120);
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
                      v->outcome->set->paired ? "rounds of assay ab, paired"
                                              : "runs of one command after the other, unpaired");
        return;
    }
    strbuf_printf(out, "\n %zu round%s in %s", r->count, r->count == 1 ? "" : "s",
                  format_duration((double)r->elapsed_ns, time, sizeof(time)));
    if (r->warmup_done)
        strbuf_printf(out, " after %zu to warm up", r->warmup_done);
    if (v->spec->duet)
        strbuf_printf(out, ", duets on CPUs %d and %d, sides swapped each round", r->duet_cpus[0],
                      r->duet_cpus[1]);
    else if (r->contestant_count > 1)
        strbuf_puts(out, ", the order shuffled in each");
    strbuf_printf(out, "; seed %llu\n\n", (unsigned long long)v->spec->seed);
}

void report_ab_text(struct strbuf *out, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    put_head(out, v);
    if (!o->set->count || (v->rounds && !v->rounds->count)) {
        strbuf_puts(out, "  no round was finished\n\n");
    } else if (o->set->contestant_count == 1) {
        put_alone(out, v);
    } else {
        for (size_t i = 0; i < o->set->count; i++)
            if (report_ab_is_shown(v, i))
                put_series(out, v, i);
        size_t start = out->length;
        put_folded(out, v, true);
        put_folded(out, v, false);
        if (out->length > start)
            strbuf_putc(out, '\n');
    }
    strbuf_put_notes(out, v->notes, v->colour);
}

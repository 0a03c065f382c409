/* SPDX-License-Identifier: MIT */
/* How the values of the headline lie, as `assay ab` shows it: see ab.h. */
#include "base/memory.h"
#include "report/text/ab.h"
#include "report/text/ab_table.h"
#include "stats/sketch.h"
#include "stats/tails.h"

#include <math.h>
#include <stdio.h>

enum { SKETCH_BINS = 20, VALUES_MIN = 2 };

static void put_slow_runs(struct strbuf *out, const struct outcome *o, size_t participant)
{
    struct dataset_column c = dataset_column(o->data, o->headline, participant);
    char text[96];
    slow_runs_alone(c.values, c.count, o->data->metrics[o->headline].facts.better != METRIC_HIGHER,
                    text, sizeof(text));
    strbuf_puts(out, text);
}

/* From the smallest to the largest value of all participants, so that sketches can be compared. */
static void axis_of(const struct outcome *o, double *ret_low, double *ret_high)
{
    *ret_low = INFINITY;
    *ret_high = -INFINITY;
    for (size_t i = 0; i < o->data->cell_count; i++) {
        const struct summary *s = &outcome_cell(o, o->headline, i)->summary;
        if (!s->count)
            continue;
        *ret_low = fmin(*ret_low, s->min);
        *ret_high = fmax(*ret_high, s->max);
    }
}

static void put_sketch(struct strbuf *out, const struct outcome *o, size_t participant, double low,
                       double high)
{
    struct dataset_column c = dataset_column(o->data, o->headline, participant);
    uint8_t levels[SKETCH_BINS];
    char text[SKETCH_BINS * 4 + 1];
    if (!(high > low))
        return;
    sketch_levels(c.values, c.count, low, high, SKETCH_BINS, levels);
    sketch_text(levels, SKETCH_BINS, text, sizeof(text));
    strbuf_printf(out, "▕%s▏", text);
}

static bool has_distribution(const struct outcome *o, size_t participant)
{
    return o->headline != DATASET_NONE &&
           outcome_cell(o, o->headline, participant)->summary.count >= VALUES_MIN;
}

static void put_range(struct strbuf *out, double from, double to, const char *unit)
{
    strbuf_put_measured(out, from, unit);
    strbuf_puts(out, " … ");
    strbuf_put_measured(out, to, unit);
}

static void add_command(struct ab_table *t, const struct ab_view *v, size_t participant, double low,
                        double high)
{
    const struct outcome *o = v->outcome;
    const char *unit = o->data->metrics[o->headline].unit;
    const struct summary *s = &outcome_cell(o, o->headline, participant)->summary;
    struct ab_row *row = ab_table_add(t);
    strbuf_put_ab_name(&row->cells[0], o->participants[participant].name);
    strbuf_put_measured(&row->cells[1], s->mean, unit);
    put_range(&row->cells[2], s->min, s->max, unit);
    put_range(&row->cells[3], s->q1, s->q3, unit);
    if (v->sketches)
        put_sketch(&row->cells[4], o, participant, low, high);
    put_slow_runs(&row->verdict, o, participant);
}

void report_ab_distribution(struct strbuf *out, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    CLEANUP(ab_table_done) struct ab_table t = {.left = 4};
    double low, high;
    struct ab_row *head = ab_table_add(&t);
    static const char *const heads[] = {"", "mean", "min … max", "middle half"};
    for (size_t i = 0; i < ARRAY_COUNT(heads); i++)
        strbuf_puts(&head->cells[i], heads[i]);
    if (o->headline == DATASET_NONE)
        return;
    strbuf_printf(&head->cells[0], "%s, all runs", o->data->metrics[o->headline].name);
    axis_of(o, &low, &high);
    for (size_t i = 0; i < o->data->cell_count; i++)
        if (has_distribution(o, i))
            add_command(&t, v, i, low, high);
    if (t.count < 2)
        return;
    ab_table_put(out, &t, v->columns);
    strbuf_putc(out, '\n');
}

void report_ab_distribution_markdown(struct strbuf *out, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    bool any = false;
    for (size_t i = 0; i < o->data->cell_count; i++) {
        if (!has_distribution(o, i))
            continue;
        const struct store_metric *m = &o->data->metrics[o->headline];
        const struct summary *s = &outcome_cell(o, o->headline, i)->summary;
        if (!any)
            strbuf_printf(out,
                          "| %s, all runs | mean | min … max | middle half | standing out |\n"
                          "|---|--:|--:|--:|---|\n",
                          m->name);
        any = true;
        strbuf_puts(out, "| ");
        strbuf_put_markdown_code(out, o->participants[i].name);
        strbuf_puts(out, " | ");
        strbuf_put_measured(out, s->mean, m->unit);
        strbuf_puts(out, " | ");
        put_range(out, s->min, s->max, m->unit);
        strbuf_puts(out, " | ");
        put_range(out, s->q1, s->q3, m->unit);
        strbuf_puts(out, " | ");
        put_slow_runs(out, o, i);
        strbuf_puts(out, " |\n");
    }
    strbuf_puts(out, any ? "\n" : "");
}

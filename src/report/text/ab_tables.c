/* SPDX-License-Identifier: MIT */
/* A line for each command, by the headline, as hyperfine's exports have it: CSV with its columns,
 * and tables for AsciiDoc and Org mode: see ab.h. */
#include "base/memory.h"
#include "report/text/ab.h"

#include <math.h>

static double mean_seconds(const struct outcome *o, const char *name, size_t participant)
{
    size_t metric = dataset_metric(o->data, name);
    return metric == DATASET_NONE ? NAN : outcome_cell(o, metric, participant)->summary.mean / 1e9;
}

void report_ab_summary_csv(struct strbuf *out, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    size_t wall = dataset_metric(o->data, "wall");
    strbuf_puts(out, "command,mean,stddev,median,user,system,min,max\n");
    for (size_t k = 0; wall != DATASET_NONE && k < o->data->cell_count; k++) {
        size_t i = v->order ? v->order[k] : k;
        const struct summary *s = &outcome_cell(o, wall, i)->summary;
        if (!s->count)
            continue;
        strbuf_put_csv(out, o->participants[i].name);
        strbuf_printf(out, ",%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g\n", s->mean / 1e9, s->stddev / 1e9,
                      s->median / 1e9, mean_seconds(o, "user", i), mean_seconds(o, "sys", i),
                      s->min / 1e9, s->max / 1e9);
    }
}

/* What is special in a cell of both kinds of tables. */
static void put_cell(struct strbuf *out, const char *text)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, text, strlen(text), 200);
    for (const char *c = strbuf_text(&safe); *c; c++)
        strbuf_puts(out, *c == '|' ? "{vbar}" : (char[]){*c, '\0'});
}

static void put_row(struct strbuf *out, const struct ab_view *v, size_t participant,
                    const char *end)
{
    const struct outcome *o = v->outcome;
    const struct store_metric *m = &o->data->metrics[o->headline];
    const struct outcome_cell *cell = outcome_cell(o, o->headline, participant);
    strbuf_puts(out, "| ");
    put_cell(out, o->participants[participant].name);
    if (cell->summary.count) {
        const double values[] = {cell->summary.mean, cell->summary.median, cell->summary.min,
                                 cell->summary.max};
        for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
            strbuf_puts(out, " | ");
            strbuf_put_measured(out, values[i], m->unit);
        }
    } else {
        strbuf_puts(out, " | – | – | – | –");
    }
    strbuf_puts(out, " | ");
    CLEANUP(strbuf_done) struct strbuf words = {0};
    if (!cell->summary.count)
        strbuf_put_failure(&words, v, participant);
    else if (cell->judged)
        strbuf_put_verdict(&words, cell->judged);
    else if (o->participants[participant].is_reference && o->data->cell_count > 1)
        strbuf_puts(&words, "reference");
    put_cell(out, strbuf_text(&words));
    strbuf_puts(out, end);
}

static void put_rows(struct strbuf *out, const struct ab_view *v, const char *end)
{
    const struct outcome *o = v->outcome;
    for (size_t i = 0; o->headline != DATASET_NONE && i < o->data->cell_count; i++)
        put_row(out, v, v->order ? v->order[i] : i, end);
}

void report_ab_asciidoc(struct strbuf *out, const struct ab_view *v)
{
    strbuf_puts(out, "[cols=\"<,>,>,>,>,<\"]\n|===\n"
                     "| Command | Mean | Median | Min | Max | Compared\n\n");
    put_rows(out, v, "\n");
    strbuf_puts(out, "|===\n\n");
    report_ab_ranking(out, v);
}

void report_ab_orgmode(struct strbuf *out, const struct ab_view *v)
{
    CLEANUP(strbuf_done) struct strbuf rows = {0};
    strbuf_puts(out, "| Command | Mean | Median | Min | Max | Compared |\n"
                     "|---------+------+--------+-----+-----+----------|\n");
    put_rows(&rows, v, " |\n");
    for (const char *c = strbuf_text(&rows); *c;) /* Org's name for the same sign */
        if (str_has_prefix(c, "{vbar}")) {
            strbuf_puts(out, "\\vert{}");
            c += strlen("{vbar}");
        } else {
            strbuf_putc(out, *c++);
        }
    strbuf_putc(out, '\n');
    report_ab_ranking(out, v);
}

/* SPDX-License-Identifier: MIT */
/* What `assay bench` found, as text: a line for each benchmark.  See bench.h. */
#include "base/measured.h"
#include "base/memory.h"
#include "bench/layouts.h"
#include "report/bench/bench.h"
#include "report/text/ab.h"
#include "report/text/ab_table.h"
#include "report/text/stat.h"

#include <math.h>

enum { COLUMN_NAME, COLUMN_FIRST, COLUMN_SECOND, COLUMN_THIRD, COLUMN_FOURTH };

static const char *colour_of(const struct bench_view *v, const struct judge_row *judged)
{
    if (!v->colour || !judged)
        return "";
    if (judged->changed)
        return judged->verdict.kind == VERDICT_BETTER  ? "\033[32m"
               : judged->verdict.kind == VERDICT_WORSE ? "\033[31m"
                                                       : "\033[1m";
    return judged->verdict.kind == VERDICT_SAME ? "" : "\033[33m";
}

static void put_time(struct strbuf *out, double ns)
{
    strbuf_put_measured(out, ns, "ns");
}

/* Why there is nothing to show; false when there is. */
static bool put_absence(struct strbuf *out, const struct bench_view *v, size_t index)
{
    const struct bench_result *r = &v->results->items[index];
    for (size_t side = 0; side < v->results->side_count; side++) {
        const struct bench_side *s = &r->sides[side];
        if (!s->failed && !s->skipped)
            continue;
        strbuf_puts(out, s->failed ? "failed" : "skipped");
        if (v->results->side_count > 1)
            strbuf_printf(out, " in %s", v->names[side]);
        strbuf_printf(out, ": %s", s->failed ? s->failed : s->skipped);
        return true;
    }
    return false;
}

static double figure_of(const struct bench_said *said, const char *name)
{
    for (size_t i = 0; i < said->figure_count; i++)
        if (str_eq(said->figures[i].name, name))
            return said->figures[i].value;
    return NAN;
}

/* "0.51 ns/item, 1.95 G items/s" */
static void put_rates(struct strbuf *out, const struct bench_said *said, double ns)
{
    static const struct {
        const char *name, *one, *many;
    } rates[] = {{"items", "item", "items"}, {"bytes", "byte", "bytes"}};
    for (size_t i = 0; i < ARRAY_COUNT(rates); i++) {
        double count = figure_of(said, rates[i].name);
        if (!(count > 0) || !(ns > 0))
            continue;
        strbuf_puts(out, out->length ? ", " : "");
        strbuf_put_measured(out, ns / count, "ns");
        strbuf_printf(out, "/%s, ", rates[i].one);
        char text[40];
        double rate = count / ns * 1e9;
        if (i == 1)
            strbuf_printf(out, "%s/s", format_bytes(rate, text, sizeof(text)));
        else
            strbuf_printf(out, "%.4g %s/s", rate, rates[i].many);
    }
}

static void put_interval(struct strbuf *out, double low, double high)
{
    if (!isfinite(low) || !isfinite(high))
        return;
    strbuf_puts(out, " [");
    put_time(out, low);
    strbuf_puts(out, ", ");
    put_time(out, high);
    strbuf_putc(out, ']');
}

static void add_alone(struct ab_table *t, const struct bench_view *v, size_t index)
{
    const struct outcome_cell *cell = outcome_cell(v->outcome, v->outcome->headline, index);
    struct ab_row *row = ab_table_add(t);
    struct bench_figures f;
    strbuf_puts(&row->cells[COLUMN_NAME], v->cases->items[index].label);
    row->colour = "";
    bool absent = put_absence(&row->verdict, v, index);
    if (absent || !bench_figures(&v->results->items[index], 0, &f) || !cell->summary.count) {
        strbuf_puts(&row->cells[COLUMN_FIRST], "–");
        row->colour = v->colour && absent ? "\033[31m" : "";
        return;
    }
    put_time(&row->cells[COLUMN_FIRST], cell->summary.median);
    if (cell->median.level > 0.9499)
        put_interval(&row->cells[COLUMN_FIRST], cell->median.low, cell->median.high);
    strbuf_put_deviation(&row->cells[COLUMN_SECOND], "ns", &cell->summary);
    put_time(&row->cells[COLUMN_THIRD], f.mean.value);
    put_interval(&row->cells[COLUMN_THIRD], f.mean.low, f.mean.high);
    put_time(&row->cells[COLUMN_FOURTH], f.p99.value);
    put_interval(&row->cells[COLUMN_FOURTH], f.p99.low, f.p99.high);
    put_rates(&row->verdict, &v->results->items[index].sides[0].said, cell->summary.median);
}

static void add_pair(struct ab_table *t, const struct bench_view *v, size_t index)
{
    const struct outcome *o = v->outcome;
    const struct outcome_cell *base = outcome_cell(o, o->headline, bench_cell(index, 0, 2));
    const struct outcome_cell *new = outcome_cell(o, o->headline, bench_cell(index, 1, 2));
    struct ab_row *row = ab_table_add(t);
    strbuf_puts(&row->cells[COLUMN_NAME], v->cases->items[index].label);
    row->colour = colour_of(v, new->judged);
    if (put_absence(&row->verdict, v, index)) {
        strbuf_puts(&row->cells[COLUMN_FIRST], "–");
        strbuf_puts(&row->cells[COLUMN_SECOND], "–");
        row->colour = v->colour ? "\033[31m" : "";
        return;
    }
    if (base->summary.count)
        put_time(&row->cells[COLUMN_FIRST], base->summary.median);
    if (new->summary.count)
        put_time(&row->cells[COLUMN_SECOND], new->summary.median);
    if (new->judged) {
        strbuf_put_ratio(&row->cells[COLUMN_THIRD], "ns", &new->judged->comparison);
        strbuf_put_verdict(&row->verdict, new->judged);
    }
}

static void put_head(struct strbuf *out, const struct bench_view *v)
{
    const struct bench_results *r = v->results;
    char time[32];
    strbuf_printf(out, "\n %zu %s in %s", r->round_count, plural(r->round_count, "round", "rounds"),
                  format_duration((double)r->elapsed_ns, time, sizeof(time)));
    if (r->cpu >= 0)
        strbuf_printf(out, " on CPU %d", r->cpu);
    strbuf_printf(out, ", with new processes in each; seed %llu\n", (unsigned long long)v->seed);
    if (!(r->clock_ns > 0)) { /* another harness measured */
        strbuf_putc(out, '\n');
        return;
    }
    strbuf_printf(out,
                  " an empty iteration takes %.2f ns (included), reading the clock %.0f ns\n\n",
                  r->loop_ns, r->clock_ns);
}

static void put_table(struct strbuf *out, const struct bench_view *v)
{
    bool pair = v->results->side_count > 1;
    CLEANUP(ab_table_done)
    struct ab_table t = {.left = pair ? COLUMN_THIRD : 0, .optional = pair ? 0 : COLUMN_THIRD};
    struct ab_row *head = ab_table_add(&t);
    head->colour = "";
    strbuf_puts(&head->cells[COLUMN_NAME], "benchmark");
    strbuf_put_ab_name(&head->cells[COLUMN_FIRST], pair ? v->names[0] : "median [95 % interval]");
    strbuf_put_ab_name(&head->cells[COLUMN_SECOND], pair ? v->names[1] : "spread");
    strbuf_puts(&head->cells[COLUMN_THIRD], pair ? "ratio [95 % interval]" : "mean");
    strbuf_puts(&head->cells[COLUMN_FOURTH], pair ? "" : "p99");
    for (size_t i = 0; i < v->cases->count; i++)
        if (pair)
            add_pair(&t, v, i);
        else
            add_alone(&t, v, i);
    ab_table_put(out, &t, v->columns);
    strbuf_putc(out, '\n');
}

/* Whether a metric beside the headline is worth a line by itself: when it moved.  Of a mean, the
 * headline's verdict has said so where that one differs. */
static bool has_moved(const struct outcome *o, size_t metric, size_t cell)
{
    const struct judge_row *own = outcome_cell(o, metric, cell)->judged;
    const struct judge_row *headline = outcome_cell(o, o->headline, cell)->judged;
    bool is_mean = str_eq(o->data->metrics[metric].name, BENCH_MEAN_METRIC);
    return own && own->changed && !(is_mean && headline && headline->changed);
}

/* Another metric that moved, or all of them. */
static void put_others(struct strbuf *out, const struct bench_view *v)
{
    const struct outcome *o = v->outcome;
    size_t start = out->length;
    for (size_t m = 0; m < o->data->metric_count; m++)
        for (size_t c = 0; c < o->data->cell_count; c++) {
            const struct outcome_cell *cell = outcome_cell(o, m, c);
            const char *unit = o->data->metrics[m].unit;
            bool counted = str_eq(o->data->metrics[m].kind, "counter");
            bool pair = v->results->side_count > 1;
            bool shown = v->all || (counted && !pair) || has_moved(o, m, c);
            if (m == o->headline || !cell->summary.count || !shown || (pair && !cell->judged))
                continue;
            size_t index = c / v->results->side_count;
            strbuf_printf(out, "   %s, %s: ", v->cases->items[index].label,
                          o->data->metrics[m].name);
            if (cell->judged) {
                strbuf_put_measured(out, cell->judged->base.median, unit);
                strbuf_puts(out, " → ");
            }
            strbuf_put_measured(out, cell->summary.median, unit);
            if (cell->judged) {
                strbuf_puts(out, "  ");
                strbuf_put_verdict(out, cell->judged);
            }
            strbuf_putc(out, '\n');
        }
    if (out->length > start)
        strbuf_putc(out, '\n');
}

/* "sort: grows like n log n: exponent 1.02 [0.99, 1.05] of n log n, expected 1" */
static void put_growth(struct strbuf *out, const struct bench_view *v)
{
    for (size_t i = 0; i < v->fits->count; i++) {
        const struct bench_fit *f = &v->fits->items[i];
        const struct complexity *c = &f->complexity;
        strbuf_printf(out, "   %s", f->label);
        if (v->results->side_count > 1)
            strbuf_printf(out, " (%s)", v->names[f->side]);
        if (f->trouble)
            strbuf_printf(out, ": whether it grows like %s is not known: %s\n", f->law, f->trouble);
        else
            strbuf_printf(out, ": %s like %s: exponent %.2f [%.2f, %.2f] of %s, expected %d%s%s\n",
                          !c->is_certain ? "not certain that it grows"
                          : c->holds     ? "grows"
                                         : "does not grow",
                          f->law, c->exponent, c->low, c->high, str_eq(f->law, "1") ? "n" : f->law,
                          !str_eq(f->law, "1"),
                          !c->is_certain ? "; more values of it would tell"
                          : c->holds     ? ""
                                         : "; nearest: ",
                          c->holds ? "" : c->best);
    }
    if (v->fits->count)
        strbuf_putc(out, '\n');
}

/* "sort: over 20 layouts +1.8 % [+1.2, +2.3]; one layout alone says between -3.0 and +5.0 %, …" */
static void put_layouts(struct strbuf *out, const struct bench_view *v)
{
    size_t start = out->length;
    for (size_t i = 0; v->layouts && v->results->side_count > 1 && i < v->results->count; i++) {
        struct layout_spread s;
        const struct judge_row *judged =
            outcome_cell(v->outcome, v->outcome->headline, bench_cell(i, 1, 2))->judged;
        if (!judged || !bench_layout_spread(&v->results->items[i], &s))
            continue;
        CLEANUP(strbuf_done) struct strbuf line = {0};
        strbuf_printf(&line, "%s: ", v->cases->items[i].label);
        strbuf_put_layouts(&line, v->names[1], &judged->comparison, &s);
        strbuf_putc(out, ' ');
        strbuf_put_wrapped(out, strbuf_text(&line), 1, v->columns);
        strbuf_putc(out, '\n');
    }
    if (out->length > start)
        strbuf_putc(out, '\n');
}

static void put_suite(struct strbuf *out, const struct bench_view *v)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    compare_put_instead(&text, &v->outcome->compare, v->outcome->headline, BENCH_THINGS);
    compare_put_suites(&text, &v->outcome->compare, BENCH_THINGS);
    for (const char *line = strbuf_text(&text); *line;) {
        size_t length = strcspn(line, "\n");
        CLEANUP(memory_freep) char *one = memory_strndup(line, length);
        strbuf_putc(out, ' ');
        strbuf_put_wrapped(out, one, 1, v->columns);
        strbuf_putc(out, '\n');
        line += length + (line[length] == '\n');
    }
    if (text.length)
        strbuf_putc(out, '\n');
}

void report_bench_text(struct strbuf *out, const struct bench_view *v)
{
    put_head(out, v);
    put_table(out, v);
    if (v->results->round_count)
        put_others(out, v);
    put_growth(out, v);
    put_layouts(out, v);
    if (v->results->side_count > 1)
        put_suite(out, v);
    for (size_t i = 0; i < v->notes->count; i++)
        strbuf_put_note_within(out, v->notes->items[i].text, v->colour, v->columns);
    if (v->notes->count)
        strbuf_putc(out, '\n');
}

void report_bench_list(struct strbuf *out, const struct bench_cases *cases)
{
    for (size_t i = 0; i < cases->count; i++)
        strbuf_printf(out, "%s\n", cases->items[i].label);
}

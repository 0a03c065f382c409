/* SPDX-License-Identifier: MIT */
/* A difference of profiles for people: the largest changes first, and every line adds up. */
#include "base/memory.h"
#include "report/profile/cost.h"
#include "report/profile/diff.h"

#include <math.h>
#include <stdio.h>

#define ROWS_DEFAULT 25
/* Rows that change by less of the larger side than this are added up in one line. */
#define SMALL_CHANGE 0.005

/* Sampling that costs more than this changes what it looks at. */
#define SLOWDOWN_MOST 1.3

/* An emulated machine's clock goes on with its instructions. */
#define EMULATED_SAMPLES "; samples there count instructions, so shares are right"

enum { TOTALS = 4, COLUMNS = 6 };

struct line {
    struct strbuf cells[COLUMNS]; /* self A, self B, change, share, totals, function */
    bool is_grey;
};

struct lines {
    bool no_shares; /* of a change that may be none */
    struct line *items;
    size_t count, capacity;
};

static void line_done(struct line *line)
{
    for (size_t c = 0; c < COLUMNS; c++)
        strbuf_done(&line->cells[c]);
}

static void lines_done(struct lines *l)
{
    for (size_t i = 0; i < l->count; i++)
        line_done(&l->items[i]);
    free(l->items);
}

static double larger_side(const struct diff *d)
{
    return fmax(fabs(d->whole.a), fabs(d->whole.b));
}

/* How many of the rows, which are sorted by their change, have a line of their own. */
static size_t shown_rows(const struct diff_view *v)
{
    const struct diff *d = v->d;
    size_t limit = v->row_limit ? v->row_limit : ROWS_DEFAULT, count = 0;
    if (v->all)
        return d->row_count;
    while (count < d->row_count && count < limit &&
           (v->row_limit || fabs(d->rows[count].self.change) >= SMALL_CHANGE * larger_side(d)))
        count++;
    return count;
}

static struct line *add_line(struct lines *l, const struct cost_unit *unit,
                             const struct attributed *a)
{
    ARRAY_PUSH(l->items, l->count, l->capacity) = (struct line){0};
    struct line *line = &l->items[l->count - 1];
    strbuf_put_cost(&line->cells[0], unit, a->a);
    strbuf_put_cost(&line->cells[1], unit, a->b);
    strbuf_put_cost_change(&line->cells[2], unit, a->change);
    if (isfinite(a->half_width))
        strbuf_printf(&line->cells[2], " ±%.*f", unit->decimals, a->half_width / unit->divisor);
    strbuf_put_share(&line->cells[3], l->no_shares ? NAN : a->share);
    return line;
}

static void put_binary(struct strbuf *out, const struct diff_row *row)
{
    const char *a = row->match.dsos[SIDE_A], *b = row->match.dsos[SIDE_B];
    strbuf_puts(out, "  ");
    if (a)
        strbuf_put_safe(out, a, strlen(a), 60);
    if (a && b && !str_eq(a, b))
        strbuf_puts(out, " → ");
    if (b && (!a || !str_eq(a, b)))
        strbuf_put_safe(out, b, strlen(b), 60);
}

static void put_function(struct strbuf *out, const struct diff_row *row)
{
    const struct profile_symbol *const *s = row->match.symbols;
    if (row->match.kind == MATCH_RENAMED && !str_eq(s[0]->name, s[1]->name)) {
        strbuf_put_safe(out, s[0]->name, strlen(s[0]->name), 120);
        strbuf_puts(out, " → ");
        strbuf_put_safe(out, s[1]->name, strlen(s[1]->name), 120);
    } else {
        strbuf_put_safe(out, row->name, strlen(row->name), 120);
    }
    put_binary(out, row);
    if (row->is_inlined[SIDE_A] && row->is_inlined[SIDE_B])
        strbuf_puts(out, " (inlined)");
    else if (row->is_inlined[SIDE_A] || row->is_inlined[SIDE_B])
        strbuf_printf(out, " (inlined in %c)", row->is_inlined[SIDE_A] ? 'A' : 'B');
    if (row->self.below_resolution)
        strbuf_puts(out, "  ~ below the resolution");
    else if (!attributed_is_told(&row->self))
        strbuf_puts(out, "  ~ could be chance");
}

static void add_rows(struct lines *l, const struct diff_view *v, const struct cost_unit *unit)
{
    const struct diff *d = v->d;
    size_t shown = shown_rows(v);
    l->no_shares = d->has_interval ? !d->whole.significant : d->whole.below_resolution;
    for (size_t i = 0; i < shown; i++) {
        const struct diff_row *row = &d->rows[i];
        struct line *line = add_line(l, unit, &row->self);
        line->is_grey = !attributed_is_told(&row->self);
        if (d->has_totals) {
            strbuf_put_cost(&line->cells[4], unit, row->total.a);
            strbuf_puts(&line->cells[4], " → ");
            strbuf_put_cost(&line->cells[4], unit, row->total.b);
        }
        put_function(&line->cells[5], row);
    }
    struct attributed rest = {.half_width = NAN, .share = 0};
    for (size_t i = shown; i < d->row_count; i++) {
        rest.a += d->rows[i].self.a;
        rest.b += d->rows[i].self.b;
    }
    rest.change = rest.b - rest.a;
    rest.share = d->whole.change != 0 ? rest.change / d->whole.change : NAN;
    if (shown < d->row_count) {
        struct line *line = add_line(l, unit, &rest);
        strbuf_printf(&line->cells[5], "(%zu other %s)", d->row_count - shown,
                      plural(d->row_count - shown, "function", "functions"));
    }
    strbuf_puts(&add_line(l, unit, &d->unattributed)->cells[5], "(unattributed)");
    strbuf_puts(&add_line(l, unit, &d->whole)->cells[5], "(the whole change)");
}

/* Every column of figures names its unit; one that the profiles do not have is "". */
static void add_heads(struct line *heads, const struct diff *d, const struct cost_unit *unit)
{
    static const struct {
        const char *text;
        bool has_unit;
    } names[COLUMNS] = {{"A self", true}, {"B self", true},      {"change", true},
                        {"share", false}, {"total A → B", true}, {"function", false}};
    for (size_t c = 0; c < COLUMNS; c++)
        if (c != TOTALS || d->has_totals)
            strbuf_printf(&heads->cells[c], "%s%s%s", names[c].text, names[c].has_unit ? ", " : "",
                          names[c].has_unit ? unit->text : "");
}

static void put_lines(struct strbuf *out, const struct lines *l, const struct line *heads,
                      const struct diff_view *v)
{
    size_t widths[COLUMNS];
    for (size_t c = 0; c < COLUMNS; c++) {
        widths[c] = str_columns(strbuf_text(&heads->cells[c]));
        for (size_t i = 0; i < l->count; i++) {
            size_t columns = str_columns(strbuf_text(&l->items[i].cells[c]));
            widths[c] = columns > widths[c] ? columns : widths[c];
        }
    }
    for (size_t i = 0; i <= l->count; i++) {
        const struct line *line = i ? &l->items[i - 1] : heads;
        bool grey = line->is_grey && v->colour;
        if (grey)
            strbuf_puts(out, "\033[90m");
        for (size_t c = 0; c < COLUMNS; c++) {
            const char *text = strbuf_text(&line->cells[c]);
            if (!widths[c])
                continue;
            strbuf_puts(out, c ? "  " : "");
            strbuf_pad(out, ' ', c + 1 < COLUMNS ? widths[c] - str_columns(text) : 0);
            strbuf_puts(out, text);
        }
        strbuf_puts(out, grey ? "\033[0m\n" : "\n");
    }
}

static void put_side(struct strbuf *out, const struct diff_view *v, unsigned side)
{
    const struct diff *d = v->d;
    char count[32];
    strbuf_printf(out, "%c: ", 'A' + side);
    strbuf_put_safe(out, v->names[side], strlen(v->names[side]), 200);
    strbuf_printf(out, "  (%s samples of %s in %zu %s",
                  format_thousands(d->samples[side], count, sizeof(count)), d->event,
                  d->run_counts[side], d->run_counts[side] == 1 ? "run" : "runs");
    if (d->is_scaled)
        strbuf_printf(out, "; measured without sampling in %zu", d->measured_counts[side]);
    strbuf_puts(out, ")\n");
}

static void put_whole(struct strbuf *out, const struct diff *d, const struct cost_unit *unit)
{
    strbuf_printf(out, "%s per %s: ", d->is_time ? "time" : d->event, d->work ? d->work : "run");
    strbuf_put_cost(out, unit, d->whole.a);
    strbuf_puts(out, " → ");
    strbuf_put_cost(out, unit, d->whole.b);
    strbuf_puts(out, ", ");
    strbuf_put_attributed(out, unit, &d->whole);
    if (d->whole.a > 0)
        strbuf_printf(out, " (%+.1f %%)", 100 * d->whole.change / d->whole.a);
    if (d->has_interval && !d->whole.significant)
        strbuf_puts(out, "; this could be chance, and so could the individual changes");
    strbuf_puts(out, "\n\n");
}

static void put_notes(struct strbuf *out, const struct diff *d)
{
    size_t below = 0;
    for (size_t i = 0; i < d->row_count; i++)
        below += d->rows[i].self.below_resolution;
    strbuf_putc(out, '\n');
    if (below)
        strbuf_printf(out, "  ~ %zu of %zu functions changed by less than sampling can resolve.\n",
                      below, d->row_count);
    if (!d->has_interval)
        strbuf_printf(out, "  * No intervals: %s.\n", d->why_no_interval);
    if (d->is_scaled)
        for (unsigned s = 0; s < SIDE_COUNT; s++) {
            double slowdown = d->sampled[s] / (s ? d->whole.b : d->whole.a);
            if (slowdown > SLOWDOWN_MOST)
                strbuf_printf(out,
                              "  * %c took %.2f times as much CPU time while being sampled: the "
                              "profile may not represent what was measured.\n",
                              'A' + s, slowdown);
        }
    if (d->user_only)
        strbuf_puts(out, "  * The kernel was not sampled: no permission (run as root, or set "
                         "kernel.perf_event_paranoid to 1 or less). Its work is unattributed.\n");
    for (const char *note = strbuf_text(&d->match.notes); *note;) {
        size_t length = strcspn(note, "\n");
        strbuf_puts(out, "  * ");
        strbuf_put_safe(out, note, length, 400);
        strbuf_puts(out, ".\n");
        note += length + (note[length] == '\n');
    }
    if (d->lacks_debug[SIDE_A] != d->lacks_debug[SIDE_B])
        strbuf_printf(out,
                      "  * %c has no debug information: its inlined functions count as part of "
                      "their callers.\n",
                      d->lacks_debug[SIDE_A] ? 'A' : 'B');
}

void report_diff_text(struct strbuf *out, const struct diff_view *v)
{
    const struct diff *d = v->d;
    struct cost_unit unit;
    cost_unit_choose(&unit, larger_side(d), d->is_time, d->work);
    if (v->label[0])
        strbuf_printf(out, "%s%s%s\n", v->colour ? "\033[1m" : "", v->label,
                      v->colour ? "\033[0m" : "");
    put_side(out, v, SIDE_A);
    put_side(out, v, SIDE_B);
    if (v->emulated)
        strbuf_printf(out, "%s%s\n", v->emulated, EMULATED_SAMPLES);
    put_whole(out, d, &unit);
    CLEANUP(lines_done) struct lines lines = {0};
    add_rows(&lines, v, &unit);
    CLEANUP(line_done) struct line heads = {0};
    add_heads(&heads, d, &unit);
    put_lines(out, &lines, &heads, v);
    put_notes(out, d);
}

/* Names may hold what Markdown would take for its own. */
static void put_markdown_text(struct strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("|*_`<>[]\\", *text))
            strbuf_putc(out, '\\');
        strbuf_putc(out, *text);
    }
}

static void put_markdown_line(struct strbuf *out, const struct line *line, const struct diff *d)
{
    strbuf_puts(out, "|");
    for (size_t c = 0; c < COLUMNS; c++) {
        if (c == TOTALS && !d->has_totals)
            continue;
        strbuf_putc(out, ' ');
        put_markdown_text(out, strbuf_text(&line->cells[c]));
        strbuf_puts(out, " |");
    }
    strbuf_putc(out, '\n');
}

void report_diff_markdown(struct strbuf *out, const struct diff_view *v)
{
    const struct diff *d = v->d;
    struct cost_unit unit;
    cost_unit_choose(&unit, larger_side(d), d->is_time, d->work);
    CLEANUP(lines_done) struct lines lines = {0};
    add_rows(&lines, v, &unit);
    CLEANUP(line_done) struct line heads = {0};
    add_heads(&heads, d, &unit);
    put_markdown_line(out, &heads, d);
    strbuf_printf(out, "|---:|---:|---:|---:|%s---|\n", d->has_totals ? "---:|" : "");
    for (size_t i = 0; i < lines.count; i++)
        put_markdown_line(out, &lines.items[i], d);
    if (!d->has_interval)
        strbuf_printf(out, "\nNo intervals: %s.\n", d->why_no_interval);
    if (v->emulated)
        strbuf_printf(out, "\n%s%s.\n", v->emulated, EMULATED_SAMPLES);
}

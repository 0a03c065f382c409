/* SPDX-License-Identifier: MIT */
/* A short, honest table: headlines first, then what changed, grouped, each fact once. */
#include "base/memory.h"
#include "report/text/compare.h"
#include "report/text/experiment.h"
#include "report/text/nodes.h"
#include "report/text/stat.h"

#include <math.h>
#include <stdio.h>

/* Of what only watched the machine, smaller changes are not worth a line; of shares of a profile
 * these points. */
#define SMALL_CHANGE 0.02
#define SMALL_POINTS 0.5

enum { NAME_BYTES = 2000, ALSO_BYTES = 60, FOLD_FROM = 12, NAME_LEAST = 10 };

static const char bold[] = "\033[1m", plain[] = "\033[0m";

static bool is_small(const struct compare_row *row)
{
    double change = compare_change(row);
    if (str_has_prefix(row->metric->name, "perf-profile.") && str_eq(row->metric->unit, "%"))
        return fabs(row->judged.new.median - row->judged.base.median) < SMALL_POINTS;
    return str_eq(row->metric->kind, "monitor") && fabs(change) < SMALL_CHANGE;
}

const char *report_compare_emulated(const struct compare *c)
{
    if (c->base->emulated && c->new->emulated)
        return c->base->emulated;
    return c->base->emulated || c->new->emulated
               ? "one side was emulated, the other was not: only counts of the same kind compare"
               : NULL;
}

bool report_compare_shows(const struct compare_view *v, const struct compare_row *row)
{
    if (v->only && !strstr(row->metric->name, v->only))
        return false;
    if (v->all || v->only || row->judged.headline)
        return true;
    return row->judged.changed && row->folded_into == COMPARE_NONE && !is_small(row);
}

/* "1.34 [1.31, 1.37]": the ratio, or the difference where there is no ratio. */
static void put_ratio(struct strbuf *out, const struct compare_row *row)
{
    const struct comparison *c = &row->judged.comparison;
    CLEANUP(strbuf_done) struct strbuf estimate = {0}, low = {0}, high = {0};
    if (c->scale == COMPARISON_RATIO) {
        int decimals = c->estimate >= 100 ? 0 : c->estimate >= 10 ? 2 : 3;
        strbuf_printf(out, "%.*f×", decimals, c->estimate);
        if (comparison_shows_interval(c))
            strbuf_printf(out, " [%.*f, %.*f]", decimals, c->low, decimals, c->high);
        return;
    }
    strbuf_put_measured(&estimate, c->estimate, row->metric->unit);
    strbuf_printf(out, "%s%s", c->estimate >= 0 ? "+" : "", strbuf_text(&estimate));
    if (comparison_shows_interval(c)) {
        strbuf_put_measured(&low, c->low, row->metric->unit);
        strbuf_put_measured(&high, c->high, row->metric->unit);
        strbuf_printf(out, " [%s, %s]", strbuf_text(&low), strbuf_text(&high));
    }
}

/* ---- bars ---- */

static void reach_for(struct ratio_scale *s, double ratio)
{
    if (ratio > 0 && isfinite(ratio))
        s->reach = fmax(s->reach, fabs(log(ratio)));
}

void ratio_scale_take(struct ratio_scale *s, const struct comparison *c)
{
    if (c->scale != COMPARISON_RATIO)
        return;
    reach_for(s, c->estimate);
    if (comparison_shows_interval(c)) {
        reach_for(s, c->low);
        reach_for(s, c->high);
    }
}

static size_t place(const struct ratio_scale *s, double ratio)
{
    const double half = RATIO_BAR_HALF;
    return (size_t)fmin(fmax(rint(half + half * log(ratio) / s->reach), 0), RATIO_BAR - 1);
}

void strbuf_put_ratio_bar(struct strbuf *out, const struct ratio_scale *s,
                          const struct comparison *c)
{
    const char *signs[RATIO_BAR];
    for (size_t i = 0; i < RATIO_BAR; i++)
        signs[i] = i == RATIO_BAR_HALF ? "┊" : " ";
    if (c && c->scale == COMPARISON_RATIO && c->estimate > 0 && s->reach > 0) {
        bool has_interval = comparison_shows_interval(c) && c->low > 0;
        for (size_t i = 0; i < RATIO_BAR && has_interval; i++)
            if (i >= place(s, c->low) && i <= place(s, c->high))
                signs[i] = "─";
        bool is_beyond = fabs(log(c->estimate)) > s->reach * (1 + 1e-9);
        signs[place(s, c->estimate)] = !is_beyond ? "●" : c->estimate > 1 ? "»" : "«";
    }
    for (size_t i = 0; i < RATIO_BAR; i++)
        strbuf_puts(out, signs[i]);
}

/* ---- the table ---- */

/* How sure: in words for few, else the (adjusted) probability of chance. */
static void put_sure(struct strbuf *out, const struct compare_row *row)
{
    if (!comparison_has_interval(&row->judged.comparison))
        strbuf_puts(out, "too few");
    else if (isnan(row->judged.p_adjusted))
        strbuf_puts(out, row->judged.tested ? "-" : row->is_negligible ? "untested" : "same");
    else if (row->judged.p_adjusted < 0.001)
        strbuf_puts(out, "p<0.001");
    else
        strbuf_printf(out, "p=%.2g", row->judged.p_adjusted);
}

static void put_count(struct strbuf *out, const struct compare_row *row)
{
    const struct comparison *c = &row->judged.comparison;
    if (c->paired)
        strbuf_printf(out, "%zu", c->base_count);
    else
        strbuf_printf(out, "%zu+%zu", c->base_count, c->new_count);
}

enum { COLUMNS = 7 };

/* A table whose columns are as wide as what stands in them. */
struct table {
    char **cells; /* COLUMNS per row; NULL in the first marks a heading in the second */
    size_t count, capacity;
    const struct compare_row **rows; /* of each row; NULL for a heading */
    size_t row_count, row_capacity;
    struct ratio_scale scale;
};

static void add_cell(struct table *t, const char *text)
{
    ARRAY_PUSH(t->cells, t->count, t->capacity) = text ? memory_strdup(text) : NULL;
}

static void add_heading(struct table *t, const char *text)
{
    ARRAY_PUSH(t->rows, t->row_count, t->row_capacity) = NULL;
    add_cell(t, NULL);
    add_cell(t, text);
    for (size_t i = 2; i < COLUMNS; i++)
        add_cell(t, "");
}

static void table_done(struct table *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->cells[i]);
    free(t->cells);
    free(t->rows);
}

static void put_folded(struct strbuf *name, const struct compare *c, size_t index)
{
    size_t shown = 0, more = c->rows[index].folded_count;
    for (size_t i = 0; i < c->row_count && shown < 3; i++)
        if (c->rows[i].folded_into == index && strlen(c->rows[i].metric->name) <= ALSO_BYTES)
            strbuf_printf(name, "%s%s", shown++ ? ", " : " (also ", c->rows[i].metric->name);
    if (shown)
        strbuf_printf(name, "%s)", more > shown ? ", …" : "");
    else if (more) /* call chains */
        strbuf_printf(name, " (and %zu more that changed alike)", more);
}

static void add_row(struct table *t, const struct compare *c, size_t index)
{
    const struct compare_row *row = &c->rows[index];
    struct strbuf texts[COLUMNS] = {0};
    ARRAY_PUSH(t->rows, t->row_count, t->row_capacity) = row;
    strbuf_put_measured(&texts[0], row->judged.base.median, row->metric->unit);
    strbuf_put_measured(&texts[1], row->judged.new.median, row->metric->unit);
    put_ratio(&texts[2], row);
    put_count(&texts[3], row);
    put_sure(&texts[4], row);
    strbuf_put_safe(&texts[5], row->metric->name, strlen(row->metric->name), NAME_BYTES);
    put_folded(&texts[5], c, index);
    if (row->judged.headline)
        strbuf_put_safe(&texts[6], row->judged.verdict.text, strlen(row->judged.verdict.text), 200);
    for (size_t i = 0; i < COLUMNS; i++) {
        add_cell(t, strbuf_text(&texts[i]));
        strbuf_done(&texts[i]);
    }
}

static void find_widths(const struct table *t, const char *const *heads, size_t *widths)
{
    for (size_t i = 0; i < COLUMNS; i++)
        widths[i] = strlen(heads[i]);
    for (size_t i = 0; i < t->count; i++) {
        bool heading = !t->cells[i - i % COLUMNS];
        size_t columns = !heading && t->cells[i] ? str_columns(t->cells[i]) : 0;
        widths[i % COLUMNS] = columns > widths[i % COLUMNS] ? columns : widths[i % COLUMNS];
    }
}

/* The name and the verdict, behind the figures where they fit, else on lines of their own. */
static void put_row_words(struct strbuf *out, char *const *cells, size_t used, size_t columns)
{
    size_t name = str_columns(cells[5]), verdict = str_columns(cells[6]);
    if (!columns || used + 2 + name <= columns) {
        strbuf_printf(out, "  %s", cells[5]);
        used += 2 + name;
    } else {
        strbuf_puts(out, "\n    ");
        strbuf_put_wrapped(out, cells[5], 4, columns);
        used = columns;
    }
    if (!verdict)
        return;
    if (!columns || used + 2 + verdict <= columns) {
        strbuf_printf(out, "  %s", cells[6]);
    } else {
        strbuf_puts(out, "\n    ");
        strbuf_put_wrapped(out, cells[6], 4, columns);
    }
}

/* Where not even the figures fit side by side. */
static void put_narrow_row(struct strbuf *out, char *const *cells, size_t columns)
{
    CLEANUP(memory_freep)
    char *figures =
        memory_printf("%s → %s, %s, n = %s, %s", cells[0], cells[1], cells[2], cells[3], cells[4]);
    strbuf_put_wrapped(out, cells[5], 2, columns);
    strbuf_puts(out, "\n  ");
    strbuf_put_wrapped(out, figures, 2, columns);
    if (*cells[6]) {
        strbuf_puts(out, "\n  ");
        strbuf_put_wrapped(out, cells[6], 2, columns);
    }
}

static void put_table(struct strbuf *out, const struct table *t, const struct compare_view *v)
{
    bool colour = v->colour;
    size_t columns = v->columns;
    static const char *const heads[COLUMNS] = {"base",   "new", "new / base", "n", "chance",
                                               "metric", ""};
    size_t widths[COLUMNS], used = 8;
    find_widths(t, heads, widths);
    for (size_t i = 0; i < 5; i++)
        used += widths[i];
    bool narrow = columns && used + NAME_LEAST > columns;
    bool bars = v->bars && t->scale.reach > 0 && used + 2 + RATIO_BAR + NAME_LEAST <= columns;
    used += bars ? RATIO_BAR + 2 : 0;
    for (size_t i = 0; i < 6 && !narrow; i++) {
        strbuf_pad(out, ' ', (i < 4 ? widths[i] - strlen(heads[i]) : 0) + (i ? 2 : 0));
        strbuf_puts(out, heads[i]);
        if (i == 4)
            strbuf_pad(out, ' ', widths[4] - strlen(heads[4]) + (bars ? RATIO_BAR + 2 : 0));
    }
    strbuf_puts(out, narrow ? "" : "\n");
    for (size_t row = 0; row < t->count; row += COLUMNS) {
        char *const *cells = t->cells + row;
        if (!cells[0]) {
            strbuf_printf(out, "%s%s%s\n", colour ? bold : "", cells[1], colour ? plain : "");
            continue;
        }
        if (narrow) {
            put_narrow_row(out, cells, columns);
            strbuf_putc(out, '\n');
            continue;
        }
        for (size_t i = 0; i < 5; i++) {
            size_t gap = widths[i] - str_columns(cells[i]);
            strbuf_pad(out, ' ', (i ? 2 : 0) + (i < 4 ? gap : 0));
            strbuf_puts(out, cells[i]);
            if (i == 4)
                strbuf_pad(out, ' ', gap);
        }
        if (bars) {
            strbuf_puts(out, "  ");
            strbuf_put_ratio_bar(out, &t->scale, &t->rows[row / COLUMNS]->judged.comparison);
        }
        put_row_words(out, cells, used, columns);
        strbuf_putc(out, '\n');
    }
}

/* The monitor or kind that the metric belongs to. */
static void group_of(const struct compare_row *row, char *group, size_t size)
{
    if (str_eq(row->metric->kind, "monitor"))
        snprintf(group, size, "%.*s", (int)strcspn(row->metric->name, "."), row->metric->name);
    else
        snprintf(group, size, "%s",
                 str_eq(row->metric->kind, "metric")    ? "the program's own"
                 : str_eq(row->metric->kind, "counter") ? "counters"
                                                        : "time and memory");
}

static bool is_listed(const struct compare_view *v, size_t index, size_t pair)
{
    const struct compare_row *row = &v->c->rows[index];
    return row->pair == pair && !row->judged.headline && report_compare_shows(v, row);
}

static void add_pair_rows(struct table *t, const struct compare_view *v, size_t pair)
{
    size_t count = v->c->row_count;
    CLEANUP(memory_freep) bool *done = memory_zalloc(count + 1, sizeof(*done));
    for (size_t i = 0; i < count; i++) {
        if (done[i] || !is_listed(v, i, pair))
            continue;
        char group[64], other[64];
        group_of(&v->c->rows[i], group, sizeof(group));
        CLEANUP(memory_freep)
        char *heading = memory_printf("%s%s%s", group, v->c->pairs[pair].label[0] ? ", " : "",
                                      v->c->pairs[pair].label);
        add_heading(t, heading);
        for (size_t k = i; k < count; k++) { /* what was first seen later comes along */
            group_of(&v->c->rows[k], other, sizeof(other));
            if (done[k] || !str_eq(group, other) || !is_listed(v, k, pair))
                continue;
            add_row(t, v->c, k);
            done[k] = true;
        }
    }
}

/* How many changed, of the headlines and of the others: they are held to different errors. */
static void put_counts(struct strbuf *out, const struct compare *c)
{
    size_t headlines = 0, changed = 0;
    for (size_t i = 0; i < c->row_count; i++) {
        const struct judge_row *row = &c->rows[i].judged;
        headlines += row->headline && row->tested;
        changed += row->headline && row->changed;
    }
    strbuf_putc(out, '\n');
    if (headlines)
        strbuf_printf(out,
                      "%zu of %zu headline %s changed; the chance that any of these is an error is "
                      "at most 5 %%.\n",
                      changed, headlines, plural(headlines, "row", "rows"));
    if (c->test_count || !headlines)
        strbuf_printf(out,
                      "%zu of %zu %smetrics tested changed; of these at most 5 %% are expected to "
                      "be chance (Benjamini-Hochberg).\n",
                      c->changed_count, c->test_count, headlines ? "other " : "");
}

static void put_footer(struct strbuf *out, const struct compare_view *v)
{
    const struct compare *c = v->c;
    size_t small = 0, folded = 0, few = 0;
    for (size_t i = 0; i < c->row_count; i++) {
        const struct compare_row *row = &c->rows[i];
        small += row->judged.changed && !row->judged.headline && is_small(row);
        folded += row->folded_into != COMPARE_NONE;
        few += !comparison_has_interval(&row->judged.comparison);
    }
    put_counts(out, c);
    if (small || folded)
        strbuf_printf(out,
                      "Not shown: %zu that %s the same as another, %zu %s of the "
                      "machine's figures below 2 %% (--all).\n",
                      folded, plural(folded, "says", "say"), small,
                      plural(small, "change", "changes"));
    if (few == c->row_count)
        strbuf_puts(out,
                    "There are too few runs for any 95 % interval: nothing can be told yet.\n");
    if (c->unmatched_base || c->unmatched_new)
        strbuf_printf(out, "%zu %s of the base and %zu of the new one have no partner.\n",
                      c->unmatched_base, plural(c->unmatched_base, "cell", "cells"),
                      c->unmatched_new);
    if (!c->within)
        strbuf_printf(out,
                      "Two experiments: anything else that changed on the %s in between is part of "
                      "these differences.\n",
                      c->base->node_count && c->new->node_count ? "nodes" : "machine");
}

/* That of the headlines: a counter that is a hundred times as much must not hide them. */
static void find_scale(struct table *t)
{
    for (int pass = 0; pass < 2 && !(t->scale.reach > 0); pass++)
        for (size_t i = 0; i < t->row_count; i++)
            if (t->rows[i] && (t->rows[i]->judged.headline || pass))
                ratio_scale_take(&t->scale, &t->rows[i]->judged.comparison);
}

/* What moved first; of many that did not, only how many they are, which is returned. */
static size_t add_headlines(struct table *t, const struct compare_view *v)
{
    const struct compare *c = v->c;
    size_t moved = 0, still = 0, last = COMPARE_NONE;
    for (size_t i = 0; i < c->row_count; i++)
        if (c->rows[i].judged.headline && report_compare_shows(v, &c->rows[i])) {
            moved += c->rows[i].judged.changed;
            still += !c->rows[i].judged.changed;
        }
    bool folds = !v->all && !v->only && moved && still > FOLD_FROM;
    for (int pass = 0; pass < (folds ? 1 : 2); pass++)
        for (size_t i = 0; i < c->row_count; i++) {
            const struct compare_row *row = &c->rows[i];
            if (!row->judged.headline || !report_compare_shows(v, row) ||
                row->judged.changed != (pass == 0))
                continue;
            if (row->pair != last && c->pairs[row->pair].label[0])
                add_heading(t, c->pairs[row->pair].label);
            last = row->pair;
            add_row(t, c, i);
        }
    return folds ? still : 0;
}

/* Failed runs of both sides, and what did not end. */
static void put_losses(struct strbuf *out, const struct compare_view *v)
{
    const struct dataset *sides[2] = {v->c->base, v->c->new};
    for (size_t i = 0; i < (v->c->within ? 1 : 2); i++) {
        CLEANUP(strbuf_done) struct strbuf text = {0};
        report_losses_text(&text, sides[i], v->colour);
        if (text.length)
            strbuf_printf(out, "%s%s",
                          v->c->within ? ""
                          : i          ? "new:"
                                       : "base:",
                          strbuf_text(&text));
    }
    if (out->length)
        strbuf_putc(out, '\n');
}

void report_compare_text(struct strbuf *out, const struct compare_view *v)
{
    const struct compare *c = v->c;
    strbuf_puts(out, "base: ");
    strbuf_put_safe(out, c->base_name, strlen(c->base_name), 200);
    strbuf_puts(out, "\nnew:  ");
    strbuf_put_safe(out, c->new_name, strlen(c->new_name), 200);
    strbuf_puts(out, "\n");
    put_losses(out, v);
    CLEANUP(table_done) struct table t = {0};
    size_t folded = add_headlines(&t, v);
    for (size_t p = 0; p < c->pair_count; p++)
        add_pair_rows(&t, v, p);
    find_scale(&t);
    put_table(out, &t, v);
    if (folded)
        strbuf_printf(out, "… %zu headline %s not change for certain; --all lists them\n", folded,
                      plural(folded, "row did", "rows did"));
    CLEANUP(strbuf_done) struct strbuf suites = {0};
    compare_put_suites(&suites, c, NULL);
    if (suites.length)
        strbuf_printf(out, "\n%s", strbuf_text(&suites));
    compare_put_layouts(out, c);
    put_footer(out, v);
    report_compare_nodes_text(out, c);
    if (report_compare_emulated(c))
        strbuf_printf(out, "%s\n", report_compare_emulated(c));
}

void report_compare_markdown(struct strbuf *out, const struct compare_view *v)
{
    const struct compare *c = v->c;
    strbuf_puts(out, "| base | new | new / base | n | chance | metric | |\n"
                     "|---:|---:|---:|---:|---|---|---|\n");
    for (size_t i = 0; i < c->row_count; i++) {
        const struct compare_row *row = &c->rows[i];
        if (!report_compare_shows(v, row))
            continue;
        strbuf_puts(out, "| ");
        strbuf_put_measured(out, row->judged.base.median, row->metric->unit);
        strbuf_puts(out, " | ");
        strbuf_put_measured(out, row->judged.new.median, row->metric->unit);
        strbuf_puts(out, " | ");
        put_ratio(out, row);
        strbuf_puts(out, " | ");
        put_count(out, row);
        strbuf_puts(out, " | ");
        put_sure(out, row);
        strbuf_printf(out, " | %s%s%s | %s |\n", row->metric->name,
                      c->pairs[row->pair].label[0] ? ", " : "", c->pairs[row->pair].label,
                      row->judged.headline ? row->judged.verdict.text : "");
    }
    CLEANUP(strbuf_done) struct strbuf suites = {0};
    compare_put_suites(&suites, c, NULL);
    if (suites.length)
        strbuf_printf(out, "\n%s", strbuf_text(&suites));
    CLEANUP(strbuf_done) struct strbuf layouts = {0};
    compare_put_layouts(&layouts, c);
    if (layouts.length)
        strbuf_printf(out, "\n%s", strbuf_text(&layouts));
    if (report_compare_emulated(c))
        strbuf_printf(out, "\n%s\n", report_compare_emulated(c));
}

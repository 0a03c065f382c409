/* SPDX-License-Identifier: MIT */
/* The table behind the verdict. */
#include "analysis/losses.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/html/html.h"
#include "report/text/experiment.h"
#include "stats/tails.h"

#include <math.h>
#include <stdio.h>

enum {
    ROWS_MAX = 240,  /* more than these are not laid out at once: it would take the browser long */
    ROWS_FIRST = 80, /* then so many stand in the page; its script adds the others from the data */
    LABEL_COLUMNS = 120
};

void html_put_measured(struct strbuf *out, double value, const char *unit)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_put_measured(&text, value, unit);
    strbuf_put_markup(out, strbuf_text(&text));
}

static void put_ratio(struct strbuf *out, const struct page_row *r, const char *unit)
{
    const struct comparison *c = &r->comparison;
    bool interval = comparison_shows_interval(c);
    if (c->scale == COMPARISON_RATIO) {
        int decimals = c->estimate >= 100 ? 0 : c->estimate >= 10 ? 2 : 3;
        strbuf_printf(out, "%.*f×", decimals, c->estimate);
        if (interval)
            strbuf_printf(out, " [%.*f, %.*f]", decimals, c->low, decimals, c->high);
        return;
    }
    strbuf_puts(out, c->estimate >= 0 ? "+" : "");
    html_put_measured(out, c->estimate, unit);
    if (interval) {
        strbuf_puts(out, " [");
        html_put_measured(out, c->low, unit);
        strbuf_puts(out, ", ");
        html_put_measured(out, c->high, unit);
        strbuf_puts(out, "]");
    }
}

static void put_number_cell(struct strbuf *out, double value, const char *unit)
{
    bool is_count = fabs(value) < 1e15 && value == rint(value);
    if (isfinite(value))
        strbuf_printf(out, is_count ? "<td data-v=\"%.0f\">" : "<td data-v=\"%.6g\">", value);
    else
        strbuf_puts(out, "<td>");
    html_put_measured(out, value, unit);
    strbuf_puts(out, "</td>");
}

/* The verdict, and what speaks against trusting it. */
static void put_verdict_cell(struct strbuf *out, const struct page *page, const struct page_row *r)
{
    const struct dataset *d = page->view;
    CLEANUP(strbuf_done) struct strbuf caveat = {0};
    losses_put_caveat(&caveat, r->base_cell == DATASET_NONE ? NULL : &d->cells[r->base_cell],
                      &d->cells[r->cell]);
    if (r->compared) {
        strbuf_printf(out, "<td class=\"%s\">%s ", html_kind(r->verdict.kind)->class,
                      html_kind(r->verdict.kind)->sign);
        strbuf_put_markup(out, r->verdict.text);
    } else {
        strbuf_puts(out, "<td>–");
    }
    if (caveat.length) {
        strbuf_puts(out, " <small class=\"caveat\">✕ ");
        strbuf_put_markup(out, strbuf_text(&caveat));
        strbuf_puts(out, "</small>");
    }
    strbuf_puts(out, "</td>");
}

/* The ends of an interval, for sorting and for CSV. */
static void put_ends(struct strbuf *out, double low, double high)
{
    if (isfinite(low) && isfinite(high))
        strbuf_printf(out, " data-l=\"%.6g\" data-h=\"%.6g\"", low, high);
}

static void put_row(struct strbuf *out, const struct page *page, size_t index)
{
    const struct page_row *r = &page->rows[index];
    const struct store_metric *m = &page->view->metrics[r->metric];
    strbuf_printf(out,
                  "<tr data-r=\"%zu\"><th scope=\"row\"><button type=\"button\" "
                  "class=\"open\">▸</button>",
                  index);
    html_put_shortened(out, r->label, LABEL_COLUMNS);
    strbuf_puts(out, "</th><td>");
    html_put_shortened(out, m->name, LABEL_COLUMNS);
    strbuf_puts(out, "</td>");
    put_verdict_cell(out, page, r);
    if (r->compared) {
        const struct comparison *c = &r->comparison;
        strbuf_printf(out, "<td data-v=\"%.6g\"", c->estimate);
        if (comparison_shows_interval(c))
            put_ends(out, c->low, c->high);
        strbuf_puts(out, c->scale == COMPARISON_RATIO ? ">" : " data-of=\"difference\">");
        put_ratio(out, r, m->unit);
        strbuf_puts(out, "</td>");
        put_number_cell(out, r->base.median, m->unit);
    } else {
        strbuf_puts(out, "<td></td><td></td>");
    }
    put_number_cell(out, r->new.median, m->unit);
    if (r->interval.level < HTML_INTERVAL_LEVEL) {
        strbuf_puts(out, "<td>too few runs");
    } else {
        strbuf_puts(out, "<td");
        put_ends(out, r->interval.low, r->interval.high);
        strbuf_puts(out, ">[");
        html_put_measured(out, r->interval.low, m->unit);
        strbuf_puts(out, ", ");
        html_put_measured(out, r->interval.high, m->unit);
        strbuf_putc(out, ']');
    }
    strbuf_printf(out, "</td><td>%zu</td></tr>\n", r->new.count);
}

/* A cell without any value has a row all the same. */
static void put_lost_rows(struct strbuf *out, const struct dataset *d)
{
    for (size_t c = 0; c < d->cell_count; c++) {
        if (!losses_is_lost(&d->cells[c]))
            continue;
        CLEANUP(strbuf_done) struct strbuf words = {0};
        losses_put_cell(&words, &d->cells[c]);
        strbuf_puts(out, "<tr class=\"lost\"><th scope=\"row\">");
        html_put_shortened(out, d->cells[c].label, LABEL_COLUMNS);
        strbuf_puts(out, "</th><td>–</td><td class=\"worse\">✕ ");
        strbuf_put_markup(out, strbuf_text(&words));
        strbuf_puts(out, "</td><td></td><td></td><td></td><td></td><td>0</td></tr>\n");
    }
}

/* Whether how the values of the row lie is told: those of headlines. */
static bool is_told(const struct page_row *r)
{
    return r->headline && r->new.count >= 2;
}

static void put_distribution(struct strbuf *out, const struct page *page, const struct page_row *r)
{
    const struct store_metric *m = &page->view->metrics[r->metric];
    strbuf_puts(out, "<tr><th scope=\"row\">");
    html_put_shortened(out, r->label, LABEL_COLUMNS);
    strbuf_puts(out, "</th><td>");
    html_put_shortened(out, m->name, LABEL_COLUMNS);
    strbuf_puts(out, "</td>");
    double figures[] = {r->new.mean, r->new.min, r->new.q1, r->new.q3, r->new.max};
    for (size_t k = 0; k < ARRAY_COUNT(figures); k++)
        put_number_cell(out, figures[k], m->unit);
    struct dataset_column c = dataset_column(page->view, r->metric, r->cell);
    char text[96];
    slow_runs_alone(c.values, c.count, m->facts.better != METRIC_HIGHER, text, sizeof(text));
    strbuf_printf(out, "<td>%s</td></tr>\n", text);
}

/* ---- which rows stand in the page, and which in its data ---- */

static bool in_table(const struct page_row *r)
{
    return !r->is_noise;
}

/* How many of the rows that belong into a table stand in the page. */
static size_t first_count(const struct page *page, bool (*belongs)(const struct page_row *))
{
    size_t count = 0;
    for (size_t i = 0; i < page->row_count; i++)
        count += belongs(&page->rows[i]);
    return count > ROWS_MAX ? ROWS_FIRST : count;
}

/* The rows of the table from one on, up to another; returns how many there are in all. */
static size_t put_rows(struct strbuf *out, const struct page *page, size_t from, size_t to)
{
    size_t at = 0;
    for (size_t i = 0; i < page->row_count; i++) {
        if (!in_table(&page->rows[i]))
            continue;
        if (at >= from && at < to)
            put_row(out, page, i);
        at++;
    }
    return at;
}

static size_t put_told(struct strbuf *out, const struct page *page, size_t from, size_t to)
{
    size_t at = 0;
    for (size_t i = 0; i < page->row_count; i++) {
        if (!is_told(&page->rows[i]))
            continue;
        if (at >= from && at < to)
            put_distribution(out, page, &page->rows[i]);
        at++;
    }
    return at;
}

/* For those whose browser runs no scripts; the script removes it. */
static void put_later(struct strbuf *out, const char *id, size_t count)
{
    if (count)
        strbuf_printf(out,
                      "<p class=\"note\" id=\"%s\">%zu more %s in the data: the page’s script "
                      "puts %s here.</p>\n",
                      id, count, plural(count, "row is", "rows are"), plural(count, "it", "them"));
}

/* How the values of the headlines lie. */
static void put_distributions(struct strbuf *out, const struct page *page)
{
    size_t first = first_count(page, is_told);
    if (!first)
        return;
    strbuf_puts(out, "<details id=\"distributions\"><summary>All runs: mean, extremes, "
                     "quartiles</summary>\n<div class=\"scroll\" tabindex=\"0\" "
                     "role=\"region\" aria-label=\"All runs\"><table><thead><tr>"
                     "<th scope=\"col\">Cell</th><th scope=\"col\">Metric</th>"
                     "<th scope=\"col\">Mean</th><th scope=\"col\">Min</th>"
                     "<th scope=\"col\">25 %</th><th scope=\"col\">75 %</th>"
                     "<th scope=\"col\">Max</th><th scope=\"col\">Standing out</th>"
                     "</tr></thead><tbody>\n");
    size_t all = put_told(out, page, 0, first);
    strbuf_puts(out, "</tbody></table></div>\n");
    put_later(out, "later-runs", all - first);
    strbuf_puts(out, "</details>\n");
}

/* A choice of the factors that vary. */
static void put_grouping(struct strbuf *out, const struct dataset *d)
{
    size_t shown = 0;
    for (size_t f = 0; f < d->factor_count; f++) {
        bool varies = false;
        for (size_t c = 1; c < d->cell_count && !varies; c++)
            varies = !str_eq(d->cells[c].levels[f], d->cells[0].levels[f]);
        if (!varies)
            continue;
        strbuf_puts(out, shown++ ? ""
                                 : "<label>Group by <select id=\"group\"><option value=\"\">"
                                   "nothing</option>");
        strbuf_puts(out, "<option>");
        strbuf_put_markup(out, d->factors[f]);
        strbuf_puts(out, "</option>");
    }
    strbuf_puts(out, shown ? "</select></label> " : "");
}

/* Whether no row has anything to say about a comparison, or about failures. */
static bool is_alone(const struct page *page)
{
    for (size_t i = 0; i < page->row_count; i++)
        if (page->rows[i].compared)
            return false;
    for (size_t c = 0; c < page->view->cell_count; c++)
        if (page->view->cells[c].failed_count)
            return false;
    return true;
}

void html_put_table(struct strbuf *out, const struct page *page)
{
    size_t noise = 0, first = first_count(page, in_table);
    bool alone = is_alone(page);
    for (size_t i = 0; i < page->row_count; i++)
        noise += page->rows[i].is_noise;
    strbuf_puts(out, "<section id=\"table\" aria-labelledby=\"h-table\"><h2 "
                     "id=\"h-table\">Table</h2>\n<div class=\"tools\" id=\"table-tools\" hidden>"
                     "<label>Filter <input type=\"search\" id=\"filter\"></label> "
                     "<label><input type=\"checkbox\" id=\"noise\" checked> Hide noise</label> ");
    put_grouping(out, page->view);
    strbuf_puts(out, "<span id=\"table-count\" role=\"status\"></span></div>\n"
                     "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                     "aria-label=\"Rows\"><table id=\"rows\"");
    strbuf_puts(out, alone ? " class=\"alone\"" : "");
    strbuf_puts(out, "><thead><tr>"
                     "<th scope=\"col\">Cell</th><th scope=\"col\">Metric</th>"
                     "<th scope=\"col\">Verdict</th>"
                     "<th scope=\"col\" data-range=\"ratio\">New / base</th>"
                     "<th scope=\"col\">Base</th><th scope=\"col\">Median</th>"
                     "<th scope=\"col\" data-range=\"interval\">95 % interval</th>"
                     "<th scope=\"col\">Runs</th>"
                     "</tr></thead><tbody>\n");
    size_t all = put_rows(out, page, 0, first);
    put_lost_rows(out, page->view);
    strbuf_puts(out, "</tbody></table></div>\n");
    put_later(out, "later", all - first);
    strbuf_puts(out, "<p class=\"note\">");
    if (noise)
        strbuf_printf(
            out, "%zu more %s (other metrics%s) %s in the data; untick “Hide noise” to show %s. ",
            noise, plural(noise, "row", "rows"), alone ? "" : " that did not change beyond chance",
            plural(noise, "is", "are"), plural(noise, "it", "them"));
    if (!alone)
        strbuf_puts(out, "For metrics that are not headlines, a change counts only after the "
                         "Benjamini–Hochberg correction at 5 %.");
    strbuf_puts(out, "</p>\n");
    put_distributions(out, page);
    strbuf_puts(out, "</section>\n");
}

/* Four digits: what is shown, not the data. */
static void put_short(struct json *j, double value)
{
    char text[32];
    snprintf(text, sizeof(text), "%.4g", value);
    json_double(j, NULL, isfinite(value) ? strtod(text, NULL) : NAN);
}

/* The rows that do not stand in the page, as they would stand there. */
static void put_rest(struct json *j, const struct page *page)
{
    CLEANUP(strbuf_done) struct strbuf rows = {0}, told = {0};
    put_rows(&rows, page, first_count(page, in_table), page->row_count);
    put_told(&told, page, first_count(page, is_told), page->row_count);
    if (rows.length)
        json_string(j, "later", strbuf_text(&rows));
    if (told.length)
        json_string(j, "later_runs", strbuf_text(&told));
}

void html_put_rows_json(struct strbuf *out, const struct page *page)
{
    struct json j = {.out = out, .compact = true};
    json_object(&j, NULL);
    json_bool(&j, "joint", page->is_joint);
    json_array(&j, "rows");
    for (size_t i = 0; i < page->row_count; i++) {
        const struct page_row *r = &page->rows[i];
        json_array(&j, NULL);
        json_u64(&j, NULL, r->metric);
        json_u64(&j, NULL, r->cell);
        json_i64(&j, NULL, r->base_cell == DATASET_NONE ? -1 : (int64_t)r->base_cell);
        json_u64(&j, NULL, r->is_noise);
        if (r->is_noise) { /* the others stand in the page itself */
            const struct comparison *c = &r->comparison;
            json_i64(&j, NULL, r->compared ? (int64_t)r->verdict.kind : -1);
            if (r->compared) {
                json_u64(&j, NULL, c->scale == COMPARISON_RATIO);
                put_short(&j, c->estimate);
                put_short(&j, comparison_shows_interval(c) ? c->low : NAN);
                put_short(&j, comparison_shows_interval(c) ? c->high : NAN);
            }
        }
        json_end(&j);
    }
    json_end(&j);
    json_array(&j, "metrics");
    for (size_t m = 0; page->view && m < page->view->metric_count; m++) {
        json_array(&j, NULL);
        json_string(&j, NULL, page->view->metrics[m].name);
        json_string(&j, NULL, page->view->metrics[m].unit);
        json_end(&j);
    }
    json_end(&j);
    put_rest(&j, page);
    json_end(&j);
}

/* SPDX-License-Identifier: MIT */
/* Why it changed: what `assay explain` found, and the functions of two sets of recordings. */
#include "base/memory.h"
#include "report/html/html.h"

#include <math.h>
#include <stdio.h>

enum { REASONS_SHOWN = 6, REASONS_MAX = 40 };

static void put_paragraph(struct strbuf *out, const char *class, const char *text, size_t length)
{
    strbuf_printf(out, "<p class=\"%s\">", class);
    strbuf_put_markup_n(out, text, length);
    strbuf_puts(out, "</p>\n");
}

/* The words begin with the name, which is printed in bold. */
static void put_reason(struct strbuf *out, const struct explanation_reason *r)
{
    size_t name = strlen(r->name);
    bool split = strncmp(r->words, r->name, name) == 0;
    strbuf_printf(out, "<li%s><span class=\"kind\">", r->is_sure ? "" : " class=\"unsure\"");
    strbuf_put_markup(out, r->kind);
    strbuf_puts(out, "</span> ");
    if (split) {
        strbuf_puts(out, "<b>");
        strbuf_put_markup(out, r->name);
        strbuf_puts(out, "</b>");
    }
    strbuf_put_markup(out, split ? r->words + name : r->words);
    for (const char *line = r->evidence; *line;) {
        size_t length = strcspn(line, "\n");
        strbuf_puts(out, "<br><small>");
        strbuf_put_markup_n(out, line, length);
        strbuf_puts(out, "</small>");
        line += length + (line[length] == '\n');
    }
    strbuf_puts(out, "</li>\n");
}

static void put_reasons(struct strbuf *out, const struct explanation *e)
{
    size_t count = e->reason_count < REASONS_MAX ? e->reason_count : REASONS_MAX;
    strbuf_puts(out, "<ol class=\"reasons\">\n");
    for (size_t i = 0; i < count; i++) {
        if (i == REASONS_SHOWN)
            strbuf_printf(out,
                          "</ol>\n<details><summary>%zu smaller %s</summary>\n<ol "
                          "class=\"reasons\" start=\"%zu\">\n",
                          count - i, plural(count - i, "reason", "reasons"), i + 1);
        put_reason(out, &e->reasons[i]);
    }
    strbuf_puts(out, count > REASONS_SHOWN ? "</ol></details>\n" : "</ol>\n");
    strbuf_puts(out, "<p class=\"note\">Unattributed: ");
    strbuf_put_markup(out, e->unattributed);
    strbuf_puts(out, ".</p>\n");
}

static void put_counts(struct strbuf *out, const struct explanation *e)
{
    if (!e->count_count)
        return;
    strbuf_puts(out, "<p class=\"note\">Also changed, per ");
    strbuf_put_markup(out, e->per);
    strbuf_puts(out, " (their time is in the reasons): ");
    for (size_t i = 0; i < e->count_count; i++) {
        const struct explanation_count *c = &e->counts[i];
        strbuf_puts(out, i ? "; " : "");
        strbuf_put_markup(out, c->event);
        strbuf_printf(out, fabs(c->values[0]) >= 1000 ? " %.0f" : " %.3g", c->values[0]);
        strbuf_printf(out, fabs(c->values[1]) >= 1000 ? " → %.0f" : " → %.3g", c->values[1]);
        strbuf_puts(out, c->is_simulated ? " (simulated)" : "");
    }
    strbuf_puts(out, ".</p>\n");
}

static void put_measured(struct strbuf *out, const struct explanation *e)
{
    strbuf_puts(out, "<p>");
    strbuf_put_markup(out, e->names[SIDE_B]);
    strbuf_puts(out, " against ");
    strbuf_put_markup(out, e->names[SIDE_A]);
    strbuf_printf(out, ", %zu %s each without a profiler: ", e->run_count,
                  plural(e->run_count, "run", "runs"));
    if (*e->wall) {
        strbuf_puts(out, "wall time ");
        strbuf_put_markup(out, e->wall);
        strbuf_puts(out, "; ");
    }
    strbuf_puts(out, "CPU time ");
    strbuf_put_markup(out, e->cpu);
    strbuf_puts(out, ".</p>\n");
}

static void put_explanation(struct strbuf *out, const struct explanation *e)
{
    strbuf_puts(out, "<div class=\"explanation\"><h3>Why");
    if (*e->cell) {
        strbuf_puts(out, ": ");
        strbuf_put_markup(out, e->cell);
    }
    strbuf_puts(out, "</h3>\n");
    put_measured(out, e);
    if (!e->is_profiled) {
        strbuf_puts(out,
                    "<p>Nothing changed beyond noise: there is nothing to explain.</p></div>\n");
        return;
    }
    put_paragraph(out, "lead", e->whole, strlen(e->whole));
    put_reasons(out, e);
    put_counts(out, e);
    if (*e->simulator) {
        strbuf_puts(out, "<p class=\"note\">Caches and branches are simulated by ");
        strbuf_put_markup(out, e->simulator);
        strbuf_puts(out, ": a model, not this machine.</p>\n");
    }
    for (const char *line = e->notes; *line;) {
        size_t length = strcspn(line, "\n");
        put_paragraph(out, "note", line, length);
        line += length + (line[length] == '\n');
    }
    strbuf_puts(out, "</div>\n");
}

void html_put_explanations(struct strbuf *out, const struct page *page)
{
    enum { EXPLANATIONS_OPEN = 3 };
    const struct explanations *list = &page->data.explanations;
    strbuf_puts(out, list->count ? "<div id=\"reasons\">\n" : "");
    for (size_t i = 0; i < list->count; i++) {
        if (i == EXPLANATIONS_OPEN)
            strbuf_printf(out, "<details><summary>Why, for %zu more %s</summary>\n",
                          list->count - i, plural(list->count - i, "cell", "cells"));
        put_explanation(out, &list->items[i]);
    }
    if (list->count > EXPLANATIONS_OPEN)
        strbuf_puts(out, "</details>\n");
    strbuf_puts(out, list->count ? "</div>\n" : "");
}

/* ---- functions ---- */

static void put_why(struct strbuf *out, const struct page_why *why, bool links)
{
    strbuf_puts(out, "<h3>Why");
    if (*why->label) {
        strbuf_puts(out, ": ");
        strbuf_put_markup(out, why->label);
    }
    strbuf_puts(out, "</h3>\n<p>CPU time changed by <b>");
    strbuf_put_markup(out, why->whole);
    strbuf_puts(out, "</b>; the rows add up to that.");
    if (why->note) {
        strbuf_puts(out, " There are no intervals: ");
        strbuf_put_markup(out, why->note);
        strbuf_puts(out, ".");
    }
    strbuf_puts(out, "</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                     "aria-label=\"Reasons ");
    strbuf_put_markup(out, why->label);
    strbuf_puts(out, "\"><table class=\"why\"><thead><tr><th scope=\"col\">Function, "
                     "itself</th>");
    for (unsigned side = 0; side < SIDE_COUNT; side++) {
        strbuf_printf(out, "<th scope=\"col\">%s (", side == SIDE_A ? "Base" : "New");
        strbuf_put_markup(out, why->unit);
        strbuf_puts(out, ")</th>");
    }
    strbuf_puts(out, "<th scope=\"col\">Change</th><th scope=\"col\">Share of the change</th><th "
                     "scope=\"col\">Result</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < why->count; i++) {
        const struct page_cause *c = &why->causes[i];
        const char *cells[] = {c->before, c->after, c->change, c->share, c->words};
        strbuf_puts(out, c->is_grey ? "<tr class=\"unsure\"><th scope=\"row\">"
                                    : "<tr><th scope=\"row\">");
        bool linked = links && c->is_function && strlen(c->name) <= 160;
        if (linked) {
            strbuf_puts(out, "<a href=\"#flame-diff\" data-known=\"");
            strbuf_put_markup(out, c->name);
            strbuf_puts(out, "\">");
        }
        strbuf_put_markup_n(out, c->name, strnlen(c->name, 160));
        strbuf_puts(out, linked ? "</a></th>" : "</th>");
        for (size_t k = 0; k < ARRAY_COUNT(cells); k++) {
            strbuf_puts(out, "<td>");
            strbuf_put_markup(out, cells[k]);
            strbuf_puts(out, "</td>");
        }
        strbuf_puts(out, "</tr>\n");
    }
    strbuf_puts(out, "</tbody></table></div>\n");
}

void html_put_why(struct strbuf *out, const struct page *page)
{
    for (size_t i = 0; i < page->why_count; i++)
        put_why(out, &page->whys[i], i == 0 && page->has_pair);
}

/* SPDX-License-Identifier: MIT */
/* The page's frame: head with the policy, sections in order, data and script. */
#include "report/html/html.h"
#include "base/base64.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "config.h"

#include <stdio.h>

/* The pieces of a script, in order; NULL after the last. */
struct pieces {
    const char *texts[4];
};

static struct pieces pieces_of(enum html_script script)
{
    const char *own = script == HTML_FLAMES ? web_script_flames
                      : script == HTML_LIVE ? web_script_live
                                            : "";
    return (struct pieces){{web_script_begin, own, web_script_end, NULL}};
}

/* "'sha256-…'" of an inline style or script, as the policy names it. */
static void put_hash(struct strbuf *out, struct pieces pieces)
{
    struct sha256 h;
    char hex[65];
    uint8_t bytes[32];
    sha256_start(&h);
    for (size_t i = 0; pieces.texts[i]; i++)
        sha256_add(&h, pieces.texts[i], strlen(pieces.texts[i]));
    sha256_end(&h, hex);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        unsigned byte = 0;
        sscanf(hex + 2 * i, "%2x", &byte);
        bytes[i] = (uint8_t)byte;
    }
    strbuf_puts(out, "'sha256-");
    strbuf_put_base64(out, bytes, sizeof(bytes));
    strbuf_putc(out, '\'');
}

void html_put_head(struct strbuf *out, const struct html_head *head)
{
    strbuf_puts(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                     "img-src data:; base-uri 'none'; form-action 'self'; ");
    strbuf_puts(out, head->script == HTML_LIVE ? "connect-src 'self'; style-src " : "style-src ");
    put_hash(out, (struct pieces){{web_style}});
    strbuf_puts(out, "; script-src ");
    put_hash(out, pieces_of(head->script));
    strbuf_puts(out, "\">\n<meta name=\"viewport\" content=\"width=device-width, "
                     "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
                     "<meta name=\"generator\" content=\"assay " ASSAY_VERSION "\">\n"
                     "<link rel=\"icon\" href=\"data:,\">\n<title>");
    strbuf_put_markup(out, head->title);
    strbuf_printf(out, " · assay</title>\n<style>%s</style>\n</head>\n<body>\n", web_style);
    strbuf_puts(out, "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header>\n<h1>");
    strbuf_put_markup(out, head->title);
    strbuf_puts(out, "</h1>\n");
    if (*head->subtitle) {
        strbuf_puts(out, "<p class=\"question\">");
        strbuf_put_markup(out, head->subtitle);
        strbuf_puts(out, "</p>\n");
    }
    strbuf_puts(out, "<nav aria-label=\"Sections\"><ul>");
    for (size_t i = 0; i < head->link_count; i++) {
        strbuf_puts(out, "<li><a href=\"");
        strbuf_put_markup(out, head->links[i].href);
        strbuf_puts(out, "\">");
        strbuf_put_markup(out, head->links[i].text);
        strbuf_puts(out, "</a></li>");
    }
    strbuf_puts(out, "</ul><button type=\"button\" id=\"theme\" hidden>Dark</button></nav>\n"
                     "</header>\n<main id=\"main\">\n");
}

void html_put_foot(struct strbuf *out, enum html_script script, const struct strbuf *data)
{
    strbuf_puts(out, "</main>\n<footer><p>Created by assay " ASSAY_VERSION ". ");
    if (data)
        strbuf_puts(out, "This file contains its raw values: <code>assay compare a.html "
                         "b.html</code> reads them.");
    strbuf_puts(out, "</p></footer>\n");
    if (data)
        embedded_put_element(out, data);
    struct pieces pieces = pieces_of(script);
    strbuf_puts(out, "<script>");
    for (size_t i = 0; pieces.texts[i]; i++)
        strbuf_puts(out, pieces.texts[i]);
    strbuf_puts(out, "</script>\n</body>\n</html>\n");
}

enum { TITLE_COLUMNS = 120 };

void html_put_plot(struct strbuf *out, const struct plot *p, bool is_first)
{
    bool drawn = plot_has_points(p);
    strbuf_printf(out, "<figure id=\"plot-%s\" data-kind=\"%s\"><figcaption>", p->id, p->kind);
    size_t known = p->group && str_has_prefix(p->title, p->group) ? strlen(p->group) : 0;
    known += known && str_has_prefix(p->title + known, ", ") ? 2 : 0;
    html_put_shortened(out, p->title + known, TITLE_COLUMNS); /* the group's heading has the rest */
    strbuf_puts(out, "</figcaption>");
    if (drawn && is_first)
        plot_put_svg(p, PLOT_NARROW, out);
    if (drawn)
        plot_put_svg(p, is_first ? PLOT_WIDE : PLOT_PAGE, out);
    if (p->note && *p->note) {
        strbuf_printf(out, "<p class=\"%s\">", drawn ? "note" : "note absent");
        strbuf_put_markup(out, p->note);
        strbuf_puts(out, "</p>");
    }
    strbuf_puts(out, "</figure>\n");
}

static bool is_shown(const struct page *page, size_t i)
{
    const struct plot *p = &page->plots[i];
    return (plot_has_points(p) || p->note) && p != page->first.curve;
}

static bool same_group(const struct plot *a, const struct plot *b)
{
    return a->group && b->group && str_eq(a->group, b->group);
}

/* Small ones of a group stand together, where the first of them comes. */
static void put_plot_or_group(struct strbuf *out, const struct page *page, size_t i)
{
    const struct plot *p = &page->plots[i];
    if (!p->group) {
        html_put_plot(out, p, false);
        return;
    }
    for (size_t k = 0; k < i; k++)
        if (is_shown(page, k) && same_group(&page->plots[k], p))
            return;
    strbuf_puts(out, "<div class=\"multiples\"><h3>");
    strbuf_put_markup(out, p->group);
    strbuf_puts(out, "</h3>\n");
    const char *same = p->note; /* what holds for all of them is said once */
    for (size_t k = i; k < page->plot_count; k++)
        if (is_shown(page, k) && same_group(&page->plots[k], p)) {
            struct plot one = page->plots[k];
            one.note = one.note && same && k > i && str_eq(one.note, same) ? NULL : one.note;
            html_put_plot(out, &one, false);
        }
    strbuf_puts(out, "</div>\n");
}

void html_put_plots(struct strbuf *out, const struct page *page)
{
    strbuf_puts(out, "<section id=\"plots\" aria-labelledby=\"h-plots\"><h2 "
                     "id=\"h-plots\">Plots</h2>\n<div class=\"plots\">\n");
    for (size_t i = 0; i < page->plot_count; i++)
        if (is_shown(page, i))
            put_plot_or_group(out, page, i);
    strbuf_puts(out, "</div>\n</section>\n");
}

void html_put_page(struct strbuf *out, const struct page *page)
{
    struct html_link links[10];
    size_t count = 0;
    char experiments[2][2][64];
    if (page->home)
        links[count++] = (struct html_link){page->home, "All experiments"};
    for (size_t i = 0; page->home && i < page->data.set_count && i < 2; i++) {
        long long id = page->data.sets[i].experiment.id;
        snprintf(experiments[i][0], sizeof(experiments[i][0]), "%se/%lld", page->home, id);
        snprintf(experiments[i][1], sizeof(experiments[i][1]), "Experiment %lld", id);
        links[count++] = (struct html_link){experiments[i][0], experiments[i][1]};
    }
    links[count++] = (struct html_link){"#verdict", "Verdict"};
    if (page->row_count)
        links[count++] = (struct html_link){"#table", "Table"};
    if (page->plot_count)
        links[count++] = (struct html_link){"#plots", "Plots"};
    if (page->data.flame_count)
        links[count++] = (struct html_link){"#flames", "Flame graphs"};
    if (html_has_nodes(page))
        links[count++] = (struct html_link){"#nodes", "Nodes"};
    links[count++] = (struct html_link){"#about", "How it was measured"};
    enum html_script script = page->data.flame_count ? HTML_FLAMES : HTML_PLAIN;
    html_put_head(out,
                  &(struct html_head){.title = page->title,
                                      .subtitle = page->view ? page->view->experiment.question : "",
                                      .links = links,
                                      .link_count = count,
                                      .script = script});
    html_put_verdict(out, page);
    if (page->row_count)
        html_put_table(out, page);
    if (page->plot_count)
        html_put_plots(out, page);
    if (page->data.flame_count)
        html_put_flames(out, page);
    if (html_has_nodes(page))
        html_put_nodes(out, page);
    html_put_about(out, page);
    CLEANUP(strbuf_done) struct strbuf view = {0}, data = {0};
    html_put_rows_json(&view, page);
    embedded_put_json(&data, &page->data, strbuf_text(&view));
    html_put_foot(out, script, &data);
}

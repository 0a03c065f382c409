/* SPDX-License-Identifier: MIT */
/* The page's frame: head with the policy, sections in order, data and script. */
#include "report/html/html.h"
#include "base/base64.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "config.h"

#include <stdio.h>

/* "'sha256-…'" of an inline style or script, as the policy names it. */
static void put_hash(struct strbuf *out, const char *text)
{
    struct sha256 h;
    char hex[65];
    uint8_t bytes[32];
    sha256_start(&h);
    sha256_add(&h, text, strlen(text));
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

void html_put_head(struct strbuf *out, const char *title, const char *subtitle,
                   const struct html_link *links, size_t link_count)
{
    strbuf_puts(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                     "img-src data:; base-uri 'none'; form-action 'self'; style-src ");
    put_hash(out, web_style);
    strbuf_puts(out, "; script-src ");
    put_hash(out, web_script);
    strbuf_puts(out, "\">\n<meta name=\"viewport\" content=\"width=device-width, "
                     "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
                     "<meta name=\"generator\" content=\"assay " ASSAY_VERSION "\">\n"
                     "<link rel=\"icon\" href=\"data:,\">\n<title>");
    strbuf_put_markup(out, title);
    strbuf_printf(out, " · assay</title>\n<style>%s</style>\n</head>\n<body>\n", web_style);
    strbuf_puts(out, "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header>\n<h1>");
    strbuf_put_markup(out, title);
    strbuf_puts(out, "</h1>\n");
    if (*subtitle) {
        strbuf_puts(out, "<p class=\"question\">");
        strbuf_put_markup(out, subtitle);
        strbuf_puts(out, "</p>\n");
    }
    strbuf_puts(out, "<nav aria-label=\"Sections\"><ul>");
    for (size_t i = 0; i < link_count; i++) {
        strbuf_puts(out, "<li><a href=\"");
        strbuf_put_markup(out, links[i].href);
        strbuf_puts(out, "\">");
        strbuf_put_markup(out, links[i].text);
        strbuf_puts(out, "</a></li>");
    }
    strbuf_puts(out, "</ul><button type=\"button\" id=\"theme\" hidden>Dark</button></nav>\n"
                     "</header>\n<main id=\"main\">\n");
}

void html_put_foot(struct strbuf *out, const struct strbuf *data)
{
    strbuf_puts(out, "</main>\n<footer><p>Created by assay " ASSAY_VERSION ". ");
    if (data)
        strbuf_puts(out, "This file contains its raw values: <code>assay compare a.html "
                         "b.html</code> reads them.");
    strbuf_puts(out, "</p></footer>\n");
    if (data)
        embedded_put_element(out, data);
    strbuf_printf(out, "<script>%s</script>\n</body>\n</html>\n", web_script);
}

void html_put_plot(struct strbuf *out, const struct plot *p)
{
    bool drawn = plot_has_points(p);
    strbuf_printf(out, "<figure id=\"plot-%s\" data-kind=\"%s\"><figcaption>", p->id, p->kind);
    strbuf_put_markup(out, p->title);
    strbuf_puts(out, "</figcaption>");
    if (drawn)
        plot_put_svg(p, false, out);
    if (p->note && *p->note) {
        strbuf_printf(out, "<p class=\"%s\">", drawn ? "note" : "note absent");
        strbuf_put_markup(out, p->note);
        strbuf_puts(out, "</p>");
    }
    strbuf_puts(out, "</figure>\n");
}

void html_put_plots(struct strbuf *out, const struct page *page)
{
    strbuf_puts(out, "<section id=\"plots\" aria-labelledby=\"h-plots\"><h2 "
                     "id=\"h-plots\">Plots</h2>\n<div class=\"plots\">\n");
    for (size_t i = 0; i < page->plot_count; i++)
        if ((plot_has_points(&page->plots[i]) || page->plots[i].note) &&
            &page->plots[i] != page->first.curve)
            html_put_plot(out, &page->plots[i]);
    strbuf_puts(out, "</div>\n</section>\n");
}

void html_put_page(struct strbuf *out, const struct page *page)
{
    struct html_link links[7];
    size_t count = 0;
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
    html_put_head(out, page->title, page->view ? page->view->experiment.question : "", links,
                  count);
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
    html_put_foot(out, &data);
}

/* SPDX-License-Identifier: MIT */
/*
 * A page as one self-contained HTML file.  Everything is there without scripts; scripts (web/) add
 * sorting, filters, zoom and search.  A content-security policy allows exactly the page's own style
 * and script, by their hashes, and no request to anywhere.
 */
#ifndef ASSAY_REPORT_HTML_HTML_H
#define ASSAY_REPORT_HTML_HTML_H

#include "report/page/page.h"

void html_put_page(struct strbuf *out, const struct page *page);

/* What pages share, the views of `assay serve` included. */
struct html_link {
    const char *href, *text;
};
/* What a page's script does besides tables and plots. */
enum html_script {
    HTML_PLAIN,
    HTML_FLAMES, /* profiles */
    HTML_LIVE,   /* it may ask its own server: of `assay serve` only */
};
struct html_head {
    const char *title, *subtitle;
    const struct html_link *links; /* the navigation */
    size_t link_count;
    enum html_script script;
};
/* Up to <main>. */
void html_put_head(struct strbuf *out, const struct html_head *head);
/* From </main> on; `data` is embedded_put_json's text, or NULL. */
void html_put_foot(struct strbuf *out, enum html_script script, const struct strbuf *data);

/* The level of intervals of medians that the table names; with less there are too few runs. */
#define HTML_INTERVAL_LEVEL 0.9499
void html_put_measured(struct strbuf *out, double value, const char *unit);

void html_put_verdict(struct strbuf *out, const struct page *page);
/* Class, sign and word of a verdict. */
struct html_kind {
    const char *class, *sign, *word;
};
const struct html_kind *html_kind(enum verdict_kind kind);
/* The sentence and the picture of the first screen. */
void html_put_first(struct strbuf *out, const struct page *page);
/* How many cells of each headline went which way; and those that moved most. */
void html_put_tallies(struct strbuf *out, const struct page *page);
void html_put_strongest(struct strbuf *out, const struct page *page);
/* Whether the first picture leaves room beside it for more than the sentence. */
bool html_is_tall(const struct page *page);
/* What is missing: an experiment that did not end, runs that failed. */
void html_put_banners(struct strbuf *out, const struct page *page);
void html_put_failures(struct strbuf *out, const struct dataset *d);
/* A text of any length: shortened, with the whole on demand. */
void html_put_shortened(struct strbuf *out, const char *text, size_t columns);
/* A sentence, of which words that are too long are cut: a value may have kilobytes. */
void html_put_words(struct strbuf *out, const char *text);
/* What `assay explain` found: the reasons in order. */
void html_put_explanations(struct strbuf *out, const struct page *page);
/* Which functions make the difference. */
void html_put_why(struct strbuf *out, const struct page *page);
void html_put_table(struct strbuf *out, const struct page *page);
/* The rows for the page's scripts, as JSON. */
void html_put_rows_json(struct strbuf *out, const struct page *page);
/* The first picture of a page is drawn twice: for wide screens and for phones. */
void html_put_plot(struct strbuf *out, const struct plot *p, bool is_first);
void html_put_plots(struct strbuf *out, const struct page *page);
void html_put_flames(struct strbuf *out, const struct page *page);
/* Of a cluster; a page has them where an experiment ran on one. */
bool html_has_nodes(const struct page *page);
void html_put_nodes(struct strbuf *out, const struct page *page);
void html_put_about(struct strbuf *out, const struct page *page);
/* A JSON object as lists and tables; false, with nothing put, where the text is none. */
bool html_put_document(struct strbuf *out, const char *text);

/* One flame graph, or the difference of two, as SVG; coarser when it only stands beside that. */
void flame_put_svg(const struct flame *flame, const char *id, bool alone, bool beside,
                   struct strbuf *out);
void flame_pair_put_svg(const struct flame_pair *pair, const char *id, bool alone,
                        struct strbuf *out);

/* web/report.css and the scripts of web/, put into the program when it is built. */
extern const char web_style[];
extern const char web_script_begin[], web_script_flames[], web_script_live[], web_script_end[];

#endif

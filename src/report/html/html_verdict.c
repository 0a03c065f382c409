/* SPDX-License-Identifier: MIT */
/* The verdict in words: how many cells went which way, what moved most, the answers. */
#include "base/memory.h"
#include "report/html/html.h"
#include "report/text/experiment.h"

#include <stdio.h>
#include <string.h>

enum {
    ANSWERS_SHOWN = 8,
    ANSWERS_MAX = 24,
    LINES_SHOWN = 6,
    INSTEAD_SHOWN = 2,
    LABEL_COLUMNS = 120
};

/* Two recordings whose times differ by less than this factor: "1× more" says nothing.  Nor does a
 * difference of so few samples: each stands for the time since the one before. */
#define SAME_TIME 1.005
enum { SAME_SAMPLES = 2 };
static const struct html_kind kinds[] = {
    [VERDICT_BETTER] = {"better", "▲", "better"},
    [VERDICT_WORSE] = {"worse", "▼", "worse"},
    [VERDICT_DIFFERENT] = {"different", "◆", "different"},
    [VERDICT_SAME] = {"same", "=", "same"},
    [VERDICT_CANNOT_TELL] = {"unsure", "?", "cannot tell"},
};

const struct html_kind *html_kind(enum verdict_kind kind)
{
    return &kinds[kind];
}
static void put_item(struct strbuf *out, enum verdict_kind kind, const char *head, const char *text)
{
    strbuf_printf(out,
                  "<li class=\"%s\"><span class=\"sign\">%s <span class=\"sr\">%s</span></span> ",
                  kinds[kind].class, kinds[kind].sign, kinds[kind].word);
    if (*head) {
        CLEANUP(strbuf_done) struct strbuf word = {0};
        svg_put_word(&word, head, LABEL_COLUMNS);
        strbuf_puts(out, "<b>");
        strbuf_put_markup(out, strbuf_text(&word));
        strbuf_puts(out, "</b>: ");
    }
    strbuf_put_markup(out, text);
    strbuf_puts(out, "</li>\n");
}

static void put_row_line(struct strbuf *out, const struct page *page, const struct page_row *r)
{
    const struct store_metric *m = &page->view->metrics[r->metric];
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CLEANUP(memory_freep) char *head = memory_printf("%s, %s", m->name, r->label);
    strbuf_printf(&text, "%s (", r->verdict.text);
    strbuf_put_measured(&text, r->base.median, m->unit);
    strbuf_puts(&text, " → ");
    strbuf_put_measured(&text, r->new.median, m->unit);
    strbuf_printf(&text, ", n = %zu", r->new.count);
    strbuf_putc(&text, ')');
    put_item(out, r->verdict.kind, head, strbuf_text(&text));
}

/* One metric's headline rows: how many cells went which way. */
static void put_tally(struct strbuf *out, const struct page *page, size_t metric)
{
    size_t counts[ARRAY_COUNT(kinds)] = {0}, all = 0;
    for (size_t i = 0; i < page->row_count; i++) {
        const struct page_row *r = &page->rows[i];
        if (r->metric != metric || !r->headline || !r->compared)
            continue;
        counts[r->verdict.kind]++;
        all++;
    }
    if (all < 2)
        return;
    strbuf_puts(out, "<p class=\"lead\"><b>");
    strbuf_put_markup(out, page->view->metrics[metric].name);
    strbuf_puts(out, "</b>: ");
    bool any = false;
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++)
        if (counts[k]) {
            strbuf_printf(
                out, "%s<span class=\"%s\"><span aria-hidden=\"true\">%s</span> %s in %zu</span>",
                any ? ", " : "", kinds[k].class, kinds[k].sign, kinds[k].word, counts[k]);
            any = true;
        }
    strbuf_printf(out, " of %zu cells.</p>\n", all);
}

void html_put_strongest(struct strbuf *out, const struct page *page)
{
    const struct page_row *shown[LINES_SHOWN];
    size_t count = 0;
    for (size_t i = 0; i < page->row_count; i++) {
        const struct page_row *r = &page->rows[i];
        if (!r->headline || !r->compared)
            continue;
        size_t at = count < LINES_SHOWN ? count++ : LINES_SHOWN;
        while (at > 0 && (r->changed > shown[at - 1]->changed ||
                          (r->changed == shown[at - 1]->changed &&
                           page_strength(r) > page_strength(shown[at - 1])))) {
            if (at < LINES_SHOWN)
                shown[at] = shown[at - 1];
            at--;
        }
        if (at < LINES_SHOWN)
            shown[at] = r;
    }
    if (!count)
        return;
    strbuf_puts(out, "<ul class=\"verdicts\">\n");
    for (size_t i = 0; i < count; i++)
        put_row_line(out, page, shown[i]);
    strbuf_puts(out, "</ul>\n");
}

static void put_answers(struct strbuf *out, const struct answers *a)
{
    size_t shown = 0, count = a->count < ANSWERS_MAX ? a->count : ANSWERS_MAX;
    strbuf_puts(out, "<h3>Answers</h3>\n<ul class=\"answers\">\n");
    for (size_t i = 0; i < count; i++) {
        const struct answer *item = &a->items[i];
        if (shown++ == ANSWERS_SHOWN)
            strbuf_printf(out,
                          "</ul>\n<details><summary>%zu more</summary>\n<ul class=\"answers\">\n",
                          count - ANSWERS_SHOWN);
        strbuf_printf(out, "<li><span class=\"kind\">%s</span> ", item->kind);
        if (*item->where) {
            strbuf_puts(out, "<b>");
            html_put_words(out, item->where);
            strbuf_puts(out, "</b>: ");
        }
        html_put_words(out, item->text);
        strbuf_puts(out, item->certain ? "</li>\n" : " <i>(not certain)</i></li>\n");
    }
    strbuf_puts(out, shown > ANSWERS_SHOWN ? "</ul></details>\n" : "</ul>\n");
    if (count < a->count)
        strbuf_printf(out, "<p class=\"note\">%zu more: <code>assay answers</code></p>\n",
                      a->count - count);
}

/* How much less or more, where both are times.  Of one recording each there is no interval. */
static void put_profile_ratio(struct strbuf *out, const struct flame *base, const struct flame *new)
{
    double a = (double)base->weight, b = (double)new->weight;
    if (!base->is_time || !str_eq(base->event, new->event) || !(a > 0) || !(b > 0))
        return;
    strbuf_puts(out, "<p class=\"lead main\"><b>");
    strbuf_put_markup(out, new->label);
    strbuf_puts(out, "</b> against <b>");
    strbuf_put_markup(out, base->label);
    double times = b < a ? a / b : b / a;
    const char *what = strstr(base->event, "clock") ? "CPU time" : "time";
    strbuf_puts(out, "</b>: <strong>");
    uint64_t apart =
        base->samples > new->samples ? base->samples - new->samples : new->samples - base->samples;
    if (times < SAME_TIME || apart <= SAME_SAMPLES)
        strbuf_printf(out, "about the same %s", what);
    else
        strbuf_printf(out, "%.3g× %s %s", times, b < a ? "less" : "more", what);
    strbuf_puts(out, "</strong> (");
    html_put_measured(out, a, "ns");
    strbuf_puts(out, " → ");
    html_put_measured(out, b, "ns");
    strbuf_puts(out, ").</p>\n");
}

static void put_profile_lead(struct strbuf *out, const struct page *page)
{
    const struct embedded *d = &page->data;
    if (page->has_pair)
        put_profile_ratio(out, &d->flames[0], &d->flames[1]);
    for (size_t i = 0; i < d->flame_count; i++) {
        const struct flame *f = &d->flames[i];
        CLEANUP(strbuf_done) struct strbuf whole = {0};
        if (f->is_time)
            strbuf_put_measured(&whole, (double)f->weight, "ns");
        strbuf_puts(out, "<p class=\"lead\"><b>");
        strbuf_put_markup(out, f->label);
        strbuf_puts(out, "</b>: ");
        html_put_measured(out, (double)f->samples, "");
        strbuf_printf(out, " %s of ", plural(f->samples, "sample", "samples"));
        strbuf_put_markup(out, f->event);
        strbuf_printf(out, "%s%s%s.</p>\n", whole.length ? ", " : "", strbuf_text(&whole),
                      whole.length ? " in all" : "");
    }
}

/* Where the headline cannot tell and what the cells cost can. */
static void put_instead(struct strbuf *out, const struct page *page, size_t metric)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    if (page->view != page->compare.new)
        return;
    compare_put_instead(&text, &page->compare, metric, NULL);
    size_t count = 0;
    for (const char *line = strbuf_text(&text); *line; count++) {
        line += strspn(line, " ");
        size_t length = strcspn(line, "\n");
        if (count < INSTEAD_SHOWN) {
            strbuf_puts(out, "<p class=\"lead instead\">");
            strbuf_put_markup_n(out, line, length);
            strbuf_puts(out, ".</p>\n");
        }
        line += length + (line[length] == '\n');
    }
    if (count > INSTEAD_SHOWN)
        strbuf_printf(out, "<p class=\"note\">So it is with %zu more %s.</p>\n",
                      count - INSTEAD_SHOWN, plural(count - INSTEAD_SHOWN, "cell", "cells"));
}

void html_put_tallies(struct strbuf *out, const struct page *page)
{
    size_t last = DATASET_NONE;
    for (size_t i = 0; i < page->row_count; i++)
        if (page->rows[i].headline && page->rows[i].metric != last) {
            last = page->rows[i].metric;
            put_instead(out, page, last);
            put_tally(out, page, last);
        }
}

void html_put_verdict(struct strbuf *out, const struct page *page)
{
    strbuf_puts(out, "<section id=\"verdict\" aria-labelledby=\"h-verdict\"><h2 "
                     "id=\"h-verdict\">Verdict</h2>\n");
    html_put_first(out, page);
    for (size_t i = 0; i < page->data.set_count; i++)
        html_put_failures(out, &page->data.sets[i]);
    if (!html_is_tall(page))
        html_put_strongest(out, page);
    if (!page->view)
        put_profile_lead(out, page);
    html_put_explanations(out, page);
    if (page->has_answers && page->answers.count)
        put_answers(out, &page->answers);
    html_put_why(out, page);
    strbuf_puts(out, "</section>\n");
}

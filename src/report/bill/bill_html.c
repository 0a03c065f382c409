/* SPDX-License-Identifier: MIT */
/* The bill of one command as one HTML file: the sum, what would help, the threads, the functions.
 */
#include "base/memory.h"
#include "report/bill/bill.h"
#include "report/html/html.h"

#include <math.h>

enum { LINES_MOST = 30, WIDTH = 1000 };
#define SMALL_SHARE 0.005 /* lines with less are added up */

static void put_name(struct strbuf *out, const struct bill_view *v, const struct bill_line *l)
{
    CLEANUP(strbuf_done) struct strbuf name = {0};
    report_bill_name(&name, v, l);
    strbuf_put_markup(out, strbuf_text(&name));
}

static void put_time(struct strbuf *out, const struct bill_estimate *e)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    report_bill_time(&text, e);
    strbuf_put_markup(out, strbuf_text(&text));
}

/* The largest line in a sentence. */
static void put_first(struct strbuf *out, const struct bill_view *v)
{
    const struct bill *b = v->b;
    strbuf_puts(out,
                "<section id=\"answer\" aria-labelledby=\"h-answer\"><h2 id=\"h-answer\">Where "
                "the time went</h2>\n<p class=\"lead main\">It takes <strong>");
    put_time(out, v->doubts->is_denied ? &b->wall : &b->sum);
    strbuf_puts(out, "</strong>");
    if (b->line_count && b->lines[0].time.mean > 0) {
        const struct bill_line *l = &b->lines[0];
        strbuf_printf(out, ". The largest part, %.0f %%, is <strong>%s</strong>: ", 100 * l->share,
                      bill_part_title(l->part));
        put_name(out, v, l);
    }
    strbuf_puts(out, ".</p>\n");
}

static void put_bar(struct strbuf *out, unsigned part, double from, double share)
{
    strbuf_printf(out,
                  "<td class=\"bar\"><svg viewBox=\"0 0 %d 12\" preserveAspectRatio=\"none\" "
                  "aria-hidden=\"true\"><rect class=\"w%u\" x=\"%.1f\" width=\"%.1f\" "
                  "height=\"12\"/></svg></td>",
                  WIDTH, part, WIDTH * from, fmax(WIDTH * share, 1));
}

/* The lines that are not shown, as one for each part. */
static void put_rest(struct strbuf *out, const struct bill_view *v, size_t from, double *at)
{
    const struct bill *b = v->b;
    for (unsigned part = 0; part < BILL_PARTS; part++) {
        CLEANUP(memory_freep) double *sums = memory_zalloc(b->run_count + 1, sizeof(*sums));
        size_t count = 0;
        double share = 0;
        for (size_t l = from; l < b->line_count; l++) {
            if (b->lines[l].part != part || b->lines[l].time.mean <= 0)
                continue;
            count++;
            share += b->lines[l].share;
            for (size_t r = 0; r < b->run_count; r++)
                sums[r] += b->lines[l].ns[r];
        }
        if (!count)
            continue;
        struct bill_estimate time = bill_estimate(sums, b->run_count);
        strbuf_printf(out, "<tr><td>%s</td><th scope=\"row\">%zu more</th><td>",
                      bill_part_title(part), count);
        put_time(out, &time);
        strbuf_printf(out, "</td><td>%.1f %%</td>", 100 * share);
        put_bar(out, part, *at, share);
        strbuf_puts(out, "</tr>\n");
        *at += share;
    }
}

static void put_bill(struct strbuf *out, const struct bill_view *v)
{
    const struct bill *b = v->b;
    double at = 0;
    size_t l = 0;
    strbuf_puts(out,
                "<div class=\"scroll wide\" tabindex=\"0\" role=\"region\" aria-label=\"The "
                "bill\"><table class=\"bill\"><thead><tr><th scope=\"col\">Part</th><th "
                "scope=\"col\">What</th><th scope=\"col\">Time</th><th scope=\"col\">Share</th>"
                "<th scope=\"col\">From 0 to 100 %</th></tr></thead><tbody>\n");
    for (; l < b->line_count && l < LINES_MOST && (l < 3 || b->lines[l].share >= SMALL_SHARE);
         l++) {
        const struct bill_line *line = &b->lines[l];
        if (line->time.mean <= 0)
            break;
        strbuf_printf(out, "<tr><td>%s</td><th scope=\"row\">", bill_part_title(line->part));
        put_name(out, v, line);
        strbuf_puts(out, "</th><td>");
        put_time(out, &line->time);
        strbuf_printf(out, "</td><td>%.1f %%</td>", 100 * line->share);
        put_bar(out, line->part, at, line->share);
        strbuf_puts(out, "</tr>\n");
        at += line->share;
    }
    put_rest(out, v, l, &at);
    strbuf_puts(out, "</tbody><tfoot><tr><td></td><th scope=\"row\">wall time</th><td>");
    put_time(out, &b->sum);
    strbuf_printf(out, "</td><td>%.1f %%</td><td></td></tr></tfoot></table></div>\n</section>\n",
                  100 * at);
}

static void put_gain(struct strbuf *out, const struct bill_estimate *gain)
{
    strbuf_printf(out, "<td>%.3g to %.3g ms</td>", gain->low / 1e6, gain->high / 1e6);
}

static void put_whatifs(struct strbuf *out, const struct bill_view *v)
{
    if (!v->whatifs->count)
        return;
    strbuf_puts(out, "<section id=\"what-if\" aria-labelledby=\"h-what-if\"><h2 id=\"h-what-if\">"
                     "What if it cost less</h2>\n<p class=\"note\">Experimental: predicted by "
                     "replaying the traced runs with that line changed.</p>\n<table><thead><tr><th "
                     "scope=\"col\">What</th><th scope=\"col\">Removed: sooner by</th><th "
                     "scope=\"col\">Halved: sooner by</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < v->whatifs->count; i++) {
        const struct whatif *w = &v->whatifs->items[i];
        const struct bill_line *line = &v->b->lines[w->line];
        strbuf_printf(out, "<tr><th scope=\"row\">%s: ", bill_part_title(line->part));
        put_name(out, v, line);
        strbuf_puts(out, "</th>");
        put_gain(out, &w->removed);
        put_gain(out, &w->halved);
        strbuf_puts(out, "</tr>\n");
    }
    strbuf_puts(out, "</tbody></table>\n</section>\n");
}

/* The traced run in the middle. */
static const struct bill_run *typical(const struct bill *b)
{
    const struct bill_run *found = NULL;
    for (size_t i = 0; i < b->run_count; i++) {
        size_t shorter = 0;
        for (size_t k = 0; k < b->run_count; k++)
            shorter += b->runs[k].wall_ns < b->runs[i].wall_ns ||
                       (b->runs[k].wall_ns == b->runs[i].wall_ns && k < i);
        if (shorter == b->run_count / 2)
            found = &b->runs[i];
    }
    return found;
}

static void put_threads(struct strbuf *out, const struct bill_view *v, const struct bill_run *run)
{
    strbuf_puts(out, "<section id=\"threads\" aria-labelledby=\"h-threads\"><h2 id=\"h-threads\">"
                     "Threads over time</h2>\n<p class=\"note\">One traced run, the one of middle "
                     "length. A column shows what took most of its time.</p>\n");
    report_bill_timeline(out, v->b, run);
    strbuf_puts(out, "</section>\n");
}

static void put_about(struct strbuf *out, const struct bill_view *v)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_puts(out, "<section id=\"about\" aria-labelledby=\"h-about\"><h2 id=\"h-about\">How it "
                     "was measured</h2>\n");
    report_bill_notes(&text, v);
    strbuf_puts(out, "<pre>");
    strbuf_put_markup(out, strbuf_text(&text));
    strbuf_puts(out, "</pre>\n</section>\n");
}

/* The event that samples where the command runs. */
static uint32_t sampled_event(const struct profile *p)
{
    uint32_t event = 0;
    while (event < p->event_count &&
           (p->events[event].is_off_cpu ||
            !(p->events[event].is_time || str_has_prefix(p->events[event].name, "cycles"))))
        event++;
    return event;
}

void report_bill_html(struct strbuf *out, const struct bill_view *v)
{
    CLEANUP(strbuf_done) struct strbuf data = {0};
    const struct bill_run *run = typical(v->b);
    struct page page = {0};
    struct html_link links[6];
    size_t count = 0;
    if (run && run->profile)
        page_add_flame_of(&page, run->profile, sampled_event(run->profile), v->command, NULL);
    links[count++] = (struct html_link){"#answer", "Where the time went"};
    if (v->whatifs->count)
        links[count++] = (struct html_link){"#what-if", "What if"};
    if (run)
        links[count++] = (struct html_link){"#threads", "Threads over time"};
    if (page.data.flame_count)
        links[count++] = (struct html_link){"#flames", "Flame graph"};
    links[count++] = (struct html_link){"#about", "How it was measured"};
    html_put_head(out,
                  &(struct html_head){
                      .title = v->command, .subtitle = "", .links = links, .link_count = count});
    put_first(out, v);
    if (v->doubts->is_denied)
        strbuf_puts(out, "</section>\n");
    else
        put_bill(out, v);
    put_whatifs(out, v);
    if (run)
        put_threads(out, v, run);
    if (page.data.flame_count)
        html_put_flames(out, &page);
    put_about(out, v);
    embedded_put_json(&data, &page.data, "[]");
    html_put_foot(out, HTML_PLAIN, &data);
    page_done(&page);
}

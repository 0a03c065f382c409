/* SPDX-License-Identifier: MIT */
/* The section of flame graphs: the difference first, then each profile with its functions. */
#include "base/memory.h"
#include "report/html/html.h"
#include "report/text/experiment.h"

#include <math.h>
#include <stdio.h>

enum { FUNCTIONS_MAX = 15 };

static void put_tools(struct strbuf *out, const char *id, bool pair, bool has_order)
{
    strbuf_printf(out,
                  "<div class=\"tools flame-tools\" data-for=\"%s\" hidden>"
                  "<label>Search (regular expression) <input type=\"search\" "
                  "data-act=\"search\"></label> "
                  "<label><input type=\"checkbox\" data-act=\"invert\"> Invert</label> ",
                  id);
    if (has_order)
        strbuf_puts(out, "<label><input type=\"checkbox\" data-act=\"order\"> Time order</label> ");
    if (pair)
        strbuf_puts(out, "<label>Width <select data-act=\"width\"><option value=\"both\">both"
                         "</option><option value=\"base\">base</option><option "
                         "value=\"new\">new</option></select></label> ");
    strbuf_puts(out, "<button type=\"button\" data-act=\"around\">Callers and callees</button> "
                     "<button type=\"button\" data-act=\"reset\">Reset zoom</button> "
                     "<span class=\"match\" role=\"status\"></span></div>\n");
}

static int by_self(const void *left, const void *right)
{
    const struct flame_function *a = left, *b = right;
    if (a->self != b->self)
        return a->self < b->self ? 1 : -1;
    return a->total < b->total ? 1 : a->total > b->total ? -1 : 0;
}

static void put_functions(struct strbuf *out, const struct flame *f, const char *id)
{
    CLEANUP(memory_freep) struct flame_function *all = flame_functions(f);
    if (f->name_count)
        qsort(all, f->name_count, sizeof(*all), by_self);
    strbuf_puts(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Functions "
                     "of ");
    strbuf_put_markup(out, f->label);
    strbuf_puts(out, "\"><table class=\"functions\"><thead><tr><th scope=\"col\">Function</th>"
                     "<th scope=\"col\">Self</th><th scope=\"col\">Total</th>"
                     "<th scope=\"col\">Binary</th></tr></thead><tbody>\n");
    double whole = f->weight ? (double)f->weight : 1;
    for (size_t i = 0; i < f->name_count && i < FUNCTIONS_MAX; i++) {
        const struct flame_name *name = &f->names[all[i].name];
        if (!all[i].self || name->flags & FLAME_COMM)
            continue;
        size_t length = strlen(name->text);
        strbuf_printf(out, "<tr><th scope=\"row\"><a href=\"#%s\" data-n=\"%u\">", id,
                      all[i].first_node);
        strbuf_put_markup_n(out, name->text, length < 160 ? length : 160);
        const char *dso = strrchr(name->dso, '/');
        strbuf_printf(out, "</a>%s</th><td>%.2f %%</td><td>%.2f %%</td><td>",
                      name->flags & FLAME_INLINED ? " (inlined)" : "",
                      100 * (double)all[i].self / whole, 100 * (double)all[i].total / whole);
        strbuf_put_markup(out, dso ? dso + 1 : name->dso);
        strbuf_puts(out, "</td></tr>\n");
    }
    strbuf_puts(out, "</tbody></table></div>\n");
}

static void put_flame(struct strbuf *out, const struct flame *f, size_t index, bool beside)
{
    char id[32];
    snprintf(id, sizeof(id), "flame-%zu", index);
    strbuf_puts(out, "<div class=\"graph\"><h3>");
    strbuf_put_markup(out, f->label);
    strbuf_puts(out, "</h3>\n<p class=\"note\">");
    html_put_measured(out, (double)f->samples, "");
    strbuf_printf(out, " %s of ", plural(f->samples, "sample", "samples"));
    strbuf_put_markup(out, f->event);
    strbuf_printf(out,
                  ", %llu lost. Width is the share of the whole; kernel functions are violet and "
                  "start with [k].</p>\n",
                  (unsigned long long)f->lost);
    put_tools(out, id, false, f->order_count > 1);
    flame_put_svg(f, id, false, beside, out);
    if (f->moment_count > 1 || f->wait_count)
        strbuf_printf(out, "<div class=\"when\" data-for=\"%s\" hidden></div>\n", id);
    put_functions(out, f, id);
    if (f->notes && *f->notes) {
        strbuf_puts(out, "<p class=\"note\">");
        strbuf_put_markup_n(out, f->notes, strcspn(f->notes, "\n"));
        strbuf_puts(out, "</p>\n");
    }
    strbuf_puts(out, "</div>\n");
}

void html_put_flames(struct strbuf *out, const struct page *page)
{
    strbuf_puts(out, "<section id=\"flames\" aria-labelledby=\"h-flames\"><h2 "
                     "id=\"h-flames\">Flame graphs</h2>\n");
    if (page->has_pair) {
        strbuf_puts(out, "<div class=\"graph\"><h3>What changed</h3>\n"
                         "<p class=\"note\">Call paths of both sides are shown. + red: the "
                         "function costs more in ");
        strbuf_put_markup(out, page->data.flames[1].label);
        strbuf_puts(
            out, ", including what it calls; − green: less; grey: could be chance or is below the "
                 "resolution of sampling, by the same test as in the table of functions.</p>\n");
        put_tools(out, "flame-diff", true, false);
        flame_pair_put_svg(&page->pair, "flame-diff", false, out);
        strbuf_puts(out, "</div>\n");
    }
    for (size_t i = 0; i < page->data.flame_count; i++)
        put_flame(out, &page->data.flames[i], i, page->has_pair);
    strbuf_puts(out, "</section>\n");
}

/* SPDX-License-Identifier: MIT */
/* The nodes of a cluster on the page: what they are, how high each metric is there, how the
 * differences come out on each, and which is an outlier. */
#include "base/memory.h"
#include "report/html/html.h"
#include "report/text/nodes.h"

#include <math.h>

enum { HEADLINES_MOST = 4, ROWS_MOST = 12 };

bool html_has_nodes(const struct page *page)
{
    for (size_t i = 0; i < page->data.set_count; i++)
        if (page->data.sets[i].node_count)
            return true;
    return false;
}

static void put_column(struct strbuf *out, const char *text, const char *more)
{
    strbuf_puts(out, "<th scope=\"col\">");
    strbuf_put_markup(out, text);
    strbuf_put_markup(out, more);
    strbuf_puts(out, "</th>");
}

static void put_start(struct strbuf *out, const char *caption, const char *name)
{
    strbuf_puts(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
    strbuf_puts(out, caption);
    strbuf_put_markup(out, name);
    strbuf_puts(out, "\"><table><caption>");
    strbuf_puts(out, caption);
    strbuf_put_markup(out, name);
    strbuf_puts(out, "</caption><thead><tr>");
}

static void put_name(struct strbuf *out, const char *name)
{
    strbuf_puts(out, "<tr><th scope=\"row\">");
    strbuf_put_markup(out, name);
    strbuf_puts(out, "</th>");
}

static void put_ratio(struct strbuf *out, double ratio, const struct node_share *share)
{
    if (isnan(ratio))
        strbuf_puts(out, "<td>–</td>");
    else
        strbuf_printf(out, "<td>%.3f× (n=%zu)%s</td>", ratio, share->count,
                      share->is_outlier ? " <strong>outlier</strong>" : "");
}

/* One sentence a line, as the text report has them. */
static void put_sentences(struct strbuf *out, const char *text)
{
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        strbuf_puts(out, "<p class=\"note\">");
        strbuf_put_markup_n(out, line, length);
        strbuf_puts(out, "</p>\n");
        line += length + (line[length] == '\n');
    }
}

static void put_set(struct strbuf *out, const struct dataset *d)
{
    static const char *const names[] = {"Type", "CPU",      "CPUs",   "Kernel", "Distribution",
                                        "PMU",  "io_uring", "Rights", NULL};
    size_t metrics[HEADLINES_MOST], count = 0, position = 0, metric;
    struct nodes_view views[HEADLINES_MOST];
    CLEANUP(strbuf_done) struct strbuf outliers = {0};
    while (count < HEADLINES_MOST && (metric = dataset_headline(d, &position)) != DATASET_NONE) {
        nodes_of_metric(d, metric, &views[count]);
        report_node_outliers(&outliers, d, metric);
        metrics[count++] = metric;
    }
    put_sentences(out, strbuf_text(&outliers));
    put_start(out, "Nodes of ", d->experiment.name);
    put_column(out, "Node", "");
    put_column(out, "Runs", "");
    for (size_t m = 0; m < count; m++)
        put_column(out, d->metrics[metrics[m]].name, " to the other nodes");
    for (size_t p = 0; node_properties[p]; p++)
        put_column(out, names[p], "");
    strbuf_puts(out, "</tr></thead><tbody>\n");
    for (size_t n = 0; n < d->node_count; n++) {
        put_name(out, d->nodes[n].name);
        strbuf_printf(out, "<td>%zu</td>", report_node_runs(d, n));
        for (size_t m = 0; m < count; m++)
            put_ratio(out, views[m].shares[n].ratio, &views[m].shares[n]);
        for (size_t p = 0; node_properties[p]; p++) {
            CLEANUP(memory_freep) char *value = nodes_property(d, n, node_properties[p]);
            strbuf_puts(out, "<td>");
            strbuf_put_markup(out, *value ? value : "–");
            strbuf_puts(out, "</td>");
        }
        strbuf_puts(out, "</tr>\n");
    }
    strbuf_puts(out, "</tbody></table></div>\n");
    for (size_t m = 0; m < count; m++)
        nodes_view_done(&views[m]);
}

/* A column for each node, a line for each pair of cells and headline. */
static void put_differences(struct strbuf *out, const struct compare *c)
{
    size_t shown = 0;
    for (size_t i = 0; i < c->row_count && shown < ROWS_MOST; i++) {
        const struct compare_row *row = &c->rows[i];
        const struct compare_pair *pair = &c->pairs[row->pair];
        if (!row->judged.headline || row->judged.comparison.scale != COMPARISON_RATIO)
            continue;
        if (!shown++) {
            put_start(out, "New / base on each node", "");
            put_column(out, "Cell, metric", "");
            for (size_t n = 0; n < c->base->node_count; n++)
                put_column(out, c->base->nodes[n].name, "");
            strbuf_puts(out, "</tr></thead><tbody>\n");
        }
        CLEANUP(nodes_view_done) struct nodes_view v;
        CLEANUP(memory_freep)
        char *name =
            memory_printf("%s%s%s", pair->label, pair->label[0] ? ", " : "", row->metric->name);
        report_row_nodes(c, row, &v);
        put_name(out, name);
        for (size_t n = 0; n < v.count; n++)
            put_ratio(out, v.shares[n].change, &v.shares[n]);
        strbuf_puts(out, "</tr>\n");
    }
    if (shown)
        strbuf_puts(out, "</tbody></table></div>\n");
}

void html_put_nodes(struct strbuf *out, const struct page *page)
{
    strbuf_puts(out,
                "<section id=\"nodes\" aria-labelledby=\"h-nodes\"><h2 id=\"h-nodes\">Nodes</h2>\n"
                "<p>The rounds were measured on several nodes of a cluster; values are compared "
                "only within a node.</p>\n");
    if (page->is_compared && page->compare.base->node_count && page->compare.new->node_count)
        put_differences(out, &page->compare);
    for (size_t i = 0; i < page->data.set_count; i++)
        if (page->data.sets[i].node_count)
            put_set(out, &page->data.sets[i]);
    strbuf_puts(out, "</section>\n");
}

/* SPDX-License-Identifier: MIT */
/* See nodes.h. */
#include "report/text/nodes.h"
#include "base/memory.h"
#include "stats/summary.h"

#include <math.h>

/* ---- one experiment ---- */

void report_node_outliers(struct strbuf *out, const struct dataset *d, size_t metric)
{
    CLEANUP(nodes_view_done) struct nodes_view v;
    nodes_of_metric(d, metric, &v);
    for (size_t n = 0; n < v.count; n++)
        if (v.shares[n].is_outlier)
            strbuf_printf(out,
                          "node %s is an outlier: its %s is %.3g× that of the other nodes "
                          "(p=%.2g, n=%zu)\n",
                          d->nodes[n].name, d->metrics[metric].name, v.shares[n].ratio,
                          v.shares[n].p, v.shares[n].count);
}

size_t report_node_runs(const struct dataset *d, size_t node)
{
    size_t count = 0;
    for (size_t i = 0; i < d->run_count; i++)
        count += d->runs[i].node == node;
    return count;
}

enum { NODES_LISTED = 16 };

void report_nodes_text(struct strbuf *out, const struct dataset *d)
{
    if (!d->node_count)
        return;
    strbuf_printf(out, "\n%zu %s:\n", d->node_count, plural(d->node_count, "node", "nodes"));
    for (size_t n = 0; n < d->node_count && n < NODES_LISTED; n++) {
        CLEANUP(memory_freep) char *cpu = nodes_property(d, n, "cpu");
        CLEANUP(memory_freep) char *cpus = nodes_property(d, n, "cpus");
        CLEANUP(memory_freep) char *kernel = nodes_property(d, n, "kernel");
        strbuf_printf(out, "  %s: %zu %s", d->nodes[n].name, report_node_runs(d, n),
                      plural(report_node_runs(d, n), "run", "runs"));
        if (*cpu)
            strbuf_printf(out, "; %s CPUs, %s, kernel %s", cpus, cpu, kernel);
        strbuf_putc(out, '\n');
    }
    if (d->node_count > NODES_LISTED)
        strbuf_printf(out, "  and %zu more\n", d->node_count - NODES_LISTED);
    size_t position = 0, metric;
    while ((metric = dataset_headline(d, &position)) != DATASET_NONE)
        report_node_outliers(out, d, metric);
}

static void put_shares(struct json *j, const struct dataset *d, const struct nodes_view *v)
{
    for (size_t n = 0; n < v->count; n++) {
        json_object(j, NULL);
        json_string(j, "node", d->nodes[n].name);
        json_u64(j, "n", v->shares[n].count);
        json_double(j, "ratio_to_others", v->shares[n].ratio);
        json_double(j, "p", v->shares[n].p);
        json_double(j, "new_to_base", v->shares[n].change);
        json_bool(j, "is_outlier", v->shares[n].is_outlier);
        json_end(j);
    }
}

void report_nodes_json(struct json *j, const struct dataset *d)
{
    if (!d->node_count)
        return;
    json_array(j, "nodes");
    for (size_t n = 0; n < d->node_count; n++) {
        json_object(j, NULL);
        json_string(j, "name", d->nodes[n].name);
        json_u64(j, "runs_count", report_node_runs(d, n));
        for (size_t p = 0; node_properties[p]; p++) {
            CLEANUP(memory_freep) char *value = nodes_property(d, n, node_properties[p]);
            json_string(j, node_properties[p], value);
        }
        json_end(j);
    }
    json_end(j);
    json_array(j, "node_outliers");
    size_t position = 0, metric;
    while ((metric = dataset_headline(d, &position)) != DATASET_NONE) {
        CLEANUP(nodes_view_done) struct nodes_view v;
        nodes_of_metric(d, metric, &v);
        for (size_t n = 0; n < v.count; n++)
            if (v.shares[n].is_outlier) {
                json_object(j, NULL);
                json_string(j, "metric", d->metrics[metric].name);
                json_string(j, "node", d->nodes[n].name);
                json_double(j, "ratio_to_others", v.shares[n].ratio);
                json_end(j);
            }
    }
    json_end(j);
}

/* ---- comparisons ---- */

/* Each value of a property with the changes of its nodes; nothing when all nodes have the same. */
static void put_by_property(struct strbuf *out, const struct dataset *d, const struct nodes_view *v,
                            const char *property)
{
    CLEANUP(memory_freep) char **values = memory_zalloc(v->count + 1, sizeof(*values));
    CLEANUP(memory_freep) double *changes = memory_zalloc(2 * v->count + 1, sizeof(*changes));
    CLEANUP(strbuf_done) struct strbuf line = {0};
    size_t different = 0;
    for (size_t n = 0; n < v->count; n++)
        values[n] = nodes_property(d, n, property);
    for (size_t n = 0; n < v->count; n++) {
        size_t count = 0, first = 0;
        while (!str_eq(values[first], values[n]))
            first++;
        for (size_t k = n; first == n && k < v->count; k++)
            if (str_eq(values[k], values[n]) && isfinite(v->shares[k].change))
                changes[count++] = v->shares[k].change;
        if (!count)
            continue;
        different++;
        strbuf_printf(&line, "%s%s %.3f× (%zu %s)", line.length ? ", " : "",
                      *values[n] ? values[n] : "?",
                      stats_median(changes, count, changes + v->count), count,
                      plural(count, "node", "nodes"));
    }
    for (size_t n = 0; n < v->count; n++)
        free(values[n]);
    if (different > 1)
        strbuf_printf(out, "    by %s: %s\n", property, strbuf_text(&line));
}

void report_row_nodes(const struct compare *c, const struct compare_row *row,
                      struct nodes_view *ret)
{
    const struct compare_pair *pair = &c->pairs[row->pair];
    struct judge_sides sides = {.base = c->base,
                                .new = c->new,
                                .base_metric = row->judged.sides.base_metric,
                                .new_metric = row->judged.sides.new_metric,
                                .base_cell = pair->base_cell,
                                .new_cell = pair->new_cell};
    nodes_of_difference(&sides, ret);
}

static void put_difference(struct strbuf *out, const struct compare *c,
                           const struct compare_row *row)
{
    const struct dataset *d = c->base;
    const struct compare_pair *pair = &c->pairs[row->pair];
    CLEANUP(nodes_view_done) struct nodes_view v;
    report_row_nodes(c, row, &v);
    strbuf_printf(out, "  %s%s%s:", row->metric->name, pair->label[0] ? ", " : "", pair->label);
    size_t shown = 0;
    for (size_t n = 0; n < v.count; n++)
        if (v.shares[n].count && shown < NODES_LISTED)
            strbuf_printf(out, "%s %s %.3f× (n=%zu)", shown++ ? "," : "", d->nodes[n].name,
                          v.shares[n].change, v.shares[n].count);
    strbuf_puts(out, shown ? "\n" : " no node ran both\n");
    for (size_t p = 0; node_properties[p]; p++)
        put_by_property(out, d, &v, node_properties[p]);
    for (size_t n = 0; n < v.count; n++)
        if (v.shares[n].is_outlier)
            strbuf_printf(out,
                          "    node %s is an outlier: new / base is %.3f× there, unlike on the "
                          "other nodes (p=%.2g)\n",
                          d->nodes[n].name, v.shares[n].change, v.shares[n].p);
    if (!c->within && !row->judged.comparison.paired)
        strbuf_printf(out,
                      "    fewer than %d runs of both on the same nodes: differences between nodes "
                      "are part of this difference\n",
                      COMPARISON_ROUNDS_MIN);
}

static bool has_node(const struct dataset *d, const char *name)
{
    for (size_t n = 0; n < d->node_count; n++)
        if (str_eq(d->nodes[n].name, name))
            return true;
    return false;
}

/* Their runs have no partner, so the comparison does without. */
static void put_only_in(struct strbuf *out, const struct dataset *d, const struct dataset *other,
                        const char *name)
{
    size_t count = 0;
    for (size_t n = 0; n < d->node_count; n++)
        if (!has_node(other, d->nodes[n].name))
            strbuf_printf(out, "%s%s",
                          count++ ? ", " : "nodes that are not compared: ", d->nodes[n].name);
    if (count)
        strbuf_printf(out, " (only in %s)\n", name);
}

void report_compare_nodes_text(struct strbuf *out, const struct compare *c)
{
    if (c->base->node_count < 2 && c->new->node_count < 2)
        return;
    bool started = false;
    for (size_t i = 0; c->base->node_count && c->new->node_count &&i < c->row_count; i++) {
        if (!c->rows[i].judged.headline || c->rows[i].judged.comparison.scale != COMPARISON_RATIO)
            continue;
        if (!started)
            strbuf_puts(out, c->within
                                 ? "\nnew / base on each node, where both ran in the same rounds:\n"
                                 : "\nnew / base on each node, the runs of both in their order:\n");
        started = true;
        put_difference(out, c, &c->rows[i]);
    }
    if (started && !c->within) {
        put_only_in(out, c->base, c->new, "base");
        put_only_in(out, c->new, c->base, "new");
    }
    size_t position = 0, metric;
    while ((metric = dataset_headline(c->base, &position)) != DATASET_NONE)
        report_node_outliers(out, c->base, metric);
    position = 0;
    while (c->new != c->base && (metric = dataset_headline(c->new, &position)) != DATASET_NONE)
        report_node_outliers(out, c->new, metric);
}

void report_compare_nodes_json(struct json *j, const struct compare *c)
{
    if (!c->base->node_count || !c->new->node_count)
        return;
    json_array(j, "nodes");
    for (size_t i = 0; i < c->row_count; i++) {
        const struct compare_row *row = &c->rows[i];
        if (!row->judged.headline)
            continue;
        CLEANUP(nodes_view_done) struct nodes_view v;
        report_row_nodes(c, row, &v);
        json_object(j, NULL);
        json_string(j, "metric", row->metric->name);
        json_string(j, "cell", c->pairs[row->pair].label);
        json_array(j, "shares");
        put_shares(j, c->base, &v);
        json_end(j);
        json_end(j);
    }
    json_end(j);
}

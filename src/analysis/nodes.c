/* SPDX-License-Identifier: MIT */
/* See nodes.h. */
#include "analysis/nodes.h"
#include "base/json_read.h"
#include "base/memory.h"
#include "base/strings.h"
#include "stats/summary.h"

#include <math.h>

const char *const node_properties[] = {"type", "cpu",      "cpus",   "kernel", "distribution",
                                       "pmu",  "io-uring", "rights", NULL};

char *nodes_property(const struct dataset *d, size_t node, const char *property)
{
    char *text = d->nodes[node].text ? json_member_text(d->nodes[node].text, property) : NULL;
    return text ? text : memory_strdup("");
}

/* Positive numbers around 1, each of a node. */
struct sample {
    double *values;
    uint32_t *nodes;
    size_t count, value_capacity, node_capacity;
};

static void add(struct sample *s, double value, uint32_t node)
{
    if (!(value > 0) || !isfinite(value) || node == DATASET_NO_NODE)
        return;
    s->values = memory_grow(s->values, &s->value_capacity, s->count + 1, sizeof(*s->values));
    s->nodes = memory_grow(s->nodes, &s->node_capacity, s->count + 1, sizeof(*s->nodes));
    s->values[s->count] = value;
    s->nodes[s->count++] = node;
}

static void sample_done(struct sample *s)
{
    free(s->values);
    free(s->nodes);
}

/* The node's values, or those of all others that are no outliers. */
static size_t pick(const struct sample *s, const struct nodes_view *v, size_t node, bool others,
                   double *out)
{
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++)
        if (others ? s->nodes[i] != node && !v->shares[s->nodes[i]].is_outlier
                   : s->nodes[i] == node)
            out[count++] = s->values[i];
    return count;
}

static void compare_node(const struct sample *s, struct nodes_view *v, size_t node, double *scratch)
{
    struct node_share *share = &v->shares[node];
    struct comparison comparison;
    size_t own = pick(s, v, node, false, scratch);
    size_t rest = pick(s, v, node, true, scratch + own);
    struct judge_values values = {scratch + own, scratch, rest, own, .paired = false};
    share->ratio = share->p = NAN;
    if (own && rest && judge_values(&values, JUDGE_LEVEL, &comparison, NULL) == 0 &&
        comparison.scale == COMPARISON_RATIO) {
        share->ratio = comparison.estimate;
        share->p =
            own >= COMPARISON_VALUES_MIN && rest >= COMPARISON_VALUES_MIN ? comparison.p : NAN;
    }
}

/* Not yet an outlier, and furthest from the others; the count when there is none. */
static size_t furthest(const struct nodes_view *v)
{
    size_t found = v->count;
    for (size_t n = 0; n < v->count; n++) {
        const struct node_share *share = &v->shares[n];
        if (share->is_outlier || isnan(share->ratio))
            continue;
        if (found == v->count || fabs(log(share->ratio)) > fabs(log(v->shares[found].ratio)))
            found = n;
    }
    return found;
}

/* Most nodes must agree: of two that differ neither is the outlier. */
static void find_outliers(const struct sample *s, struct nodes_view *v)
{
    CLEANUP(memory_freep) double *scratch = memory_zalloc(2 * s->count + 1, sizeof(*scratch));
    for (;;) {
        for (size_t n = 0; n < v->count; n++)
            if (!v->shares[n].is_outlier)
                compare_node(s, v, n, scratch);
        size_t n = furthest(v);
        if (n == v->count || v->count - v->outlier_count < 3)
            return;
        struct node_share *share = &v->shares[n];
        if (!(share->p < NODES_CHANCE / (double)v->count) || fabs(share->ratio - 1) < NODES_LEAST)
            return;
        share->is_outlier = true;
        v->outlier_count++;
    }
}

static void start(struct nodes_view *v, const struct dataset *d)
{
    *v = (struct nodes_view){.count = d->node_count,
                             .shares = memory_zalloc(d->node_count + 1, sizeof(*v->shares))};
    for (size_t n = 0; n < d->node_count; n++)
        v->shares[n] = (struct node_share){.node = n, .ratio = NAN, .p = NAN, .change = NAN};
}

static void count_shares(const struct sample *s, struct nodes_view *v)
{
    for (size_t i = 0; i < s->count; i++)
        v->shares[s->nodes[i]].count++;
}

void nodes_of_metric(const struct dataset *d, size_t metric, struct nodes_view *ret)
{
    CLEANUP(sample_done) struct sample s = {0};
    start(ret, d);
    for (size_t c = 0; d->node_count && c < d->cell_count; c++) {
        struct dataset_column column = dataset_column(d, metric, c);
        double median = column.count ? dataset_median(d, metric, c) : NAN;
        for (size_t i = 0; column.nodes && i < column.count; i++)
            add(&s, column.values[i] / median, column.nodes[i]);
    }
    count_shares(&s, ret);
    find_outliers(&s, ret);
}

size_t nodes_pair(const struct dataset *base, const struct dataset_column *a,
                  const struct dataset *new, const struct dataset_column *b, double *first,
                  double *second, uint32_t *nodes)
{
    size_t count = 0;
    CLEANUP(memory_freep) size_t *next = memory_zalloc(base->node_count + 1, sizeof(*next));
    for (size_t i = 0; a->nodes && b->nodes && i < a->count; i++) {
        if (a->nodes[i] == DATASET_NO_NODE)
            continue;
        const char *name = base->nodes[a->nodes[i]].name;
        size_t *k = &next[a->nodes[i]];
        while (*k < b->count &&
               (b->nodes[*k] == DATASET_NO_NODE || !str_eq(new->nodes[b->nodes[*k]].name, name)))
            ++*k;
        if (*k == b->count)
            continue;
        if (nodes)
            nodes[count] = a->nodes[i];
        first[count] = a->values[i];
        second[count++] = b->values[(*k)++];
    }
    return count;
}

static void add_same_rounds(struct sample *s, const struct dataset_column *a,
                            const struct dataset_column *b)
{
    for (size_t i = 0, k = 0; a->nodes && b->nodes && i < a->count && k < b->count;) {
        if (a->rounds[i] == b->rounds[k] && a->nodes[i] == b->nodes[k])
            add(s, b->values[k] / a->values[i], a->nodes[i]);
        uint32_t at = a->rounds[i];
        i += a->rounds[i] <= b->rounds[k];
        k += b->rounds[k] <= at;
    }
}

static void add_same_nodes(struct sample *s, const struct judge_sides *sides,
                           const struct dataset_column *a, const struct dataset_column *b)
{
    CLEANUP(memory_freep) double *values = memory_zalloc(2 * a->count + 1, sizeof(*values));
    CLEANUP(memory_freep) uint32_t *nodes = memory_zalloc(a->count + 1, sizeof(*nodes));
    double *second = values + a->count;
    size_t count = nodes_pair(sides->base, a, sides->new, b, values, second, nodes);
    for (size_t i = 0; i < count; i++)
        add(s, second[i] / values[i], nodes[i]);
}

void nodes_of_difference(const struct judge_sides *sides, struct nodes_view *ret)
{
    struct dataset_column a = dataset_column(sides->base, sides->base_metric, sides->base_cell);
    struct dataset_column b = dataset_column(sides->new, sides->new_metric, sides->new_cell);
    CLEANUP(sample_done) struct sample s = {0};
    start(ret, sides->base);
    if (sides->base == sides->new)
        add_same_rounds(&s, &a, &b);
    else
        add_same_nodes(&s, sides, &a, &b);
    count_shares(&s, ret);
    find_outliers(&s, ret);
    CLEANUP(memory_freep) double *own = memory_zalloc(2 * s.count + 1, sizeof(*own));
    for (size_t n = 0; n < ret->count; n++) {
        size_t count = pick(&s, ret, n, false, own);
        if (count)
            ret->shares[n].change = stats_median(own, count, own + s.count);
    }
}

void nodes_view_done(struct nodes_view *v)
{
    free(v->shares);
    *v = (struct nodes_view){0};
}

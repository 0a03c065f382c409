/* SPDX-License-Identifier: MIT */
/* See history.h. */
#include "analysis/history.h"
#include "base/memory.h"
#include "base/strings.h"
#include "numbers/sort.h"
#include "stats/summary.h"
#include "store/store_rows.h"

#include <errno.h>
#include <stdlib.h>

void histories_done(struct histories *h)
{
    for (size_t i = 0; i < h->count; i++) {
        struct history *one = &h->items[i];
        for (size_t k = 0; k < one->count; k++) {
            free(one->points[k].commit);
            free(one->points[k].subject);
        }
        free(one->points);
        free(one->name);
        free(one->cell);
        free(one->metric);
        free(one->unit);
        change_points_done(&one->changes);
    }
    free(h->items);
    *h = (struct histories){0};
}

/* The runs of the point that is being read. */
struct gathering {
    double *values;
    size_t count, capacity;
};

static void finish_point(struct history *one, struct gathering *g)
{
    if (!g->count)
        return;
    struct history_point *p = &one->points[one->count - 1];
    sort_doubles(g->values, g->count);
    p->median = stats_quantile(g->values, g->count, 0.5);
    p->q1 = stats_quantile(g->values, g->count, 0.25);
    p->q3 = stats_quantile(g->values, g->count, 0.75);
    p->run_count = g->count;
    g->count = 0;
}

static bool is_of(const struct history *one, const struct store_history_row *row)
{
    return str_eq(one->name, row->name) && str_eq(one->cell, row->cell) &&
           str_eq(one->unit, row->unit) && one->quick == row->quick;
}

static void add_row(struct histories *h, const struct store_history_row *row, const char *metric,
                    struct gathering *g)
{
    struct history *one = h->count ? &h->items[h->count - 1] : NULL;
    if (!one || !is_of(one, row)) {
        if (one)
            finish_point(one, g);
        one = &ARRAY_PUSH(h->items, h->count, h->capacity);
        *one = (struct history){.name = memory_strdup(row->name),
                                .cell = memory_strdup(row->cell),
                                .metric = memory_strdup(metric),
                                .unit = memory_strdup(row->unit),
                                .quick = row->quick,
                                .better = row->better};
    }
    if (!one->count || one->points[one->count - 1].experiment != row->experiment) {
        finish_point(one, g);
        ARRAY_PUSH(one->points, one->count, one->capacity) =
            (struct history_point){.experiment = row->experiment,
                                   .commit = memory_strdup(row->commit),
                                   .subject = memory_strdup(row->subject),
                                   .started_at_ns = row->started_at_ns};
    }
    ARRAY_PUSH(g->values, g->count, g->capacity) = row->value;
}

static int read_rows(struct histories *h, struct store *store, const struct history_options *o,
                     struct error *err)
{
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    struct store_history_row row;
    int r = store_history(store, o->metric, o->cell, o->name, &rows, err);
    if (r < 0)
        return r;
    struct gathering g = {0};
    while ((r = store_next_history(&rows, &row, err)) > 0)
        add_row(h, &row, o->metric, &g);
    if (h->count)
        finish_point(&h->items[h->count - 1], &g);
    free(g.values);
    return r;
}

/* What a person may have meant. */
static int no_such_metric(struct store *store, const struct history_options *o, struct error *err)
{
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    const char **names = NULL, *name;
    size_t count = 0, capacity = 0;
    bool known = false;
    int r = store_metric_names(store, &rows, err);
    if (r < 0)
        return r;
    while ((r = store_next_text(&rows, &name, err)) > 0) {
        known |= str_eq(name, o->metric);
        ARRAY_PUSH(names, count, capacity) = memory_strdup(name);
    }
    CLEANUP(strbuf_done) struct strbuf near = {0};
    bool any = !known && str_nearest(o->metric, names, count, 3, &near) > 0;
    for (size_t i = 0; i < count; i++)
        free((char *)names[i]);
    free(names);
    if (r < 0)
        return r;
    return error_set(err, -ENOENT, "no %s of '%s' in the store%s%s%s",
                     known ? "such runs" : "metric", o->metric, any ? "; did you mean " : "",
                     strbuf_text(&near), any ? "?" : "");
}

/* A point's place: its commit's number, or that of the point before it. */
struct place {
    size_t commit, index;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->commit != y->commit)
        return x->commit < y->commit ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void order_by_commit(struct history *one, const struct history_options *o)
{
    CLEANUP(memory_freep) struct place *places = memory_zalloc(one->count + 1, sizeof(*places));
    size_t last = 0;
    for (size_t i = 0; i < one->count; i++) {
        const char *commit = one->points[i].commit;
        size_t length = strcspn(commit, "-");
        for (size_t k = 0; length && k < o->commit_count; k++)
            if (strncmp(o->commits[k], commit, length) == 0)
                last = k;
        places[i] = (struct place){last, i};
    }
    qsort(places, one->count, sizeof(*places), compare_places);
    struct history_point *points = memory_zalloc(one->count + 1, sizeof(*points));
    for (size_t i = 0; i < one->count; i++)
        points[i] = one->points[places[i].index];
    free(one->points);
    one->points = points;
    one->capacity = one->count + 1;
}

static int find_changes(struct history *one, const struct history_options *o, struct error *err)
{
    one->dropped = one->count > CHANGE_POINT_VALUES_MAX ? one->count - CHANGE_POINT_VALUES_MAX : 0;
    size_t count = one->count - one->dropped;
    CLEANUP(memory_freep) double *values = memory_zalloc(count + 1, sizeof(*values));
    for (size_t i = 0; i < count; i++)
        values[i] = one->points[one->dropped + i].median;
    int r = change_points_find(values, count, o->chance, o->seed, &one->changes, err);
    if (r < 0)
        one->changes = (struct change_points){0};
    for (size_t i = 0; r == 0 && i < one->changes.count; i++)
        one->changes.points[i].index += one->dropped;
    return r;
}

int histories_load(struct histories *h, struct store *store, const struct history_options *o,
                   struct error *err)
{
    *h = (struct histories){0};
    int r = read_rows(h, store, o, err);
    if (r == 0 && !h->count)
        r = no_such_metric(store, o, err);
    for (size_t i = 0; i < h->count && r == 0; i++) {
        if (o->commit_count)
            order_by_commit(&h->items[i], o);
        r = find_changes(&h->items[i], o, err);
    }
    return r;
}

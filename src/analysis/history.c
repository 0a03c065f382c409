/* SPDX-License-Identifier: MIT */
/* See history.h. */
#include "analysis/history.h"
#include "base/memory.h"
#include "base/strings.h"
#include "stats/sort.h"
#include "stats/summary.h"

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

/* With a name of its own statement: a condition that may be empty would hide the index. */
#define HISTORY(OF_NAME)                                                                       \
    "SELECT e.id, e.name, e.selection LIKE 'quick%', c.label, m.unit, m.better, e.git_commit," \
    " e.started_at_ns, v.value, (SELECT d.text FROM attachment a JOIN document d"              \
    "  ON d.hash = a.hash WHERE a.experiment = e.id AND a.kind = 'subject')"                   \
    " FROM run r JOIN experiment e ON e.id = r.experiment JOIN cell c ON c.id = r.cell"        \
    " JOIN metric m ON m.name = ?1 JOIN value v ON v.run = r.id AND v.metric = m.id"           \
    " WHERE r.status = 0 AND v.value IS NOT NULL"                                              \
    " AND (?2 = '' OR replace(c.label, ?2, '') <> c.label)" OF_NAME                            \
    " ORDER BY e.name, 3, c.label, m.unit, e.started_at_ns, e.id"

enum { ID, NAME, QUICK, CELL, UNIT, BETTER, COMMIT, STARTED, VALUE, SUBJECT };

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

static bool is_of(const struct history *one, const struct sql_rows *rows)
{
    return str_eq(one->name, sql_text(rows, NAME)) && str_eq(one->cell, sql_text(rows, CELL)) &&
           str_eq(one->unit, sql_text(rows, UNIT)) && one->quick == (sql_i64(rows, QUICK) != 0);
}

static void add_row(struct histories *h, const struct sql_rows *rows, const char *metric,
                    struct gathering *g)
{
    struct history *one = h->count ? &h->items[h->count - 1] : NULL;
    if (!one || !is_of(one, rows)) {
        if (one)
            finish_point(one, g);
        int64_t better = sql_i64(rows, BETTER);
        one = &ARRAY_PUSH(h->items, h->count, h->capacity);
        *one = (struct history){.name = memory_strdup(sql_text(rows, NAME)),
                                .cell = memory_strdup(sql_text(rows, CELL)),
                                .metric = memory_strdup(metric),
                                .unit = memory_strdup(sql_text(rows, UNIT)),
                                .quick = sql_i64(rows, QUICK) != 0,
                                .better = better == METRIC_LOWER || better == METRIC_HIGHER
                                              ? (enum metric_better)better
                                              : METRIC_NEITHER};
    }
    if (!one->count || one->points[one->count - 1].experiment != sql_i64(rows, ID)) {
        finish_point(one, g);
        ARRAY_PUSH(one->points, one->count, one->capacity) =
            (struct history_point){.experiment = sql_i64(rows, ID),
                                   .commit = memory_strdup(sql_text(rows, COMMIT)),
                                   .subject = memory_strdup(sql_text(rows, SUBJECT)),
                                   .started_at_ns = (uint64_t)sql_i64(rows, STARTED)};
    }
    ARRAY_PUSH(g->values, g->count, g->capacity) = sql_double(rows, VALUE);
}

static int read_rows(struct histories *h, struct store *store, const struct history_options *o,
                     struct error *err)
{
    struct sql_rows *rows;
    const char *cell = o->cell ? o->cell : "";
    int r = o->name && *o->name
                ? sql_query(store_sql(store), &rows, err, HISTORY(" AND e.name = ?3"), "ttt",
                            o->metric, cell, o->name)
                : sql_query(store_sql(store), &rows, err, HISTORY(""), "tt", o->metric, cell);
    if (r < 0)
        return r;
    struct gathering g = {0};
    while ((r = sql_next(rows, err)) > 0)
        add_row(h, rows, o->metric, &g);
    if (h->count)
        finish_point(&h->items[h->count - 1], &g);
    sql_rows_done(rows);
    free(g.values);
    return r;
}

/* What a person may have meant. */
static int no_such_metric(struct store *store, const struct history_options *o, struct error *err)
{
    struct sql_rows *rows;
    const char **names = NULL;
    size_t count = 0, capacity = 0;
    bool known = false;
    int r = sql_query(store_sql(store), &rows, err, "SELECT DISTINCT name FROM metric", NULL);
    if (r < 0)
        return r;
    while ((r = sql_next(rows, err)) > 0) {
        known |= str_eq(sql_text(rows, 0), o->metric);
        ARRAY_PUSH(names, count, capacity) = memory_strdup(sql_text(rows, 0));
    }
    sql_rows_done(rows);
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

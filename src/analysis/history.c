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
        for (size_t k = 0; one->remarks && k < one->changes.count; k++) {
            free(one->remarks[k].note);
            free(one->remarks[k].search);
        }
        free(one->remarks);
        free(one->branch);
        free(one->machine);
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
           str_eq(one->unit, row->unit) && one->quick == row->quick &&
           str_eq(one->branch, row->branch) && str_eq(one->machine, row->machine_class);
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
                                .branch = memory_strdup(row->branch),
                                .machine = memory_strdup(row->machine_class),
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
        if (!o->branch || !*row.branch || str_eq(o->branch, row.branch))
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
    if (known)
        return error_set(err, -ENOENT, "no runs of this selection have the metric '%s'", o->metric);
    return error_set(err, -ENOENT, "there is no metric '%s' in the store%s%s%s", o->metric,
                     any ? "; did you mean " : "", strbuf_text(&near), any ? "?" : "");
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

static bool is_same_benchmark(const struct history *a, const struct history *b)
{
    return str_eq(a->name, b->name) && str_eq(a->cell, b->cell) && str_eq(a->unit, b->unit) &&
           a->quick == b->quick;
}

static int compare_points(const void *a, const void *b)
{
    const struct history_point *x = a, *y = b;
    if (x->started_at_ns != y->started_at_ns)
        return x->started_at_ns < y->started_at_ns ? -1 : 1;
    return x->experiment < y->experiment ? -1 : x->experiment > y->experiment;
}

/* Moves the points of one history into another, and the first out of the list. */
static void merge(struct histories *h, size_t from, size_t into)
{
    struct history *source = &h->items[from], *target = &h->items[into];
    for (size_t i = 0; i < source->count; i++)
        ARRAY_PUSH(target->points, target->count, target->capacity) = source->points[i];
    qsort(target->points, target->count, sizeof(*target->points), compare_points);
    source->count = 0;
    struct histories gone = {.items = memory_zalloc(1, sizeof(*source)), .count = 1};
    gone.items[0] = *source;
    histories_done(&gone);
    memmove(source, source + 1, (h->count - from - 1) * sizeof(*source));
    h->count--;
}

/* Experiments of stores before schema 4 say neither branch nor machine: they belong to the one
 * history of the benchmark that does, where there is only one. */
static void join_unknown(struct histories *h)
{
    for (size_t i = 0; i < h->count; i++) {
        size_t others = 0, into = 0;
        if (*h->items[i].branch || *h->items[i].machine)
            continue;
        for (size_t k = 0; k < h->count; k++)
            if (k != i && is_same_benchmark(&h->items[i], &h->items[k])) {
                others++;
                into = k;
            }
        if (others == 1)
            merge(h, i--, into);
    }
}

/* ---- remarks ---- */

enum { REMARK_DISTANCE = 3 }; /* a change is found again although its place has moved so far */

static int direction_of(const struct change_point *c)
{
    return c->change.estimate >= (c->change.scale == COMPARISON_RATIO ? 1 : 0) ? 1 : -1;
}

static bool remark_is_of(const struct history *one, const struct store_remark *m)
{
    return str_eq(m->name, one->name) && str_eq(m->cell, one->cell) && str_eq(m->unit, one->unit) &&
           str_eq(m->branch, one->branch) && str_eq(m->machine_class, one->machine);
}

/* The change that a remark means: the nearest one in its direction. */
static size_t remarked_change(const struct history *one, const struct store_remark *m)
{
    size_t at = 0, found = one->changes.count, least = REMARK_DISTANCE + 1;
    while (at < one->count && one->points[at].started_at_ns < m->at_ns)
        at++;
    for (size_t c = 0; c < one->changes.count; c++) {
        size_t index = one->changes.points[c].index;
        size_t distance = index > at ? index - at : at - index;
        if (one->remarks[c].direction == m->direction && distance < least) {
            least = distance;
            found = c;
        }
    }
    return found;
}

static int read_remarks(struct histories *h, struct store *store, const char *metric,
                        struct error *err)
{
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    struct store_remark m;
    for (size_t i = 0; i < h->count; i++) {
        struct history *one = &h->items[i];
        one->remarks = memory_zalloc(one->changes.count + 1, sizeof(*one->remarks));
        for (size_t c = 0; c < one->changes.count; c++)
            one->remarks[c].direction = direction_of(&one->changes.points[c]);
    }
    int r = store_remarks(store, metric, &rows, err);
    while (r >= 0 && (r = store_next_remark(&rows, &m, err)) > 0)
        for (size_t i = 0; i < h->count; i++) {
            struct history *one = &h->items[i];
            size_t c = remark_is_of(one, &m) ? remarked_change(one, &m) : one->changes.count;
            if (c == one->changes.count)
                continue;
            if (str_eq(m.kind, "told")) {
                one->remarks[c].is_told = true;
                continue;
            }
            char **text =
                str_eq(m.kind, "searched") ? &one->remarks[c].search : &one->remarks[c].note;
            free(*text);
            *text = memory_strdup(m.note);
        }
    return r;
}

static struct store_remark remark_of(const struct history *one, size_t change, const char *kind,
                                     const char *note)
{
    return (struct store_remark){.kind = kind,
                                 .name = one->name,
                                 .cell = one->cell,
                                 .metric = one->metric,
                                 .unit = one->unit,
                                 .branch = one->branch,
                                 .machine_class = one->machine,
                                 .at_ns =
                                     one->points[one->changes.points[change].index].started_at_ns,
                                 .direction = one->remarks[change].direction,
                                 .note = note};
}

int history_accept(struct store *store, const struct history *one, size_t change, const char *note,
                   bool *ret_added, struct error *err)
{
    struct store_remark m = remark_of(one, change, "accepted", note);
    return store_add_remark(store, &m, ret_added, err);
}

int history_tell(struct store *store, const struct history *one, size_t change, bool *ret_added,
                 struct error *err)
{
    struct store_remark m = remark_of(one, change, "told", "");
    return store_add_remark(store, &m, ret_added, err);
}

int history_untell(struct store *store, const struct history *one, size_t change, struct error *err)
{
    struct store_remark m = remark_of(one, change, "told", "");
    return store_remove_remark(store, &m, err);
}

int history_search_keep(struct store *store, struct history *one, size_t change,
                        const struct history_search *s, struct error *err)
{
    bool added;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_printf(&text, "%s\t%s\t%s\n%s", s->verdict, s->commit, s->subject, s->reasons);
    struct store_remark m = remark_of(one, change, "searched", strbuf_text(&text));
    int r = store_add_remark(store, &m, &added, err);
    free(one->remarks[change].search);
    one->remarks[change].search = memory_strdup(strbuf_text(&text));
    return r;
}

bool history_search_read(struct history_search *s, const char *text)
{
    char **fields[] = {&s->verdict, &s->commit, &s->subject};
    *s = (struct history_search){0};
    for (size_t i = 0; text && i < ARRAY_COUNT(fields); i++) {
        size_t length = strcspn(text, i + 1 < ARRAY_COUNT(fields) ? "\t\n" : "\n");
        *fields[i] = memory_strndup(text, length);
        text += length + (text[length] != '\0');
    }
    s->reasons = memory_strdup(text ? text : "");
    return text != NULL;
}

void history_search_done(struct history_search *s)
{
    free(s->verdict);
    free(s->commit);
    free(s->subject);
    free(s->reasons);
    *s = (struct history_search){0};
}

int histories_load(struct histories *h, struct store *store, const struct history_options *o,
                   struct error *err)
{
    *h = (struct histories){0};
    int r = read_rows(h, store, o, err);
    if (r == 0 && !h->count)
        r = no_such_metric(store, o, err);
    join_unknown(h);
    for (size_t i = 0; i < h->count && r == 0; i++) {
        if (o->commit_count)
            order_by_commit(&h->items[i], o);
        r = find_changes(&h->items[i], o, err);
    }
    return r == 0 ? read_remarks(h, store, o->metric, err) : r;
}

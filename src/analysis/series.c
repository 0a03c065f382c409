/* SPDX-License-Identifier: MIT */
/* Measured values by metric: see series.h. */
#include "analysis/series.h"
#include "base/memory.h"

#include <math.h>

struct series *series_add(struct series_set *set, const char *name, const char *unit,
                          enum series_kind kind, size_t capacity)
{
    size_t columns = set->contestant_count;
    struct series *s = &ARRAY_PUSH(set->items, set->count, set->capacity);
    *s = (struct series){.name = memory_strdup(name), .unit = memory_strdup(unit), .kind = kind};
    s->values = memory_zalloc(columns + 1, sizeof(*s->values));
    s->counts = memory_zalloc(columns + 1, sizeof(*s->counts));
    s->is_bound = memory_zalloc(columns + 1, sizeof(*s->is_bound));
    for (size_t i = 0; i < columns; i++) {
        s->values[i] = memory_zalloc(capacity + 1, sizeof(**s->values));
        for (size_t j = 0; j < capacity; j++)
            s->values[i][j] = NAN;
    }
    return s;
}

void series_set_done(struct series_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        struct series *s = &set->items[i];
        for (size_t j = 0; j < set->contestant_count; j++)
            free(s->values[j]);
        free(s->values);
        free(s->counts);
        free(s->is_bound);
        free(s->name);
        free(s->unit);
    }
    free(set->items);
    *set = (struct series_set){0};
}

const struct series *series_find(const struct series_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (str_eq(set->items[i].name, name))
            return &set->items[i];
    return NULL;
}

/* A series of one value per round, from a function of the run. */
static struct series *add_rounds(struct series_set *set, const struct rounds *r, const char *name,
                                 const char *unit, enum series_kind kind)
{
    struct series *s = series_add(set, name, unit, kind, r->count);
    for (size_t i = 0; i < set->contestant_count; i++)
        s->counts[i] = r->count;
    return s;
}

static bool is_wanted(const struct series_set *set, const char *name)
{
    return !set->only || str_eq(set->only, name);
}

static void add_figure(struct series_set *set, const struct rounds *r, const char *name,
                       const char *unit, enum series_kind kind, enum series_source source,
                       double (*value)(const struct run_record *run))
{
    if (!is_wanted(set, name))
        return;
    struct series *s = add_rounds(set, r, name, unit, kind);
    s->source = source;
    for (size_t i = 0; i < set->contestant_count; i++)
        for (size_t j = 0; j < r->count; j++)
            s->values[i][j] = value(&r->items[j].runs[i]);
}

static double wall_of(const struct run_record *run)
{
    return (double)run->wall_ns;
}

static double user_of(const struct run_record *run)
{
    return (double)run->user_ns;
}

static double sys_of(const struct run_record *run)
{
    return (double)run->sys_ns;
}

static double rss_of(const struct run_record *run)
{
    return (double)run->rss_bytes_max;
}

static double minor_of(const struct run_record *run)
{
    return (double)run->minor_faults;
}

static double voluntary_of(const struct run_record *run)
{
    return (double)run->voluntary_switches;
}

static double involuntary_of(const struct run_record *run)
{
    return (double)run->involuntary_switches;
}

static void add_usage(struct series_set *set, const struct rounds *r)
{
    add_figure(set, r, "wall", "ns", SERIES_TIME, SERIES_CLOCK, wall_of);
    add_figure(set, r, "user", "ns", SERIES_TIME, SERIES_USAGE, user_of);
    add_figure(set, r, "sys", "ns", SERIES_TIME, SERIES_USAGE, sys_of);
    add_figure(set, r, "peak-rss", "bytes", SERIES_BYTES, SERIES_USAGE, rss_of);
    struct series *rss = (struct series *)series_find(set, "peak-rss");
    if (!rss)
        return;
    for (size_t i = 0; i < set->contestant_count; i++)
        for (size_t j = 0; j < r->count; j++)
            rss->is_bound[i] |= r->items[j].runs[i].rss_is_bound;
}

static void add_event(struct series_set *set, const struct rounds *r, const struct event *e,
                      size_t index)
{
    enum series_kind kind = e->in_ns ? SERIES_TIME : *e->unit ? SERIES_VALUE : SERIES_COUNT;
    CLEANUP(memory_freep)
    char *name = memory_printf("%s%s", e->name, r->user_only[index] ? ":u" : "");
    if (!is_wanted(set, name))
        return;
    struct series *s = add_rounds(set, r, name, e->in_ns ? "ns" : e->unit, kind);
    s->source = SERIES_EVENT;
    for (size_t i = 0; i < set->contestant_count; i++)
        for (size_t j = 0; j < r->count; j++) {
            const struct counter_value *value = &r->items[j].runs[i].values[index];
            if (counter_was_counted(value))
                s->values[i][j] = counter_scaled(value) * e->scale;
        }
}

static void add_events(struct series_set *set, const struct rounds *r,
                       const struct event_list *events)
{
    bool any = false;
    for (size_t i = 0; i < events->count; i++) {
        if (r->why[i])
            continue;
        add_event(set, r, &events->items[i], i);
        any = true;
    }
    if (any)
        return;
    add_figure(set, r, "minor-faults", "", SERIES_COUNT, SERIES_USAGE, minor_of);
    add_figure(set, r, "voluntary-switches", "", SERIES_COUNT, SERIES_USAGE, voluntary_of);
    add_figure(set, r, "involuntary-switches", "", SERIES_COUNT, SERIES_USAGE, involuntary_of);
}

static struct series *add_metric(struct series_set *set, const struct rounds *r,
                                 const struct metric *m, const char *name)
{
    bool is_time = metric_unit_ns(m->unit) > 0;
    struct series *s =
        add_rounds(set, r, name, is_time ? "ns" : m->unit, is_time ? SERIES_TIME : SERIES_VALUE);
    s->source = SERIES_PROGRAM;
    s->better = metric_facts_of(m->name, m->unit).better;
    return s;
}

/* The metrics of all runs, in the order in which they first came. */
static void add_metrics(struct series_set *set, const struct rounds *r)
{
    size_t own_count = set->count;
    for (size_t j = 0; j < r->count; j++)
        for (size_t i = 0; i < set->contestant_count; i++) {
            const struct run_record *run = &r->items[j].runs[i];
            for (size_t k = 0; k < run->metric_count; k++) {
                const struct metric *m = &run->metrics[k];
                bool clashes = false;
                for (size_t own = 0; own < own_count; own++)
                    clashes |= str_eq(set->items[own].name, m->name);
                CLEANUP(memory_freep)
                char *name = memory_printf("%s%s", clashes ? "program:" : "", m->name);
                if (!is_wanted(set, name))
                    continue;
                struct series *s = (struct series *)series_find(set, name);
                if (!s)
                    s = add_metric(set, r, m, name);
                double ns = metric_unit_ns(m->unit);
                s->values[i][j] = m->value * (s->kind == SERIES_TIME && ns > 0 ? ns : 1);
            }
        }
}

void series_from_rounds(struct series_set *set, const struct rounds *r,
                        const struct event_list *events, const char *only)
{
    *set =
        (struct series_set){.contestant_count = r->contestant_count, .paired = true, .only = only};
    add_usage(set, r);
    add_events(set, r, events);
    add_metrics(set, r);
}

size_t series_pairs(const struct series *s, size_t base, size_t other, double *base_values,
                    double *other_values)
{
    size_t count = 0;
    for (size_t i = 0; i < s->counts[base] && i < s->counts[other]; i++) {
        if (!isfinite(s->values[base][i]) || !isfinite(s->values[other][i]))
            continue;
        base_values[count] = s->values[base][i];
        other_values[count++] = s->values[other][i];
    }
    return count;
}

size_t series_values(const struct series *s, size_t contestant, double *values)
{
    size_t count = 0;
    for (size_t i = 0; i < s->counts[contestant]; i++)
        if (isfinite(s->values[contestant][i]))
            values[count++] = s->values[contestant][i];
    return count;
}

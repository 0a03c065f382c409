/* SPDX-License-Identifier: MIT */
/* Reads what a page holds besides experiments: profiles, explanations, readings over time. */
#include "base/memory.h"
#include "report/page/columns.h"
#include "report/page/embedded_internal.h"

#include <errno.h>
#include <math.h>

#if HAVE_JANSSON

char *embedded_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return memory_strdup(text ? text : "");
}

char *embedded_text_or_null(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? memory_strdup(text) : NULL;
}

uint64_t embedded_number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

int embedded_damaged(struct error *err, const char *what)
{
    return error_set(err, -EINVAL, "the data is damaged: %s" EMBEDDED_REMEDY, what);
}

/* As older versions wrote it. */
static bool take_numbers(struct column *c, const json_t *list)
{
    *c = (struct column){.count = json_array_size(list)};
    c->values = memory_zalloc(c->count + 1, sizeof(*c->values));
    for (size_t i = 0; i < c->count; i++) {
        const json_t *number = json_array_get(list, i);
        if (!json_is_integer(number) || json_integer_value(number) < 0)
            return false;
        c->values[i] = (uint64_t)json_integer_value(number);
    }
    return true;
}

/* Whether it is a column; a missing one is empty.  The caller frees it either way. */
static bool get_column(struct column *c, const json_t *object, const char *key)
{
    const json_t *column = json_object_get(object, key);
    return json_is_string(column)
               ? column_read(c, json_string_value(column), json_string_length(column))
               : take_numbers(c, column);
}

/* ---- profiles ---- */

/* The functions of all profiles; of pages of older assays, those of one. */
struct name_source {
    const json_t *texts, *dsos, *flags, *known_as;
    const char **dso_of, **known_of; /* [name] */
    size_t count;
};

static int name_source_init(struct name_source *n, const json_t *root, const json_t *profile,
                            struct error *err)
{
    const json_t *own = json_object_get(profile, "names");
    const json_t *shared = own ? NULL : json_object_get(root, "names");
    *n = (struct name_source){
        .texts = own ? own : json_object_get(shared, "text"),
        .dsos = own ? json_object_get(profile, "dsos") : json_object_get(shared, "dso"),
        .flags = json_object_get(own ? profile : shared, "flags"),
        .known_as = own ? NULL : json_object_get(shared, "known_as"),
    };
    n->count = json_array_size(n->texts);
    n->dso_of = memory_zalloc(n->count + 1, sizeof(*n->dso_of));
    n->known_of = memory_zalloc(n->count + 1, sizeof(*n->known_of));
    for (size_t i = 0; i < n->count; i++) {
        const json_t *dso = json_array_get(n->dsos, i);
        n->dso_of[i] = json_is_null(dso) && i ? n->dso_of[i - 1] : json_string_value(dso);
        if (!json_is_string(json_array_get(n->texts, i)) || !n->dso_of[i])
            return embedded_damaged(err, "a function's name");
    }
    size_t at;
    const json_t *pair;
    json_array_foreach(n->known_as, at, pair)
    {
        json_int_t index = json_integer_value(json_array_get(pair, 0));
        const char *text = json_string_value(json_array_get(pair, 1));
        if (index < 0 || (uint64_t)index >= n->count || !text)
            return embedded_damaged(err, "a function's other name");
        n->known_of[index] = text;
    }
    return 0;
}

static void name_source_done(struct name_source *n)
{
    free(n->dso_of);
    free(n->known_of);
}

/* The flame's own number of a name, which it gets when it is first used. */
static uint32_t take_name(struct flame *f, const struct name_source *n, size_t name,
                          uint32_t *own_of)
{
    if (!own_of[name]) {
        ARRAY_PUSH(f->names, f->name_count, f->name_capacity) = (struct flame_name){
            .symbol = FLAME_NO_SYMBOL,

            .text = memory_strdup(json_string_value(json_array_get(n->texts, name))),
            .dso = memory_strdup(n->dso_of[name]),
            .known_as = n->known_of[name] ? memory_strdup(n->known_of[name]) : NULL,
            .flags = (uint32_t)json_integer_value(json_array_get(n->flags, name)) & 31};
        own_of[name] = (uint32_t)f->name_count;
    }
    return own_of[name] - 1;
}

/* How deep each frame is: of pages of older assays as it is, else by how many levels it is above
 * the one below the frame before. */
static bool read_depths(struct column *depths, const json_t *profile)
{
    uint64_t last = 0;
    if (!json_object_get(profile, "up"))
        return get_column(depths, profile, "depth");
    if (!get_column(depths, profile, "up"))
        return false;
    for (size_t i = 0; i < depths->count; i++) {
        uint64_t deepest = i ? last + 1 : 0;
        if (depths->values[i] > deepest)
            return false;
        last = depths->values[i] = deepest - depths->values[i];
    }
    return true;
}

static int read_nodes(struct flame *f, const json_t *profile, const struct name_source *n,
                      uint32_t *own_of, struct error *err)
{
    CLEANUP(column_done) struct column depths = {0}, names = {0};
    CLEANUP(column_done) struct column samples = {0}, weights = {0};
    double each = json_number_value(json_object_get(profile, "each"));
    bool weighed = json_object_get(profile, "weight") != NULL;
    uint64_t deepest = 0;
    if (!read_depths(&depths, profile) || !get_column(&names, profile, "name") ||
        !get_column(&samples, profile, "samples") || !get_column(&weights, profile, "weight") ||
        names.count != depths.count || samples.count != depths.count ||
        (weighed && weights.count != depths.count))
        return embedded_damaged(err, "the frames");
    for (size_t i = 0; i < depths.count; i++) {
        if (depths.values[i] > deepest || depths.values[i] > FLAME_DEPTH_MAX ||
            names.values[i] >= n->count || samples.values[i] > INT64_MAX / 4)
            return embedded_damaged(err, "a frame");
        double product = each * (double)samples.values[i];
        ARRAY_PUSH(f->nodes, f->node_count, f->node_capacity) = (struct flame_node){
            .depth = (uint32_t)depths.values[i],
            .name = take_name(f, n, names.values[i], own_of),
            .self_samples = samples.values[i],
            .self_weight = weighed                          ? weights.values[i]
                           : product >= 0 && product < 9e18 ? (uint64_t)llrint(product)
                                                            : 0};
        deepest = depths.values[i] + 1;
    }
    return 0;
}

/* ---- when ---- */

/* A column that is as long as the others. */
static bool column_of(struct column *c, const json_t *object, const char *key, size_t count)
{
    return get_column(c, object, key) && c->count == count;
}

static int read_moments(struct flame *f, const json_t *from, struct error *err)
{
    CLEANUP(column_done) struct column steps = {0}, nodes = {0}, threads = {0};
    uint64_t at_us = 0;
    if (!get_column(&steps, from, "us") || !column_of(&nodes, from, "node", steps.count) ||
        !column_of(&threads, from, "thread", steps.count))
        return embedded_damaged(err, "the times of samples");
    f->moment_every = embedded_number(from, "every");
    for (size_t i = 0; i < steps.count; i++) {
        at_us += steps.values[i];
        if (nodes.values[i] >= f->node_count || threads.values[i] >= f->thread_count ||
            at_us > INT64_MAX / 4000)
            return embedded_damaged(err, "the time of a sample");
        ARRAY_PUSH(f->moments, f->moment_count, f->moment_capacity) =
            (struct flame_moment){.at_ns = at_us * 1000,
                                  .node = (uint32_t)nodes.values[i],
                                  .thread = (uint32_t)threads.values[i]};
    }
    return 0;
}

static int read_waits(struct flame *f, const json_t *from, const struct name_source *n,
                      uint32_t *own_of, struct error *err)
{
    CLEANUP(column_done) struct column steps = {0}, names = {0};
    CLEANUP(column_done) struct column lengths = {0}, threads = {0};
    uint64_t at_us = 0;
    if (!get_column(&steps, from, "us") || !column_of(&names, from, "name", steps.count) ||
        !column_of(&lengths, from, "length_us", steps.count) ||
        !column_of(&threads, from, "thread", steps.count))
        return embedded_damaged(err, "the times of waits");
    f->waits_left_out = embedded_number(from, "left_out");
    for (size_t i = 0; i < steps.count; i++) {
        at_us += steps.values[i];
        if (names.values[i] >= n->count || threads.values[i] >= f->thread_count ||
            at_us > INT64_MAX / 4000 || lengths.values[i] > INT64_MAX / 4000)
            return embedded_damaged(err, "the time of a wait");
        ARRAY_PUSH(f->waits, f->wait_count, f->wait_capacity) =
            (struct flame_wait){.from_ns = at_us * 1000,
                                .length_ns = lengths.values[i] * 1000,
                                .thread = (uint32_t)threads.values[i],
                                .name = take_name(f, n, names.values[i], own_of)};
    }
    return 0;
}

static int read_times(struct flame *f, const json_t *profile, const struct name_source *n,
                      uint32_t *own_of, struct error *err)
{
    size_t i;
    const json_t *thread, *sources = json_object_get(profile, "sources");
    json_array_foreach(json_object_get(profile, "threads"), i, thread)
    {
        const char *name = json_string_value(json_array_get(thread, 0));
        ARRAY_PUSH(f->threads, f->thread_count, f->thread_capacity) =
            (struct flame_thread){memory_strdup(name ? name : ""),
                                  (uint32_t)json_integer_value(json_array_get(thread, 1))};
    }
    if (json_is_object(sources)) {
        char *text = json_dumps(sources, JSON_COMPACT);
        f->sources = text ? memory_strdup(text) : NULL;
        free(text);
    }
    int r = read_moments(f, json_object_get(profile, "moments"), err);
    return r < 0 ? r : read_waits(f, json_object_get(profile, "waits"), n, own_of, err);
}

static int read_profile(struct embedded *e, const json_t *root, const json_t *profile,
                        struct error *err)
{
    struct flame *f = &ARRAY_PUSH(e->flames, e->flame_count, e->flame_capacity);
    double cost = json_number_value(json_object_get(profile, "cost"));
    *f = (struct flame){.label = embedded_text(profile, "label"),
                        .event = embedded_text(profile, "event"),
                        .is_time = json_is_true(json_object_get(profile, "is_time")),
                        .lost = embedded_number(profile, "lost"),
                        .cost = isfinite(cost) && cost > 0 ? cost : 0,
                        .order_every = embedded_number(profile, "order_every"),
                        .notes = embedded_text_or_null(profile, "notes")};
    struct name_source names;
    int r = name_source_init(&names, root, profile, err);
    CLEANUP(memory_freep) uint32_t *own_of = memory_zalloc(names.count + 1, sizeof(*own_of));
    if (r == 0)
        r = read_nodes(f, profile, &names, own_of, err);
    if (r == 0)
        r = read_times(f, profile, &names, own_of, err);
    name_source_done(&names);
    if (r < 0)
        return r;
    CLEANUP(column_done) struct column order = {0};
    if (!get_column(&order, profile, "order"))
        return embedded_damaged(err, "the order of time");
    f->order = memory_zalloc(order.count + 1, sizeof(*f->order));
    for (size_t i = 0; i < order.count; i++) {
        if (order.values[i] >= f->node_count)
            return embedded_damaged(err, "the order of time");
        f->order[f->order_count++] = (uint32_t)order.values[i];
    }
    flame_sum(f);
    return 0;
}

/* ---- over time ---- */

/* As many numbers as are wanted; NAN for null. */
static double *read_numbers(const json_t *array, size_t count)
{
    double *values = memory_zalloc(count + 1, sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(array, i);
        values[i] = json_is_number(item) ? json_number_value(item) : NAN;
    }
    return values;
}

static int read_monitor(struct embedded *e, const json_t *from, struct error *err)
{
    struct embedded_monitor *m = &ARRAY_PUSH(e->monitors, e->monitor_count, e->monitor_capacity);
    *m = (struct embedded_monitor){.name = embedded_text(from, "name"),
                                   .unit = embedded_text(from, "unit")};
    size_t i;
    const json_t *trace;
    json_array_foreach(json_object_get(from, "traces"), i, trace)
    {
        const json_t *seconds = json_object_get(trace, "seconds");
        uint64_t cell = embedded_number(trace, "cell");
        if (!e->set_count || cell >= e->sets[0].cell_count)
            return embedded_damaged(err, "a monitor's reading without a cell");
        size_t count = json_array_size(seconds);
        ARRAY_PUSH(m->traces, m->count, m->capacity) =
            (struct embedded_trace){.cell = (size_t)cell,
                                    .seconds = read_numbers(seconds, count),
                                    .values = read_numbers(json_object_get(trace, "values"), count),
                                    .count = count};
    }
    return 0;
}

static void read_history(struct embedded *e, const json_t *from)
{
    struct embedded_history *h = &ARRAY_PUSH(e->histories, e->history_count, e->history_capacity);
    const json_t *medians = json_object_get(from, "medians");
    size_t count = json_array_size(medians);
    *h = (struct embedded_history){
        .label = embedded_text(from, "label"),
        .metric = embedded_text(from, "metric"),
        .unit = embedded_text(from, "unit"),
        .medians = read_numbers(medians, count),
        .lows = read_numbers(json_object_get(from, "lows"), count),
        .highs = read_numbers(json_object_get(from, "highs"), count),
        .experiments = memory_zalloc(count + 1, sizeof(int64_t)),
        .commits = memory_zalloc(count + 1, sizeof(char *)),
        .count = count,
    };
    const json_t *commits = json_object_get(from, "commits");
    const json_t *experiments = json_object_get(from, "experiments");
    for (size_t i = 0; i < count; i++) {
        const char *commit = json_string_value(json_array_get(commits, i));
        h->experiments[i] = json_integer_value(json_array_get(experiments, i));
        h->commits[i] = memory_strdup(commit ? commit : "");
    }
}

static int read_explanations(struct embedded *e, const json_t *list, struct error *err)
{
    if (!json_array_size(list))
        return 0;
    json_t *document = json_pack("{s:s, s:O}", "format", "assay-explain-1", "explanations", list);
    char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
    int r = text ? explanations_read(&e->explanations, text, strlen(text), err)
                 : embedded_damaged(err, "an explanation");
    free(text);
    json_decref(document);
    return r;
}

int embedded_read_parts(struct embedded *e, const json_t *root, struct error *err)
{
    const json_t *profiles = json_object_get(root, "profiles"), *item;
    size_t i;
    int r = 0;
    for (i = 0; r == 0 && i < json_array_size(profiles); i++)
        r = read_profile(e, root, json_array_get(profiles, i), err);
    if (r == 0)
        r = read_explanations(e, json_object_get(root, "explanations"), err);
    /* Of two pages, those of the first are shown. */
    bool is_second = e->set_count > json_array_size(json_object_get(root, "experiments"));
    const json_t *monitors = json_object_get(root, "monitors");
    for (i = 0; r == 0 && !is_second && i < json_array_size(monitors); i++)
        r = read_monitor(e, json_array_get(monitors, i), err);
    if (r == 0 && !is_second)
        json_array_foreach(json_object_get(root, "histories"), i, item) read_history(e, item);
    return r;
}

#endif

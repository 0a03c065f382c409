/* SPDX-License-Identifier: MIT */
/* Reads a page's data back.  The page may come from anywhere: every number is checked before it
 * becomes an index or a size. */
#include "base/base64.h"
#include "base/fd.h"
#include "base/memory.h"
#include "config.h"
#include "report/page/embedded_internal.h"

#include <errno.h>
#include <math.h>
#if HAVE_ZLIB
#include <zlib.h>
#endif

/* What a page's data may unpack to. */
#define UNPACKED_MAX (256u << 20)

static void monitor_done(struct embedded_monitor *m)
{
    for (size_t t = 0; t < m->count; t++) {
        free(m->traces[t].seconds);
        free(m->traces[t].values);
    }
    free(m->traces);
    free(m->name);
    free(m->unit);
}

static void history_done(struct embedded_history *h)
{
    for (size_t i = 0; i < h->count; i++)
        free(h->commits[i]);
    free(h->commits);
    free(h->experiments);
    free(h->medians);
    free(h->lows);
    free(h->highs);
    free(h->label);
    free(h->metric);
    free(h->unit);
}

void embedded_done(struct embedded *e)
{
    for (size_t i = 0; i < e->set_count; i++) {
        dataset_done(&e->sets[i]);
        free(e->documents[i].machine);
        free(e->documents[i].environment);
        free(e->documents[i].spec);
    }
    for (size_t i = 0; i < e->flame_count; i++)
        flame_done(&e->flames[i]);
    for (size_t i = 0; i < e->monitor_count; i++)
        monitor_done(&e->monitors[i]);
    for (size_t i = 0; i < e->history_count; i++)
        history_done(&e->histories[i]);
    explanations_done(&e->explanations);
    free(e->monitors);
    free(e->histories);
    free(e->sets);
    free(e->documents);
    free(e->flames);
    free(e->base);
    free(e->new);
    free(e->command);
    *e = (struct embedded){0};
}
static const char *find_element(const char *text, size_t length)
{
    static const char mark[] = "id=\"" EMBEDDED_ID "\"";
    return memmem(text, length, mark, sizeof(mark) - 1);
}

static bool is_page(const char *text, size_t length)
{
    return find_element(text, length) != NULL;
}

#if HAVE_JANSSON

static int unpack(const char *text, size_t length, struct strbuf *json, struct error *err)
{
    const char *at = find_element(text, length), *end = text + length;
    const char *from = at ? memchr(at, '>', (size_t)(end - at)) : NULL;
    if (!from)
        return error_set(err, -EINVAL, "it contains no data of assay" EMBEDDED_REMEDY);
    const char *to = memchr(from, '<', (size_t)(end - from));
    if (!to)
        return error_set(err, -EINVAL, "the data from byte %zu on is cut off" EMBEDDED_REMEDY,
                         (size_t)(from + 1 - text));
    bool packed = memmem(at, (size_t)(from - at), "\"deflate\"", 9) != NULL;
    CLEANUP(strbuf_done) struct strbuf bytes = {0};
    if (!strbuf_get_base64(packed ? &bytes : json, from + 1, (size_t)(to - from - 1)))
        return error_set(err, -EINVAL,
                         "the data from byte %zu on is damaged: not base64" EMBEDDED_REMEDY,
                         (size_t)(from + 1 - text));
    if (!packed)
        return 0;
#if HAVE_ZLIB
    z_stream z = {.next_in = (Bytef *)bytes.data, .avail_in = (uInt)bytes.length};
    if (inflateInit(&z) != Z_OK)
        return error_set(err, -ENOMEM, "cannot unpack");
    int r = Z_OK;
    char block[65536];
    while (r == Z_OK && json->length < UNPACKED_MAX) {
        z.next_out = (Bytef *)block;
        z.avail_out = sizeof(block);
        r = inflate(&z, Z_NO_FLUSH);
        strbuf_append(json, block, sizeof(block) - z.avail_out);
        if (r == Z_OK && z.avail_out && !z.avail_in)
            break;
    }
    inflateEnd(&z);
    if (json->length >= UNPACKED_MAX)
        return error_set(err, -EFBIG, "the data is more than %u MiB", UNPACKED_MAX >> 20);
    return r == Z_STREAM_END ? 0
                             : error_set(err, -EINVAL,
                                         "the data from byte %zu on is damaged or cut off after "
                                         "%lu of its %zu bytes" EMBEDDED_REMEDY,
                                         (size_t)(from + 1 - text), z.total_in, bytes.length);
#else
    return error_set(err, -ENOTSUP, "the data is compressed, but assay was built without zlib");
#endif
}

static void read_experiment(struct store_experiment *e, const json_t *set)
{
    *e = (struct store_experiment){
        .id = json_integer_value(json_object_get(set, "id")),
        .uuid = embedded_text(set, "uuid"),
        .name = embedded_text(set, "name"),
        .question = embedded_text(set, "question"),
        .state = embedded_text(set, "state"),
        .alive = json_is_true(json_object_get(set, "alive")),
        .git_commit = embedded_text(set, "commit"),
        .selection = embedded_text(set, "selection"),
        .baseline = embedded_text(set, "baseline"),
        .headline = embedded_text(set, "headline"),
        .spec_path = embedded_text(set, "spec_path"),
        .spec_hash = embedded_text(set, "spec_hash"),
        .started_at_ns = embedded_number(set, "started_at_ns"),
        .ended_at_ns = embedded_number(set, "ended_at_ns"),
    };
    const char *seed = json_string_value(json_object_get(set, "seed"));
    if (seed)
        parse_u64(seed, &e->seed, NULL);
}

static int read_metrics(struct dataset *d, const json_t *metrics, struct error *err)
{
    size_t at;
    const json_t *m;
    json_array_foreach(metrics, at, m)
    {
        const char *name = json_string_value(json_array_get(m, 0));
        const char *unit = json_string_value(json_array_get(m, 1));
        json_int_t better = json_integer_value(json_array_get(m, 2));
        const char *kind = json_string_value(json_array_get(m, 3));
        const json_t *traits = json_array_get(m, 4);
        if (!name || !unit || !kind || better < METRIC_LOWER || better > METRIC_NEITHER ||
            (traits && !json_is_integer(traits)))
            return embedded_damaged(err, "a metric");
        ARRAY_PUSH(d->metrics, d->metric_count, d->metric_capacity) = (struct store_metric){
            .id = (int64_t)at + 1,
            .name = memory_strdup(name),
            .unit = memory_strdup(unit),
            .kind = memory_strdup(kind),
            .facts = traits
                         ? store_facts_of(better, json_integer_value(traits))
                         : store_facts_before_traits(name, unit, (enum metric_better)better, kind)};
    }
    return 0;
}

struct value_list {
    struct dataset_value *items;
    size_t count, capacity;
};

static int read_nodes(struct dataset *d, const json_t *nodes, struct error *err)
{
    size_t i;
    const json_t *node;
    json_array_foreach(nodes, i, node)
    {
        const char *name = json_string_value(json_array_get(node, 0));
        const char *text = json_string_value(json_array_get(node, 1));
        if (!name || !text)
            return embedded_damaged(err, "a node");
        ARRAY_PUSH(d->nodes, d->node_count, d->node_capacity) = (struct dataset_node){
            .name = memory_strdup(name), .text = *text ? memory_strdup(text) : NULL};
    }
    return 0;
}

static uint32_t node_number(const struct dataset *d, const json_t *node)
{
    json_int_t number = json_is_integer(node) ? json_integer_value(node) : -1;
    return number >= 0 && (size_t)number < d->node_count ? (uint32_t)number : DATASET_NO_NODE;
}

static int read_values(struct dataset *d, const json_t *cell, struct value_list *values,
                       struct error *err)
{
    const json_t *rounds = json_object_get(cell, "rounds");
    const json_t *columns = json_object_get(cell, "values");
    const json_t *nodes = json_object_get(cell, "nodes");
    size_t m, i;
    const json_t *column, *value;
    if (json_array_size(columns) > d->metric_count)
        return embedded_damaged(err, "more values than metrics");
    json_int_t last = -1;
    json_array_foreach(rounds, i, value)
    {
        if (!json_is_integer(value) || json_integer_value(value) <= last ||
            json_integer_value(value) > UINT32_MAX)
            return embedded_damaged(err, "rounds do not ascend");
        last = json_integer_value(value);
    }
    json_array_foreach(columns, m, column) json_array_foreach(column, i, value)
    {
        const json_t *round = json_array_get(rounds, i);
        if (json_is_null(value))
            continue;
        if (!json_is_number(value) || !round)
            return embedded_damaged(err, "a value");
        ARRAY_PUSH(values->items, values->count, values->capacity) =
            (struct dataset_value){.value = json_number_value(value),
                                   .metric = (uint32_t)m,
                                   .cell = (uint32_t)d->cell_count - 1,
                                   .node = node_number(d, json_array_get(nodes, i)),
                                   .round = (uint32_t)json_integer_value(round)};
    }
    return 0;
}

static int read_cell(struct dataset *d, const json_t *cell, struct value_list *values,
                     struct error *err)
{
    const json_t *levels = json_object_get(cell, "levels");
    if (json_array_size(levels) != d->factor_count)
        return embedded_damaged(err, "a cell lacks a level for some factor");
    struct dataset_cell *c = &ARRAY_PUSH(d->cells, d->cell_count, d->cell_capacity);
    *c = (struct dataset_cell){.id = (int64_t)d->cell_count,
                               .label = embedded_text(cell, "label"),
                               .command = embedded_text(cell, "command"),
                               .build_id = embedded_text(cell, "build_id"),
                               .last_status = (int)embedded_number(cell, "last_status"),
                               .last_words = embedded_text_or_null(cell, "last_words"),
                               .ignored_count = (size_t)embedded_number(cell, "failed_counted"),
                               .levels = memory_zalloc(d->factor_count + 1, sizeof(char *))};
    for (size_t f = 0; f < d->factor_count; f++) {
        const char *level = json_string_value(json_array_get(levels, f));
        c->levels[f] = memory_strdup(level ? level : "");
    }
    return read_values(d, cell, values, err);
}

static int read_runs(struct dataset *d, const json_t *runs, struct error *err)
{
    size_t i;
    const json_t *cell;
    json_array_foreach(json_object_get(runs, "cell"), i, cell)
    {
        size_t index = (size_t)json_integer_value(cell);
        if (!json_is_integer(cell) || index >= d->cell_count)
            return embedded_damaged(err, "a run without a cell");
#define COLUMN(name) ((uint64_t)json_integer_value(json_array_get(json_object_get(runs, name), i)))
        ARRAY_PUSH(d->runs, d->run_count, d->run_capacity) = (struct dataset_run){
            .id = (int64_t)i + 1,
            .cell = index,
            .round = COLUMN("round"),
            .attempt = COLUMN("attempt"),
            .position = COLUMN("position"),
            .started_at_ns = embedded_number(runs, "first_at_ns") + COLUMN("started_ns"),
            .wall_ns = COLUMN("wall_ns"),
            .status = (int)COLUMN("status"),
            .disturbed = COLUMN("disturbed") != 0,
            .node = node_number(d, json_array_get(json_object_get(runs, "node"), i)),
        };
#undef COLUMN
        const struct dataset_run *run = &d->runs[d->run_count - 1];
        d->cells[index].run_count++;
        d->cells[index].failed_count += run->status != 0;
        d->cells[index].disturbed_count += run->disturbed;
        d->experiment.run_count++;
        d->experiment.failed_count += run->status != 0;
        d->experiment.disturbed_count += run->disturbed;
    }
    return 0;
}

/* What the columns are, once they are there; pages of version 0.1 do not say it. */
static int read_relations(struct dataset *d, const json_t *set, struct error *err)
{
    const json_t *baselines = json_object_get(set, "baselines"), *item;
    size_t at;
    dataset_find_baselines(d);
    json_array_foreach(baselines, at, item)
    {
        json_int_t base = json_integer_value(item);
        if (!json_is_integer(item) || at >= d->cell_count || base >= (json_int_t)d->cell_count)
            return embedded_damaged(err, "a baseline");
        d->cells[at].baseline = base < 0 || base == (json_int_t)at ? DATASET_NONE : (size_t)base;
    }
    json_array_foreach(json_object_get(set, "bounds"), at, item)
    {
        json_int_t column = json_integer_value(item);
        if (!json_is_integer(item) || column < 0 ||
            column >= (json_int_t)(d->metric_count * d->cell_count))
            return embedded_damaged(err, "a bound");
        dataset_mark_bound(d, (size_t)column);
    }
    d->apart = json_is_true(json_object_get(set, "apart"));
    d->experiment.adaptive = json_is_true(json_object_get(set, "adaptive"));
    double seconds = json_number_value(json_object_get(set, "round_seconds"));
    d->round_seconds = isfinite(seconds) && seconds > 0 ? seconds : 0;
    return 0;
}

static int read_set(struct embedded *e, const json_t *set, struct error *err)
{
    struct embedded_documents *t = &ARRAY_PUSH(e->documents, e->set_count, e->document_capacity);
    e->sets = memory_grow(e->sets, &e->set_capacity, e->set_count, sizeof(*e->sets));
    struct dataset *d = &e->sets[e->set_count - 1];
    *d = (struct dataset){0};
    *t = (struct embedded_documents){embedded_text(set, "machine"),
                                     embedded_text(set, "environment"), embedded_text(set, "spec")};
    read_experiment(&d->experiment, set);
    if (t->environment)
        dataset_take_environment(d, t->environment);
    size_t at, capacity = 0;
    const json_t *item;
    json_array_foreach(json_object_get(set, "factors"), at, item) if (json_is_string(item))
        ARRAY_PUSH(d->factors, d->factor_count, capacity) = memory_strdup(json_string_value(item));
    struct value_list values = {0};
    int r = read_metrics(d, json_object_get(set, "metrics"), err);
    if (r == 0)
        r = read_nodes(d, json_object_get(set, "nodes"), err);
    const json_t *cells = json_object_get(set, "cells");
    for (at = 0; r == 0 && at < json_array_size(cells); at++)
        r = read_cell(d, json_array_get(cells, at), &values, err);
    d->experiment.cell_count = d->cell_count;
    if (r == 0)
        r = read_runs(d, json_object_get(set, "runs"), err);
    dataset_deal(d, values.items, r == 0 ? values.count : 0);
    dataset_index(d);
    if (r == 0)
        r = read_relations(d, set, err);
    free(values.items);
    return r;
}

static int read_root(struct embedded *e, const json_t *root, struct error *err)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    if (!format || !str_eq(format, "assay-html-1"))
        return error_set(err, -EINVAL,
                         "its data is in a format that this version of assay does not know");
    e->command = embedded_text_or_null(root, "command");
    e->base = embedded_text_or_null(root, "base");
    e->new = embedded_text_or_null(root, "new");
    const json_t *sets = json_object_get(root, "experiments");
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_array_size(sets); i++)
        r = read_set(e, json_array_get(sets, i), err);
    return r < 0 ? r : embedded_read_parts(e, root, err);
}

int embedded_read(struct embedded *e, const char *text, size_t length, const char *name,
                  struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf json = {0};
    int r = unpack(text, length, &json, err);
    if (r < 0)
        return error_wrap(err, r, "%s", name);
    json_error_t where;
    json_t *root = json_loadb(strbuf_text(&json), json.length, 0, &where);
    if (!root)
        return error_set(err, -EINVAL,
                         "%s: the data is damaged: %s at byte %d of its JSON" EMBEDDED_REMEDY, name,
                         where.text, where.position);
    r = read_root(e, root, err);
    json_decref(root);
    return r < 0 ? error_wrap(err, r, "%s", name) : 0;
}

#else

int embedded_read(struct embedded *e, const char *text, size_t length, const char *name,
                  struct error *err)
{
    (void)e, (void)text, (void)length;
    return error_set(err, -ENOTSUP, "%s: assay was built without jansson and cannot read pages",
                     name);
}

#endif

/* An explanation, or a gate's result, says so in its beginning. */
static bool begins_as(const char *text, size_t length, const char *mark)
{
    return memmem(text, length < 200 ? length : 200, mark, strlen(mark)) != NULL;
}

int embedded_read_file(struct embedded *e, const char *path, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int r = file_read(path, &text, err);
    if (r < 0)
        return r;
    if (is_page(strbuf_text(&text), text.length)) {
        r = embedded_read(e, text.data, text.length, path, err);
    } else if (begins_as(strbuf_text(&text), text.length, "\"assay-explain-1\"")) {
        r = explanations_read(&e->explanations, text.data, text.length, err);
        if (r < 0)
            error_wrap(err, r, "%s", path);
    } else if (begins_as(strbuf_text(&text), text.length, "\"assay-gate-1\"")) {
        r = embedded_read_gate(e, text.data, text.length, path, err);
    } else {
        r = embedded_read_ab(e, strbuf_text(&text), text.length, path, err);
    }
    /* The command line was right, the file is not. */
    return r == -EINVAL ? -EBADMSG : r;
}

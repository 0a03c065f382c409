/* SPDX-License-Identifier: MIT */
/* The data of a page: JSON with columns instead of rows, which deflate makes small. */
#include "base/base64.h"
#include "base/json.h"
#include "base/memory.h"
#include "config.h"
#include "profile/idtable.h"
#include "report/page/columns.h"
#include "report/page/embedded.h"

#include <math.h>
#include <stdio.h>
#if HAVE_ZLIB
#include <zlib.h>
#endif

void embedded_put_element(struct strbuf *out, const struct strbuf *json)
{
    const void *bytes = json->data;
    size_t length = json->length;
    const char *encoding = "none";
#if HAVE_ZLIB
    uLongf size = compressBound(length);
    CLEANUP(memory_freep) Bytef *packed = memory_alloc(size);
    if (compress2(packed, &size, bytes, length, 9) == Z_OK) {
        bytes = packed;
        length = size;
        encoding = "deflate";
    }
#endif
    strbuf_printf(
        out, "<script type=\"application/vnd.assay\" id=\"" EMBEDDED_ID "\" data-encoding=\"%s\">",
        encoding);
    strbuf_put_base64(out, bytes, length);
    strbuf_puts(out, "</script>\n");
}

static void put_experiment(struct json *j, const struct store_experiment *e)
{
    json_i64(j, "id", e->id);
    json_string(j, "uuid", e->uuid);
    json_string(j, "name", e->name);
    json_string(j, "question", e->question);
    json_string(j, "state", e->state);
    if (e->alive)
        json_bool(j, "alive", true);
    json_string(j, "selection", e->selection);
    json_string(j, "baseline", e->baseline);
    json_string(j, "headline", e->headline);
    json_string(j, "commit", e->git_commit);
    json_string(j, "spec_path", e->spec_path);
    json_string(j, "spec_hash", e->spec_hash);
    char seed[24];
    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)e->seed);
    json_string(j, "seed", seed); /* more bits than some readers' numbers have */
    json_u64(j, "started_at_ns", e->started_at_ns);
    json_u64(j, "ended_at_ns", e->ended_at_ns);
}

/* The rounds in which the cell has any value. */
static uint32_t *rounds_of_cell(const struct dataset *d, size_t cell, size_t *ret_count)
{
    uint32_t *rounds = NULL;
    size_t count = 0, capacity = 0;
    for (size_t m = 0; m < d->metric_count; m++) {
        struct dataset_column column = dataset_column(d, m, cell);
        size_t at = 0;
        for (size_t i = 0; i < column.count; i++) {
            while (at < count && rounds[at] < column.rounds[i])
                at++;
            if (at < count && rounds[at] == column.rounds[i])
                continue;
            ARRAY_PUSH(rounds, count, capacity) = 0;
            memmove(rounds + at + 1, rounds + at, (count - 1 - at) * sizeof(*rounds));
            rounds[at] = column.rounds[i];
        }
    }
    *ret_count = count;
    return rounds;
}

static int64_t node_in_round(const struct dataset *d, size_t cell, uint32_t round)
{
    for (size_t m = 0; m < d->metric_count; m++) {
        struct dataset_column column = dataset_column(d, m, cell);
        for (size_t i = 0; column.nodes && i < column.count && column.rounds[i] <= round; i++)
            if (column.rounds[i] == round)
                return column.nodes[i] == DATASET_NO_NODE ? -1 : (int64_t)column.nodes[i];
    }
    return -1;
}

static void put_cell(struct json *j, const struct dataset *d, size_t cell)
{
    const struct dataset_cell *c = &d->cells[cell];
    json_object(j, NULL);
    json_string(j, "label", c->label);
    json_string(j, "command", c->command);
    json_string(j, "build_id", c->build_id);
    if (c->failed_count) {
        json_i64(j, "last_status", c->last_status);
        json_string(j, "last_words", c->last_words ? c->last_words : "");
        if (c->ignored_count)
            json_u64(j, "failed_counted", c->ignored_count);
    }
    json_array(j, "levels");
    for (size_t f = 0; f < d->factor_count; f++)
        json_string(j, NULL, c->levels[f]);
    json_end(j);
    size_t count;
    CLEANUP(memory_freep) uint32_t *rounds = rounds_of_cell(d, cell, &count);
    json_array(j, "rounds");
    for (size_t i = 0; i < count; i++)
        json_u64(j, NULL, rounds[i]);
    json_end(j);
    if (d->node_count)
        json_array(j, "nodes");
    for (size_t i = 0; d->node_count && i < count; i++)
        json_i64(j, NULL, node_in_round(d, cell, rounds[i]));
    if (d->node_count)
        json_end(j);
    json_array(j, "values"); /* by metric, then by round; null where there is none */
    for (size_t m = 0; m < d->metric_count; m++) {
        struct dataset_column column = dataset_column(d, m, cell);
        json_array(j, NULL);
        for (size_t i = 0, at = 0; i < count && column.count; i++) {
            while (at < column.count && column.rounds[at] < rounds[i])
                at++;
            if (at < column.count && column.rounds[at] == rounds[i])
                json_double(j, NULL, column.values[at]);
            else
                json_null(j, NULL);
        }
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

#define RUN_COLUMN(name, expression)               \
    json_array(j, name);                           \
    for (size_t i = 0; i < d->run_count; i++) {    \
        const struct dataset_run *r = &d->runs[i]; \
        json_i64(j, NULL, (int64_t)(expression));  \
    }                                              \
    json_end(j)

static void put_runs(struct json *j, const struct dataset *d)
{
    uint64_t first = d->run_count ? d->runs[0].started_at_ns : 0;
    json_object(j, "runs");
    json_u64(j, "first_at_ns", first);
    RUN_COLUMN("cell", r->cell);
    RUN_COLUMN("round", r->round);
    RUN_COLUMN("attempt", r->attempt);
    RUN_COLUMN("position", r->position);
    RUN_COLUMN("started_ns", r->started_at_ns - first);
    RUN_COLUMN("wall_ns", r->wall_ns);
    RUN_COLUMN("status", r->status);
    RUN_COLUMN("disturbed", r->disturbed);
    if (d->node_count) {
        RUN_COLUMN("node", r->node == DATASET_NO_NODE ? -1 : (int64_t)r->node);
    }
    json_end(j);
}

/* What each node is stays a text, as the store has it. */
static void put_nodes(struct json *j, const struct dataset *d)
{
    if (!d->node_count)
        return;
    json_array(j, "nodes");
    for (size_t n = 0; n < d->node_count; n++) {
        json_array(j, NULL);
        json_string(j, NULL, d->nodes[n].name);
        json_string(j, NULL, d->nodes[n].text ? d->nodes[n].text : "");
        json_end(j);
    }
    json_end(j);
}

static void put_set(struct strbuf *out, const struct dataset *d, const struct embedded_documents *t)
{
    struct json j = {.out = out, .compact = true};
    json_object(&j, NULL);
    put_experiment(&j, &d->experiment);
    json_array(&j, "factors");
    for (size_t f = 0; f < d->factor_count; f++)
        json_string(&j, NULL, d->factors[f]);
    json_end(&j);
    json_array(&j, "metrics");
    for (size_t m = 0; m < d->metric_count; m++) {
        json_array(&j, NULL);
        json_string(&j, NULL, d->metrics[m].name);
        json_string(&j, NULL, d->metrics[m].unit);
        json_u64(&j, NULL, d->metrics[m].facts.better);
        json_string(&j, NULL, d->metrics[m].kind);
        json_i64(&j, NULL, store_traits_number(d->metrics[m].facts));
        json_end(&j);
    }
    json_end(&j);
    json_array(&j, "cells");
    for (size_t c = 0; c < d->cell_count; c++)
        put_cell(&j, d, c);
    json_end(&j);
    json_array(&j, "baselines"); /* of each cell; -1 for none */
    for (size_t c = 0; c < d->cell_count; c++)
        json_i64(&j, NULL,
                 d->cells[c].baseline == DATASET_NONE ? -1 : (int64_t)d->cells[c].baseline);
    json_end(&j);
    json_array(&j, "bounds"); /* columns, metric * cells + cell, that hold bounds only */
    for (size_t i = 0; d->bounds && i < d->metric_count * d->cell_count; i++)
        if (d->bounds[i])
            json_u64(&j, NULL, i);
    json_end(&j);
    json_bool(&j, "apart", d->apart);
    json_bool(&j, "adaptive", d->experiment.adaptive);
    json_double(&j, "round_seconds", d->round_seconds);
    put_runs(&j, d);
    put_nodes(&j, d);
    json_string(&j, "machine", t->machine);
    json_string(&j, "environment", t->environment);
    json_string(&j, "spec", t->spec);
    json_end(&j);
}

/* ---- profiles ---- */

/* The functions of all profiles, each once: two recordings of one program share nearly all. */
struct name_list {
    const struct flame_name **items;
    size_t count, capacity;
    struct idtable table;
    uint32_t **of; /* [flame][its name]: number in items */
};

static uint64_t name_hash(const void *items, uint32_t id)
{
    return hash_string(((const struct flame_name *const *)items)[id]->text);
}

static uint32_t name_number(struct name_list *list, const struct flame_name *name)
{
    uint32_t slot, id;
    IDTABLE_EACH(&list->table, hash_string(name->text), slot, id)
    {
        const struct flame_name *known = list->items[id];
        if (str_eq(known->text, name->text) && str_eq(known->dso, name->dso) &&
            known->flags == name->flags && str_eq(flame_known_as(known), flame_known_as(name)))
            return id;
    }
    id = (uint32_t)list->count;
    ARRAY_PUSH(list->items, list->count, list->capacity) = name;
    idtable_put(&list->table, slot, id);
    if (idtable_is_crowded(&list->table))
        idtable_grow(&list->table, name_hash, list->items);
    return id;
}

struct name_use {
    const struct flame_name *name;
    uint64_t uses;
    uint32_t first; /* its number so far, in the order of the first use */
};

static int by_use(const void *left, const void *right)
{
    const struct name_use *a = left, *b = right;
    if (a->uses != b->uses)
        return a->uses < b->uses ? 1 : -1;
    return a->first < b->first ? -1 : 1;
}

/* Those used most have the smallest numbers, which deflate makes shorter. */
static void name_list_sort(struct name_list *list, const struct embedded *e)
{
    CLEANUP(memory_freep) struct name_use *uses = memory_zalloc(list->count + 1, sizeof(*uses));
    CLEANUP(memory_freep) uint32_t *now = memory_zalloc(list->count + 1, sizeof(*now));
    for (size_t i = 0; i < list->count; i++)
        uses[i] = (struct name_use){.name = list->items[i], .first = (uint32_t)i};
    for (size_t i = 0; i < e->flame_count; i++)
        for (size_t n = 0; n < e->flames[i].node_count; n++)
            uses[list->of[i][e->flames[i].nodes[n].name]].uses++;
    qsort(uses, list->count, sizeof(*uses), by_use);
    for (size_t i = 0; i < list->count; i++) {
        list->items[i] = uses[i].name;
        now[uses[i].first] = (uint32_t)i;
    }
    for (size_t i = 0; i < e->flame_count; i++)
        for (size_t n = 0; n < e->flames[i].name_count && list->count; n++)
            list->of[i][n] = now[list->of[i][n]];
}

/* Numbers depend on the use alone, so that the same data is the same text after reading. */
static void name_list_init(struct name_list *list, const struct embedded *e)
{
    *list = (struct name_list){.of = memory_zalloc(e->flame_count + 1, sizeof(*list->of))};
    idtable_init(&list->table, 10);
    for (size_t i = 0; i < e->flame_count; i++) {
        const struct flame *f = &e->flames[i];
        list->of[i] = memory_zalloc(f->name_count + 1, sizeof(**list->of));
        for (size_t n = 0; n < f->node_count; n++) {
            uint32_t name = f->nodes[n].name;
            list->of[i][name] = name_number(list, &f->names[name]);
        }
        for (size_t n = 0; n < f->wait_count; n++) {
            uint32_t name = f->waits[n].name;
            list->of[i][name] = name_number(list, &f->names[name]);
        }
    }
    name_list_sort(list, e);
}

static void name_list_done(struct name_list *list, size_t flame_count)
{
    for (size_t i = 0; i < flame_count; i++)
        free(list->of[i]);
    free(list->of);
    free(list->items);
    idtable_done(&list->table);
}

static void put_names(struct strbuf *out, const struct name_list *list)
{
    struct json j = {.out = out, .compact = true};
    const char *last = NULL;
    json_object(&j, NULL);
    json_array(&j, "text");
    for (size_t i = 0; i < list->count; i++)
        json_string(&j, NULL, list->items[i]->text);
    json_end(&j);
    json_array(&j, "dso"); /* null: the one before */
    for (size_t i = 0; i < list->count; i++) {
        bool same = last && str_eq(last, list->items[i]->dso);
        json_string(&j, NULL, same ? NULL : list->items[i]->dso);
        last = list->items[i]->dso;
    }
    json_end(&j);
    json_array(&j, "flags");
    for (size_t i = 0; i < list->count; i++)
        json_u64(&j, NULL, list->items[i]->flags);
    json_end(&j);
    json_array(&j, "known_as");
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i]->known_as) {
            json_array(&j, NULL);
            json_u64(&j, NULL, i);
            json_string(&j, NULL, list->items[i]->known_as);
            json_end(&j);
        }
    json_end(&j);
    json_double(&j, "strong_change", FLAME_STRONG_CHANGE);
    json_end(&j);
}

static void put_column(struct json *j, const char *key, const uint64_t *values, size_t count)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    column_put(&text, values, count);
    json_string_n(j, key, text.data, text.length);
}

#define COLUMN(name, length, expression)                                                           \
    do {                                                                                           \
        CLEANUP(memory_freep) uint64_t *numbers = memory_alloc(((length) + 1) * sizeof(*numbers)); \
        for (size_t i = 0; i < (length); i++)                                                      \
            numbers[i] = (expression);                                                             \
        put_column(j, name, numbers, length);                                                      \
    } while (0)

/* Times are microseconds, each since the one before. */
static void put_steps(struct json *j, const char *name, const void *first, size_t count,
                      size_t stride)
{
    uint64_t last = 0;
    CLEANUP(memory_freep) uint64_t *steps = memory_alloc((count + 1) * sizeof(*steps));
    for (size_t i = 0; i < count; i++) {
        uint64_t at = *(const uint64_t *)((const char *)first + i * stride) / 1000;
        steps[i] = at - last;
        last = at;
    }
    put_column(j, name, steps, count);
}

/* When samples were taken and threads waited, where that is known. */
static void put_times(struct json *j, const struct flame *f, const uint32_t *names)
{
    if (!f->moment_count && !f->wait_count && !f->sources)
        return;
    json_array(j, "threads");
    for (size_t i = 0; i < f->thread_count; i++) {
        json_array(j, NULL);
        json_string(j, NULL, f->threads[i].name);
        json_u64(j, NULL, f->threads[i].tid);
        json_end(j);
    }
    json_end(j);
    json_object(j, "moments");
    json_u64(j, "every", f->moment_every);
    put_steps(j, "us", f->moments, f->moment_count, sizeof(*f->moments));
    COLUMN("node", f->moment_count, f->moments[i].node);
    COLUMN("thread", f->moment_count, f->moments[i].thread);
    json_end(j);
    json_object(j, "waits");
    json_u64(j, "left_out", f->waits_left_out);
    put_steps(j, "us", f->waits, f->wait_count, sizeof(*f->waits));
    COLUMN("length_us", f->wait_count, f->waits[i].length_ns / 1000);
    COLUMN("thread", f->wait_count, f->waits[i].thread);
    COLUMN("name", f->wait_count, names[f->waits[i].name]);
    json_end(j);
    if (f->sources)
        json_raw(j, "sources", f->sources);
}

static void put_flame(struct strbuf *out, const struct flame *f, const uint32_t *names)
{
    struct json writer = {.out = out, .compact = true}, *j = &writer;
    bool alike = true; /* each sample weighs the same: no second column */
    double each = f->samples ? (double)f->weight / (double)f->samples : 1;
    for (size_t i = 0; i < f->node_count && alike; i++)
        alike = fabs((double)f->nodes[i].self_weight - each * (double)f->nodes[i].self_samples) <=
                1e-3 * each * (double)f->nodes[i].self_samples;
    json_object(j, NULL);
    json_string(j, "label", f->label);
    json_string(j, "event", f->event);
    json_bool(j, "is_time", f->is_time);
    json_u64(j, "lost", f->lost);
    json_double(j, "each", alike ? each : NAN);
    json_double(j, "cost", f->cost > 0 ? f->cost : NAN);
    json_string(j, "notes", f->notes);
    /* By how many levels above the one below the frame before. */
    COLUMN("up", f->node_count, i ? f->nodes[i - 1].depth + 1 - f->nodes[i].depth : 0);
    COLUMN("name", f->node_count, names[f->nodes[i].name]);
    COLUMN("samples", f->node_count, f->nodes[i].self_samples);
    if (!alike)
        COLUMN("weight", f->node_count, f->nodes[i].self_weight);
    json_u64(j, "order_every", f->order_every);
    COLUMN("order", f->order_count, f->order[i]);
    put_times(j, f, names);
    json_end(j);
}

/* ---- over time ---- */

static void put_numbers(struct json *j, const char *key, const double *values, size_t count)
{
    json_array(j, key);
    for (size_t i = 0; i < count; i++)
        json_double(j, NULL, values[i]);
    json_end(j);
}

static void put_monitors(struct strbuf *out, const struct embedded *e)
{
    struct json j = {.out = out, .compact = true};
    json_array(&j, NULL);
    for (size_t i = 0; i < e->monitor_count; i++) {
        const struct embedded_monitor *m = &e->monitors[i];
        json_object(&j, NULL);
        json_string(&j, "name", m->name);
        json_string(&j, "unit", m->unit);
        json_array(&j, "traces");
        for (size_t t = 0; t < m->count; t++) {
            json_object(&j, NULL);
            json_u64(&j, "cell", m->traces[t].cell);
            put_numbers(&j, "seconds", m->traces[t].seconds, m->traces[t].count);
            put_numbers(&j, "values", m->traces[t].values, m->traces[t].count);
            json_end(&j);
        }
        json_end(&j);
        json_end(&j);
    }
    json_end(&j);
}

static void put_histories(struct strbuf *out, const struct embedded *e)
{
    struct json j = {.out = out, .compact = true};
    json_array(&j, NULL);
    for (size_t i = 0; i < e->history_count; i++) {
        const struct embedded_history *h = &e->histories[i];
        json_object(&j, NULL);
        json_string(&j, "label", h->label);
        json_string(&j, "metric", h->metric);
        json_string(&j, "unit", h->unit);
        put_numbers(&j, "medians", h->medians, h->count);
        put_numbers(&j, "lows", h->lows, h->count);
        put_numbers(&j, "highs", h->highs, h->count);
        json_array(&j, "experiments");
        for (size_t k = 0; k < h->count; k++)
            json_i64(&j, NULL, h->experiments[k]);
        json_end(&j);
        json_array(&j, "commits");
        for (size_t k = 0; k < h->count; k++)
            json_string(&j, NULL, h->commits[k]);
        json_end(&j);
        json_end(&j);
    }
    json_end(&j);
}

static void put_member(struct strbuf *out, const char *name, const char *value)
{
    strbuf_printf(out, ",\"%s\":", name);
    if (value)
        strbuf_put_json(out, value, strlen(value));
    else
        strbuf_puts(out, "null");
}

void embedded_put_json(struct strbuf *out, const struct embedded *e, const char *view)
{
    strbuf_puts(out, "{\"format\":\"assay-html-1\"");
    put_member(out, "assay", ASSAY_VERSION);
    put_member(out, "command", e->command);
    put_member(out, "base", e->base);
    put_member(out, "new", e->new);
    strbuf_puts(out, ",\"experiments\":[");
    for (size_t i = 0; i < e->set_count; i++) {
        strbuf_puts(out, i ? "," : "");
        put_set(out, &e->sets[i], &e->documents[i]);
    }
    struct name_list names;
    name_list_init(&names, e);
    strbuf_puts(out, "],\"names\":");
    put_names(out, &names);
    strbuf_puts(out, ",\"profiles\":[");
    for (size_t i = 0; i < e->flame_count; i++) {
        strbuf_puts(out, i ? "," : "");
        put_flame(out, &e->flames[i], names.of[i]);
    }
    name_list_done(&names, e->flame_count);
    strbuf_puts(out, "],\"explanations\":[");
    for (size_t i = 0; i < e->explanations.count; i++)
        strbuf_printf(out, "%s%s", i ? "," : "", e->explanations.items[i].json);
    strbuf_puts(out, "],\"monitors\":");
    put_monitors(out, e);
    strbuf_puts(out, ",\"histories\":");
    put_histories(out, e);
    strbuf_printf(out, ",\"view\":%s}", view ? view : "null");
}

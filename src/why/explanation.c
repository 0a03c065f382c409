/* SPDX-License-Identifier: MIT */
/* Kept explanations: see explanation.h. */
#include "why/explanation.h"
#include "base/memory.h"
#include "base/strings.h"
#include "config.h"
#include "store/store_rows.h"

#include <errno.h>
#include <math.h>

#define KIND "explanation "

static void explanation_done(struct explanation *e)
{
    for (size_t i = 0; i < e->reason_count; i++) {
        free(e->reasons[i].kind);
        free(e->reasons[i].name);
        free(e->reasons[i].words);
        free(e->reasons[i].evidence);
    }
    for (size_t i = 0; i < e->count_count; i++)
        free(e->counts[i].event);
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        free(e->names[s]);
        free(e->uuids[s]);
        free(e->cells[s]);
    }
    char *texts[] = {e->json,  e->cell,         e->per,       e->wall, e->cpu,
                     e->whole, e->unattributed, e->simulator, e->notes};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        free(texts[i]);
    free(e->reasons);
    free(e->counts);
}

void explanations_done(struct explanations *list)
{
    for (size_t i = 0; i < list->count; i++)
        explanation_done(&list->items[i]);
    free(list->items);
    *list = (struct explanations){0};
}

void explanations_drop(struct explanations *list, size_t i)
{
    explanation_done(&list->items[i]);
    memmove(&list->items[i], &list->items[i + 1], (list->count - i - 1) * sizeof(*list->items));
    list->count--;
}

int explanation_keep(struct store *store, int64_t experiment, const char *base_uuid,
                     const char *base_cell, const char *new_cell, const char *json,
                     struct error *err)
{
    CLEANUP(memory_freep)
    char *kind = memory_printf(KIND "%s %s -> %s", base_uuid, base_cell, new_cell);
    return store_add_document(store, experiment, kind, json, err);
}

int explanations_load(struct explanations *list, struct store *store, int64_t experiment,
                      struct error *err)
{
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    const char *text;
    int r = store_documents(store, experiment, KIND, &rows, err);
    if (r < 0)
        return r;
    while ((r = store_next_text(&rows, &text, err)) > 0) {
        r = explanations_read(list, text, strlen(text), err);
        if (r < 0)
            break;
    }
    return r;
}

#if HAVE_JANSSON
#include <jansson.h>

static char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return memory_strdup(text ? text : "");
}

static bool is_true(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static double number_of(const json_t *object, const char *key)
{
    const json_t *number = json_object_get(object, key);
    return json_is_number(number) ? json_number_value(number) : NAN;
}

static void read_reason(struct explanation *e, const json_t *from)
{
    const json_t *cost = json_object_get(from, "cost");
    bool has_interval = isfinite(number_of(cost, "half_width"));
    ARRAY_PUSH(e->reasons, e->reason_count, e->reason_capacity) = (struct explanation_reason){
        .kind = text_of(from, "kind"),
        .name = text_of(from, "name"),
        .words = text_of(from, "words"),
        .evidence = text_of(from, "evidence"),
        .share = number_of(cost, "share"),
        .is_sure =
            !is_true(cost, "below_resolution") && (!has_interval || is_true(cost, "significant")),
    };
}

static void read_count(struct explanation *e, const json_t *from)
{
    double base = number_of(from, "base"), new = number_of(from, "new");
    if (!is_true(from, "changed") || !(fabs(new - base) >= 0.01 * fmax(fabs(base), fabs(new))))
        return;
    ARRAY_PUSH(e->counts, e->count_count, e->count_capacity) =
        (struct explanation_count){.event = text_of(from, "event"),
                                   .values = {base, new},
                                   .is_simulated = is_true(from, "simulated")};
}

static void read_one(struct explanations *list, const json_t *from)
{
    const json_t *measured = json_object_get(from, "measured");
    char *dumped = json_dumps(from, JSON_COMPACT);
    struct explanation *e = &ARRAY_PUSH(list->items, list->count, list->capacity);
    *e = (struct explanation){
        .json = memory_strdup(dumped ? dumped : "null"),
        .names = {text_of(from, "base"), text_of(from, "new")},
        .cell = text_of(from, "cell"),
        .per = text_of(from, "per"),
        .uuids = {text_of(from, "base_uuid"), text_of(from, "new_uuid")},
        .cells = {text_of(from, "base_cell"), text_of(from, "new_cell")},
        .run_count = json_array_size(json_object_get(measured, "new_cpu_ns")),
        .has_moved = is_true(measured, "moved"),
        .is_profiled = is_true(from, "profiled"),
        .wall = text_of(json_object_get(measured, "wall"), "words"),
        .cpu = text_of(json_object_get(measured, "cpu"), "words"),
        .whole = text_of(from, "words"),
        .unattributed = text_of(from, "unattributed_words"),
        .simulator = text_of(from, "simulator"),
        .notes = text_of(from, "notes"),
    };
    free(dumped);
    size_t i;
    const json_t *item;
    json_array_foreach(json_object_get(from, "reasons"), i, item) read_reason(e, item);
    json_array_foreach(json_object_get(from, "counts"), i, item) read_count(e, item);
}

int explanations_read(struct explanations *list, const char *text, size_t length, struct error *err)
{
    json_error_t where;
    json_t *root = json_loadb(text, length, 0, &where);
    if (!root)
        return error_set(err, -EINVAL, "the explanation is damaged: %s at byte %d", where.text,
                         where.position);
    const char *format = json_string_value(json_object_get(root, "format"));
    int r = format && str_eq(format, "assay-explain-1")
                ? 0
                : error_set(err, -EINVAL, "not what assay explain --json writes");
    size_t i;
    const json_t *item;
    if (r == 0)
        json_array_foreach(json_object_get(root, "explanations"), i, item) if (json_is_object(item))
            read_one(list, item);
    json_decref(root);
    return r;
}

#else

int explanations_read(struct explanations *list, const char *text, size_t length, struct error *err)
{
    (void)list, (void)text, (void)length;
    return error_set(err, -ENOTSUP, "assay was built without jansson and cannot read explanations");
}

#endif

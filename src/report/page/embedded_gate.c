/* SPDX-License-Identifier: MIT */
/* What `assay gate --json` wrote, as an experiment: a factor "side" with base and new, and the
 * factors of its cells. */
#include "base/memory.h"
#include "report/page/embedded_internal.h"

#include <errno.h>

#if HAVE_JANSSON

static int wrong(struct error *err, const char *what)
{
    return error_set(err, -EINVAL, "not written by assay gate --json: %s", what);
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The cell of a row on one side, added when it is new. */
static size_t find_cell(struct dataset *d, const json_t *row, const char *side)
{
    const json_t *given = json_object_get(row, "levels");
    CLEANUP(memory_freep)
    const char **levels = memory_zalloc(d->factor_count + 1, sizeof(*levels));
    CLEANUP(strbuf_done) struct strbuf label = {0};
    for (size_t f = 0; f < d->factor_count; f++) {
        levels[f] = f ? text_at(given, d->factors[f]) : side;
        strbuf_printf(&label, "%s%s=%s", f ? " " : "", d->factors[f], levels[f]);
    }
    for (size_t c = 0; c < d->cell_count; c++)
        if (str_eq(d->cells[c].label, strbuf_text(&label)))
            return c;
    return dataset_add_cell(d, strbuf_text(&label), text_at(row, "command"), levels);
}

static int put_values(struct dataset *d, size_t metric, size_t cell, const json_t *values,
                      struct error *err)
{
    size_t i;
    const json_t *value;
    json_array_foreach(values, i, value)
    {
        if (!json_is_number(value) || i > UINT32_MAX)
            return wrong(err, "a value is not a number");
        dataset_put(d, metric, cell, (uint32_t)i, json_number_value(value));
    }
    return 0;
}

static int add_row(struct dataset *d, const json_t *row, struct strbuf *headline, struct error *err)
{
    const char *name = text_at(row, "metric"), *unit = text_at(row, "unit");
    enum metric_better better =
        str_eq(text_at(row, "better"), "higher") ? METRIC_HIGHER : METRIC_LOWER;
    if (!*name || !json_array_size(json_object_get(row, "new_values")))
        return wrong(err, "a row has no values; it may be of an older version");
    bool known = dataset_metric(d, name) != DATASET_NONE;
    size_t metric = dataset_add_metric(d, name, unit, "metric",
                                       store_facts_before_traits(name, unit, better, "metric"));
    if (!known)
        strbuf_printf(headline, "%s\n", name);
    int r =
        put_values(d, metric, find_cell(d, row, "base"), json_object_get(row, "base_values"), err);
    return r < 0 ? r
                 : put_values(d, metric, find_cell(d, row, "new"),
                              json_object_get(row, "new_values"), err);
}

static void replace(char **text, const char *by)
{
    free(*text);
    *text = memory_strdup(by);
}

static int read_root(struct embedded *e, const json_t *root, struct error *err)
{
    const json_t *rows = json_object_get(root, "rows");
    CLEANUP(strbuf_done) struct strbuf headline = {0};
    if (!json_array_size(rows))
        return wrong(err, "there are no rows");
    ARRAY_PUSH(e->documents, e->set_count, e->document_capacity) =
        (struct embedded_documents){memory_strdup(""), memory_strdup(""), memory_strdup("")};
    e->sets = memory_grow(e->sets, &e->set_capacity, e->set_count, sizeof(*e->sets));
    struct dataset *d = &e->sets[e->set_count - 1];
    dataset_start(d, "gate");
    dataset_add_factor(d, "side");
    const char *factor;
    json_t *ignored;
    json_object_foreach(json_object_get(json_array_get(rows, 0), "levels"), factor, ignored)
        dataset_add_factor(d, factor);
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_array_size(rows); i++)
        r = add_row(d, json_array_get(rows, i), &headline, err);
    d->experiment.started_at_ns = embedded_number(root, "started_at_ns");
    d->apart = json_object_get(root, "stored") != NULL;
    replace(&d->experiment.state, "done");
    replace(&d->experiment.baseline, "side=base");
    replace(&d->experiment.headline, strbuf_text(&headline));
    CLEANUP(memory_freep)
    char *commit = memory_printf("%s%s", text_at(root, "new"),
                                 json_is_true(json_object_get(root, "dirty")) ? "-dirty" : "");
    replace(&d->experiment.git_commit, commit);
    d->experiment.cell_count = d->cell_count;
    dataset_settle(d);
    dataset_index(d);
    dataset_find_baselines(d);
    return r;
}

int embedded_read_gate(struct embedded *e, const char *text, size_t length, const char *name,
                       struct error *err)
{
    json_error_t where;
    json_t *root = json_loadb(text, length, 0, &where);
    int r = root ? read_root(e, root, err) : wrong(err, where.text);
    json_decref(root);
    return r < 0 ? error_wrap(err, r, "%s", name) : 0;
}

#else

int embedded_read_gate(struct embedded *e, const char *text, size_t length, const char *name,
                       struct error *err)
{
    (void)e, (void)text, (void)length;
    return error_set(err, -ENOTSUP, "%s: assay was built without jansson and cannot read JSON",
                     name);
}

#endif

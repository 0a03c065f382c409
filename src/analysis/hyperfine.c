/* SPDX-License-Identifier: MIT */
/* Reads hyperfine's JSON: see hyperfine.h.  Without jansson it says so. */
#include "analysis/hyperfine.h"
#include "base/fd.h"
#include "base/memory.h"
#include "config.h"

#include <errno.h>
#include <math.h>

void imported_done(struct imported *i)
{
    for (size_t at = 0; at < i->count; at++) {
        free(i->results[at].name);
        free(i->results[at].command);
        free(i->results[at].parameters);
    }
    free(i->results);
    series_set_done(&i->series);
    *i = (struct imported){0};
}

#if HAVE_JANSSON
#include <jansson.h>

/* The arrays of one result, until all are known. */
struct row {
    const json_t *times, *memory;
};

struct reader {
    struct imported *into;
    struct row *rows;
    size_t row_count, row_capacity;
    bool paired;
};

static int wrong(struct error *err, const char *path, size_t index, const char *what)
{
    return error_set(err, -EINVAL, "%s: results[%zu]: %s", path, index, what);
}

static int check_numbers(const json_t *array, double least, struct error *err, const char *path,
                         size_t index, const char *what)
{
    size_t at;
    const json_t *value;
    json_array_foreach(array, at, value) if (
        !json_is_number(value) || !(json_number_value(value) >= least) ||
        !isfinite(json_number_value(
            value))) return error_set(err, -EINVAL,
                                      "%s: results[%zu].%s[%zu] is not a number of %g or more",
                                      path, index, what, at, least);
    return 0;
}

static char *describe_parameters(const json_t *result)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(result, "parameters"), key, value)
        strbuf_printf(&out, "%s%s=%s", out.length ? ", " : "", key,
                      json_is_string(value) ? json_string_value(value) : "?");
    return memory_strdup(strbuf_text(&out));
}

static size_t count_failures(const json_t *result)
{
    size_t at, count = 0;
    const json_t *value;
    json_array_foreach(json_object_get(result, "exit_codes"), at, value) count +=
        !json_is_integer(value) || json_integer_value(value) != 0;
    return count;
}

static int read_result(struct reader *r, const json_t *result, const char *path, size_t index,
                       struct error *err)
{
    const json_t *command = json_object_get(result, "command");
    const json_t *times = json_object_get(result, "times");
    const json_t *memory = json_object_get(result, "memory_usage_byte");
    if (!json_is_string(command))
        return wrong(err, path, index, "there is no 'command'");
    if (!json_is_array(times) || !json_array_size(times))
        return wrong(err, path, index,
                     "there are no 'times'; hyperfine leaves them out of its CSV and Markdown, its "
                     "JSON has them");
    int code = check_numbers(times, 0, err, path, index, "times");
    if (code == 0 && json_is_array(memory))
        code = check_numbers(memory, 0, err, path, index, "memory_usage_byte");
    if (code < 0)
        return code;
    struct imported *into = r->into;
    ARRAY_PUSH(into->results, into->count, into->capacity) =
        (struct imported_result){.name = memory_strdup(json_string_value(command)),
                                 .command = memory_strdup(json_string_value(command)),
                                 .parameters = describe_parameters(result),
                                 .failed_runs = count_failures(result)};
    ARRAY_PUSH(r->rows, r->row_count, r->row_capacity) =
        (struct row){.times = times, .memory = json_is_array(memory) ? memory : NULL};
    return 0;
}

static int read_document(struct reader *r, const json_t *document, const char *path,
                         struct error *err)
{
    const json_t *results = json_object_get(document, "results");
    if (!json_is_array(results) || !json_array_size(results))
        return error_set(err, -EINVAL,
                         "%s: there is no array 'results': not a file of hyperfine --export-json",
                         path);
    size_t index;
    const json_t *result;
    json_array_foreach(results, index, result)
    {
        int code = read_result(r, result, path, index, err);
        if (code < 0)
            return code;
    }
    r->paired = json_is_true(json_object_get(json_object_get(document, "assay"), "paired"));
    return 0;
}

static void fill(struct series *s, size_t contestant, const json_t *array, double factor)
{
    size_t at;
    const json_t *value;
    s->counts[contestant] = json_array_size(array);
    json_array_foreach(array, at, value) s->values[contestant][at] =
        json_number_value(value) * factor;
}

static void make_series(struct reader *r)
{
    struct series_set *set = &r->into->series;
    size_t longest = 0;
    bool has_memory = true;
    set->contestant_count = r->row_count;
    for (size_t i = 0; i < r->row_count; i++) {
        size_t size = json_array_size(r->rows[i].times);
        size_t memory = r->rows[i].memory ? json_array_size(r->rows[i].memory) : 0;
        r->paired &= size == json_array_size(r->rows[0].times);
        has_memory &= memory > 0;
        longest = size > longest ? size : longest;
        longest = memory > longest ? memory : longest;
    }
    set->paired = r->paired;
    struct series *wall = series_add(set, "wall", "ns", SERIES_TIME, longest);
    for (size_t i = 0; i < r->row_count; i++)
        fill(wall, i, r->rows[i].times, 1e9);
    if (!has_memory)
        return;
    struct series *rss = series_add(set, "peak-rss", "bytes", SERIES_BYTES, longest);
    rss->source = SERIES_USAGE;
    for (size_t i = 0; i < r->row_count; i++)
        fill(rss, i, r->rows[i].memory, 1);
}

/* Results that would have the same name are numbered. */
static void make_names_unique(struct imported *i)
{
    for (size_t at = 0; at < i->count; at++) {
        size_t same = 0, before = 0;
        for (size_t other = 0; other < i->count; other++) {
            bool equal = str_eq(i->results[other].command, i->results[at].command) &&
                         str_eq(i->results[other].parameters, i->results[at].parameters);
            same += equal;
            before += equal && other < at;
        }
        if (same < 2)
            continue;
        free(i->results[at].name);
        i->results[at].name = memory_printf("%s #%zu", i->results[at].command, before + 1);
    }
}

static int load(const char *path, json_t **ret_document, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int r = file_read(path, &text, err);
    if (r < 0)
        return r;
    json_error_t where;
    *ret_document = json_loadb(strbuf_text(&text), text.length, 0, &where);
    if (*ret_document)
        return 0;
    CLEANUP(strbuf_done) struct strbuf words = {0};
    strbuf_put_safe(&words, where.text, strlen(where.text), 120);
    return error_set(err, -EINVAL, "%s: line %d, column %d: not JSON: %s", path, where.line,
                     where.column, strbuf_text(&words));
}

static void free_documents(json_t ***documents)
{
    for (size_t i = 0; (*documents)[i]; i++)
        json_decref((*documents)[i]);
    free(*documents);
}

int hyperfine_import(const char *const *paths, size_t path_count, struct imported *ret_imported,
                     struct error *err)
{
    struct imported imported = {0};
    struct reader reader = {.into = &imported};
    CLEANUP(free_documents) json_t **documents = memory_zalloc(path_count + 1, sizeof(*documents));
    int r = 0;
    for (size_t i = 0; i < path_count && r == 0; i++) {
        r = load(paths[i], &documents[i], err);
        if (r == 0)
            r = read_document(&reader, documents[i], paths[i], err);
    }
    reader.paired &= path_count == 1;
    if (r == 0) {
        make_series(&reader);
        make_names_unique(&imported);
        *ret_imported = imported;
    } else {
        imported_done(&imported);
    }
    free(reader.rows);
    return r;
}

#else

int hyperfine_import(const char *const *paths, size_t path_count, struct imported *ret_imported,
                     struct error *err)
{
    (void)paths;
    (void)path_count;
    (void)ret_imported;
    return error_set(err, -ENOTSUP,
                     "this assay was built without jansson and cannot read JSON; install "
                     "libjansson-dev and build again");
}

#endif

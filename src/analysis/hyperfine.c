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
        free(i->results[at].wall_ns);
        free(i->results[at].rss_bytes);
    }
    free(i->results);
    *i = (struct imported){0};
}

void imported_fill(const struct imported *i, struct dataset *d)
{
    static const struct metric_facts speed = {.better = METRIC_LOWER, .is_speed = true};
    bool has_memory = true;
    size_t wall = dataset_add_metric(d, "wall", "ns", "time", speed);
    for (size_t at = 0; at < i->count; at++) {
        has_memory &= i->results[at].rss_count > 0;
        for (size_t k = 0; k < i->results[at].wall_count; k++)
            dataset_put(d, wall, at, (uint32_t)k, i->results[at].wall_ns[k]);
    }
    size_t rss = has_memory ? dataset_add_metric(d, "peak-rss", "bytes", "time",
                                                 (struct metric_facts){.better = METRIC_LOWER})
                            : DATASET_NONE;
    for (size_t at = 0; has_memory && at < i->count; at++)
        for (size_t k = 0; k < i->results[at].rss_count; k++)
            dataset_put(d, rss, at, (uint32_t)k, i->results[at].rss_bytes[k]);
    d->apart = !i->paired;
    dataset_settle(d);
}

#if HAVE_JANSSON
#include <jansson.h>

struct reader {
    struct imported *into;
    bool paired;
};

static double *copy_numbers(const json_t *array, double factor, size_t *ret_count)
{
    size_t at, count = json_array_size(array);
    double *numbers = memory_zalloc(count + 1, sizeof(*numbers));
    const json_t *value;
    json_array_foreach(array, at, value) numbers[at] = json_number_value(value) * factor;
    *ret_count = count;
    return numbers;
}

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
        return wrong(
            err, path, index,
            "there are no 'times'; hyperfine writes them to JSON, but not to CSV or Markdown");
    int code = check_numbers(times, 0, err, path, index, "times");
    if (code == 0 && json_is_array(memory))
        code = check_numbers(memory, 0, err, path, index, "memory_usage_byte");
    if (code < 0)
        return code;
    struct imported *into = r->into;
    struct imported_result *one = &ARRAY_PUSH(into->results, into->count, into->capacity);
    *one = (struct imported_result){.name = memory_strdup(json_string_value(command)),
                                    .command = memory_strdup(json_string_value(command)),
                                    .parameters = describe_parameters(result),
                                    .failed_runs = count_failures(result)};
    one->wall_ns = copy_numbers(times, 1e9, &one->wall_count);
    one->rss_bytes = copy_numbers(memory, 1, &one->rss_count);
    return 0;
}

static int read_document(struct reader *r, const json_t *document, const char *path,
                         struct error *err)
{
    const json_t *results = json_object_get(document, "results");
    if (!json_is_array(results) || !json_array_size(results))
        return error_set(
            err, -EINVAL,
            "%s: there is no array 'results': not a file written by hyperfine --export-json", path);
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
    imported.paired = reader.paired && path_count == 1;
    for (size_t i = 0; r == 0 && i < imported.count; i++)
        imported.paired &= imported.results[i].wall_count == imported.results[0].wall_count;
    if (r == 0) {
        make_names_unique(&imported);
        *ret_imported = imported;
    } else {
        imported_done(&imported);
    }
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
                     "assay was built without jansson and cannot read JSON; install libjansson-dev "
                     "and rebuild it");
}

#endif

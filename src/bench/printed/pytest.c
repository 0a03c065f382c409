/* SPDX-License-Identifier: MIT */
/* pytest-benchmark's JSON (--benchmark-json): benchmarks[].fullname and stats, in seconds. */
#include "bench/printed/printed.h"
#include "config.h"

#include <errno.h>

#if HAVE_JANSSON
#include <jansson.h>

static int take(struct printed_results *results, const json_t *b, struct error *err)
{
    const json_t *name = json_object_get(b, "name");
    const json_t *stats = json_object_get(b, "stats"), *data = json_object_get(stats, "data"), *one;
    const json_t *median = json_object_get(stats, "median");
    size_t at;
    int r = 0;
    if (!json_is_string(name))
        return error_set(err, -EINVAL, "a benchmark has no name");
    struct printed_result *result =
        printed_results_get(results, json_string_value(name), json_string_length(name));
    json_array_foreach(data, at, one) if (r == 0 && json_is_number(one)) r =
        printed_add(result, json_number_value(one) * 1e9, err);
    if (r == 0 && !result->count && json_is_number(median))
        r = printed_add(result, json_number_value(median) * 1e9, err);
    if (r == 0 && !result->count)
        r = error_set(err, -EINVAL, "%s has neither stats.data nor stats.median", result->name);
    return r;
}

int printed_pytest_parse(struct printed_results *results, const char *text, size_t length,
                         struct error *err)
{
    json_error_t why;
    int r = 0;
    size_t at;
    json_t *root = json_loadb(text, length, 0, &why);
    const json_t *list = json_object_get(root, "benchmarks"), *b;
    if (!root)
        return error_set(err, -EINVAL, "line %d: %s", why.line, why.text);
    if (!json_array_size(list))
        r = error_set(err, -ENODATA, "there are no 'benchmarks' in it");
    json_array_foreach(list, at, b) if (r == 0) r = take(results, b, err);
    json_decref(root);
    return r;
}
#else
int printed_pytest_parse(struct printed_results *results, const char *text, size_t length,
                         struct error *err)
{
    (void)results, (void)text, (void)length;
    return error_set(err, -ENOTSUP, "this assay was built without jansson and cannot read JSON");
}
#endif

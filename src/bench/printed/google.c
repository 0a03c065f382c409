/* SPDX-License-Identifier: MIT */
/* Google Benchmark's JSON (--benchmark_format=json): benchmarks[].name, real_time, time_unit.  Rows
 * that sum up others ("run_type": "aggregate") are left out. */
#include "bench/printed/printed.h"
#include "config.h"

#include <errno.h>

#if HAVE_JANSSON
#include <jansson.h>

static int take(struct printed_results *results, const json_t *b, struct error *err)
{
    const json_t *name = json_object_get(b, "run_name"), *time = json_object_get(b, "real_time");
    const char *kind = json_string_value(json_object_get(b, "run_type"));
    const char *unit = json_string_value(json_object_get(b, "time_unit"));
    const char *error = json_string_value(json_object_get(b, "error_message"));
    name = json_is_string(name) ? name : json_object_get(b, "name");
    if (kind && str_eq(kind, "aggregate"))
        return 0;
    if (!json_is_string(name))
        return error_set(err, -EINVAL, "a benchmark has no name");
    struct printed_result *r =
        printed_results_get(results, json_string_value(name), json_string_length(name));
    if (json_is_true(json_object_get(b, "error_occurred"))) {
        if (!r->failed)
            r->failed = strdup(error ? error : "it reported an error");
        return 0;
    }
    double factor = printed_unit_ns(unit ? unit : "ns", strlen(unit ? unit : "ns"));
    if (!json_is_number(time) || factor == 0)
        return error_set(err, -EINVAL, "%s has no real_time in a unit of time", r->name);
    return printed_add(r, json_number_value(time) * factor, err);
}

int printed_google_parse(struct printed_results *results, const char *text, size_t length,
                         struct error *err)
{
    json_error_t why;
    int r = 0;
    size_t at;
    json_t *root = json_loadb(text, length, JSON_DISABLE_EOF_CHECK, &why);
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
int printed_google_parse(struct printed_results *results, const char *text, size_t length,
                         struct error *err)
{
    (void)results, (void)text, (void)length;
    return error_set(err, -ENOTSUP, "this assay was built without jansson and cannot read JSON");
}
#endif

/* SPDX-License-Identifier: MIT */
/* nanobench's JSON template: results[].name and measurements[].elapsed, seconds of one iteration.
 */
#include "bench/printed/printed.h"
#include "config.h"

#include <errno.h>

#if HAVE_JANSSON
#include <jansson.h>

static int take(struct printed_results *results, const json_t *b, struct error *err)
{
    const json_t *name = json_object_get(b, "name"), *m;
    const json_t *median = json_object_get(b, "median(elapsed)");
    const json_t *list = json_object_get(b, "measurements");
    size_t at;
    int r = 0;
    if (!json_is_string(name))
        return error_set(err, -EINVAL, "a result has no name");
    struct printed_result *result =
        printed_results_get(results, json_string_value(name), json_string_length(name));
    json_array_foreach(list, at, m)
    {
        const json_t *elapsed = json_object_get(m, "elapsed");
        if (r == 0 && json_is_number(elapsed))
            r = printed_add(result, json_number_value(elapsed) * 1e9, err);
    }
    if (r == 0 && !result->count && json_is_number(median))
        r = printed_add(result, json_number_value(median) * 1e9, err);
    if (r == 0 && !result->count)
        r = error_set(err, -EINVAL, "%s has neither measurements nor median(elapsed)",
                      result->name);
    return r;
}

int printed_nanobench_parse(struct printed_results *results, const char *text, size_t length,
                            struct error *err)
{
    json_error_t why;
    int r = 0;
    size_t at;
    const char *start = length ? memchr(text, '{', length) : NULL; /* behind its table */
    if (!start)
        return error_set(err, -ENODATA, "there is no JSON in it");
    json_t *root = json_loadb(start, length - (size_t)(start - text), JSON_DISABLE_EOF_CHECK, &why);
    const json_t *list = json_object_get(root, "results"), *b;
    if (!root)
        return error_set(err, -EINVAL, "line %d: %s", why.line, why.text);
    if (!json_array_size(list))
        r = error_set(err, -ENODATA, "there are no 'results' in it");
    json_array_foreach(list, at, b) if (r == 0) r = take(results, b, err);
    json_decref(root);
    return r;
}
#else
int printed_nanobench_parse(struct printed_results *results, const char *text, size_t length,
                            struct error *err)
{
    (void)results, (void)text, (void)length;
    return error_set(err, -ENOTSUP, "this assay was built without jansson and cannot read JSON");
}
#endif

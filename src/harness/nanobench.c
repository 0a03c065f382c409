/* SPDX-License-Identifier: MIT */
/* nanobench's JSON, written with its own template (ankerl::nanobench::templates::json). */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/json.h"

#include <errno.h>

bool nanobench_is(const struct json_t *document)
{
    const struct json_t *first = harness_item(harness_get(document, "results"), 0);
    return harness_get(first, "epochs") && harness_text(first, "name");
}

static int read_result(struct harness_results *r, const struct json_t *result, size_t index,
                       struct error *err)
{
    static const char *const counters[] = {"instructions",    "cpucycles",          "pagefaults",
                                           "contextswitches", "branchinstructions", "branchmisses"};
    const char *name = harness_text(result, "name"), *title = harness_text(result, "title");
    const struct json_t *runs = harness_get(result, "measurements");
    double value;
    if (!name)
        return error_set(err, -EINVAL, "results[%zu] has no 'name'", index);
    struct harness_benchmark *b = harness_add(r, name);
    harness_set(&r->suite, title && !str_eq(title, "benchmark") ? title : "");
    struct harness_metric *wall = harness_metric(b, "elapsed", "s", HARNESS_TIME);
    for (size_t i = 0; i < harness_length(runs); i++) {
        const struct json_t *run = harness_item(runs, i);
        harness_put(harness_metric(b, "elapsed", "s", HARNESS_TIME),
                    harness_value(harness_get(run, "elapsed")));
        for (size_t k = 0; k < ARRAY_COUNT(counters); k++)
            if (harness_number(run, counters[k], &value) && value != 0)
                harness_put_at(harness_metric(b, counters[k], "", HARNESS_COUNT), i, value);
    }
    wall = harness_metric(b, "elapsed", "s", HARNESS_TIME);
    if (!wall->count && harness_number(result, "median(elapsed)", &value))
        harness_summary(b, "elapsed", "s", HARNESS_TIME, value);
    return 0;
}

int nanobench_read(struct harness_results *r, const struct json_t *document, struct error *err)
{
    const struct json_t *results = harness_get(document, "results");
    int code = 0;
    for (size_t i = 0; i < harness_length(results) && code == 0; i++)
        code = read_result(r, harness_item(results, i), i, err);
    return code;
}

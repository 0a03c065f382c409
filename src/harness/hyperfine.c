/* SPDX-License-Identifier: MIT */
/* hyperfine's JSON, which `assay ab` writes as well. */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/json.h"

#include <errno.h>

bool hyperfine_is(const struct json_t *document)
{
    const struct json_t *first = harness_item(harness_get(document, "results"), 0);
    return harness_text(first, "command") &&
           (harness_get(first, "mean") || harness_get(first, "times"));
}

static size_t count_failures(const struct json_t *result)
{
    const struct json_t *codes = harness_get(result, "exit_codes");
    size_t count = 0;
    for (size_t i = 0; i < harness_length(codes); i++)
        count += harness_value(harness_item(codes, i)) != 0; /* NAN for none: killed by a signal */
    return count;
}

static int put_array(struct harness_benchmark *b, const struct json_t *result, const char *key,
                     struct harness_metric *m, size_t index, struct error *err)
{
    const struct json_t *array = harness_get(result, key);
    for (size_t i = 0; i < harness_length(array); i++) {
        double value = harness_value(harness_item(array, i));
        if (!(value >= 0))
            return error_set(err, -EINVAL,
                             "results[%zu].%s[%zu] ('%s') is not a number of 0 or more", index, key,
                             i, b->name);
        harness_put(m, value);
    }
    return 0;
}

int hyperfine_read(struct harness_results *r, const struct json_t *document, struct error *err)
{
    const struct json_t *results = harness_get(document, "results");
    r->is_paired = harness_is_true(harness_get(document, "assay"), "paired");
    for (size_t i = 0; i < harness_length(results); i++) {
        const struct json_t *result = harness_item(results, i);
        const char *command = harness_text(result, "command");
        double value;
        if (!command)
            return error_set(err, -EINVAL, "results[%zu] has no 'command'", i);
        struct harness_benchmark *b = harness_add(r, command);
        harness_set(&b->command, command);
        b->failed_runs = count_failures(result);
        harness_params(b, harness_get(result, "parameters"));
        int code =
            put_array(b, result, "times", harness_metric(b, "wall", "s", HARNESS_TIME), i, err);
        if (code < 0)
            return code;
        if (!b->metrics[0].count && harness_number(result, "median", &value))
            harness_summary(b, "wall", "s", HARNESS_TIME, value);
        if (harness_length(harness_get(result, "memory_usage_byte")))
            code = put_array(b, result, "memory_usage_byte",
                             harness_metric(b, "peak-rss", "bytes", HARNESS_COST), i, err);
        if (code < 0)
            return code;
        if (harness_number(result, "user", &value))
            harness_summary(b, "user", "s", HARNESS_COST, value);
        if (harness_number(result, "system", &value))
            harness_summary(b, "sys", "s", HARNESS_COST, value);
    }
    return 0;
}

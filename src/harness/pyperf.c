/* SPDX-License-Identifier: MIT */
/* pyperf's JSON: runs of worker processes, each with its values after the warm-up. */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/json.h"

#include <errno.h>

bool pyperf_is(const struct json_t *document)
{
    return harness_get(harness_item(harness_get(document, "benchmarks"), 0), "runs") != NULL;
}

/* A member of the benchmark's metadata, or of the file's. */
static const char *meta(const struct json_t *document, const struct json_t *benchmark,
                        const char *key)
{
    const char *text = harness_text(harness_get(benchmark, "metadata"), key);
    return text ? text : harness_text(harness_get(document, "metadata"), key);
}

/* pyperf keeps its units by these names. */
static void unit_of(const char *unit, const char **ret_name, const char **ret_unit,
                    struct metric_facts *ret_facts)
{
    bool is_bytes = unit && str_eq(unit, "byte"), is_count = unit && str_eq(unit, "integer");
    *ret_name = is_bytes ? "memory" : is_count ? "count" : "wall";
    *ret_unit = is_bytes ? "bytes" : is_count ? "" : "s";
    *ret_facts = is_bytes ? HARNESS_COST : is_count ? HARNESS_PLAIN : HARNESS_TIME;
}

int pyperf_read(struct harness_results *r, const struct json_t *document, struct error *err)
{
    static const int known[] = {1, -1};
    const struct json_t *benchmarks = harness_get(document, "benchmarks");
    CLEANUP(memory_freep) char *version = harness_as_text(harness_get(document, "version"));
    int code = harness_check_version("pyperf with file format", version, known, err);
    for (size_t i = 0; i < harness_length(benchmarks) && code == 0; i++) {
        const struct json_t *entry = harness_item(benchmarks, i),
                            *runs = harness_get(entry, "runs");
        const char *name = meta(document, entry, "name"), *metric, *unit;
        struct metric_facts facts;
        if (!name)
            return error_set(err, -EINVAL, "benchmarks[%zu] has no name in its metadata", i);
        unit_of(meta(document, entry, "unit"), &metric, &unit, &facts);
        struct harness_benchmark *b = harness_add(r, name);
        struct harness_metric *m = harness_metric(b, metric, unit, facts);
        for (size_t k = 0; k < harness_length(runs); k++) {
            const struct json_t *values = harness_get(harness_item(runs, k), "values");
            for (size_t v = 0; v < harness_length(values); v++)
                harness_put(m, harness_value(harness_item(values, v)));
        }
        const char *date = harness_text(harness_get(harness_item(runs, 0), "metadata"), "date");
        if (date && !r->measured_at_ns)
            r->measured_at_ns = harness_parse_time(date);
        harness_set(&r->machine, meta(document, entry, "cpu_model_name"));
        harness_set(&r->version, meta(document, entry, "perf_version"));
    }
    return code;
}

/* SPDX-License-Identifier: MIT */
/* google-benchmark's JSON: a line in `benchmarks` for each repetition, and aggregates, which are
 * left out where the repetitions are there. */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/json.h"

#include <errno.h>

bool google_benchmark_is(const struct json_t *document)
{
    return harness_is_object(harness_get(document, "context")) &&
           harness_get(document, "benchmarks");
}

/* Members that every entry has; what else is a number is a counter of the benchmark's own. */
static bool is_known(const char *key)
{
    static const char *const known[] = {"family_index",
                                        "per_family_instance_index",
                                        "repetitions",
                                        "repetition_index",
                                        "threads",
                                        "iterations",
                                        "real_time",
                                        "cpu_time",
                                        "bytes_per_second",
                                        "items_per_second",
                                        "cpu_coefficient",
                                        "real_coefficient",
                                        "rms",
                                        "complexity_n"};
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (str_eq(key, known[i]))
            return true;
    return false;
}

static int put_counter(void *context, const char *key, const struct json_t *value)
{
    struct harness_benchmark *b = context;
    double number = harness_value(value);
    if (number == number && !is_known(key))
        harness_put(harness_metric(b, key, "", HARNESS_PLAIN), number);
    return 0;
}

static void put_if(struct harness_benchmark *b, const struct json_t *entry, const char *key,
                   const char *unit, struct metric_facts facts)
{
    double value;
    if (harness_number(entry, key, &value))
        harness_put(harness_metric(b, key, unit, facts), value);
}

/* A benchmark may choose its unit; a name stands for one unit, so that a headline shows all of it.
 */
static void put_time(struct harness_benchmark *b, const struct json_t *entry, const char *key,
                     struct metric_facts facts)
{
    const char *unit = harness_text(entry, "time_unit");
    bool is_usual = !unit || str_eq(unit, "ns");
    CLEANUP(memory_freep)
    char *name = memory_printf("%s%s%s", key, is_usual ? "" : "_", is_usual ? "" : unit);
    double value;
    if (harness_number(entry, key, &value))
        harness_put(harness_metric(b, name, unit ? unit : "ns", facts), value);
}

static int read_entry(struct harness_results *r, const struct json_t *entry, bool only_aggregates,
                      size_t index, struct error *err)
{
    const char *name = harness_text(entry, "name"), *type = harness_text(entry, "run_type");
    const char *aggregate = harness_text(entry, "aggregate_name");
    if (!name)
        return error_set(err, -EINVAL, "benchmarks[%zu] has no 'name'", index);
    bool is_aggregate = type && str_eq(type, "aggregate");
    if (is_aggregate && (!only_aggregates || !aggregate || !str_eq(aggregate, "median")))
        return 0;
    const char *plain = harness_text(entry, "run_name");
    struct harness_benchmark *b = harness_benchmark(r, plain ? plain : name);
    double threads, value;
    if (harness_number(entry, "threads", &threads) && threads > 1)
        harness_param_number(b, "threads", threads);
    if (harness_is_true(entry, "error_occurred")) {
        const char *message = harness_text(entry, "error_message");
        harness_set(&b->failure, message ? message : "it failed");
        return 0;
    }
    if (!harness_number(entry, "real_time", &value))
        return harness_get(entry, "cpu_coefficient") || harness_get(entry, "rms")
                   ? 0
                   : error_set(err, -EINVAL, "benchmarks[%zu] ('%s') has no 'real_time'", index,
                               name);
    put_time(b, entry, "real_time", HARNESS_TIME);
    put_time(b, entry, "cpu_time", HARNESS_COST);
    put_if(b, entry, "items_per_second", "items/s", HARNESS_RATE);
    put_if(b, entry, "bytes_per_second", "bytes/s", HARNESS_RATE);
    harness_each(entry, put_counter, b);
    for (size_t i = 0; is_aggregate && i < b->metric_count; i++)
        b->metrics[i].is_summary = true;
    return 0;
}

static bool has_repetitions(const struct json_t *entries)
{
    for (size_t i = 0; i < harness_length(entries); i++) {
        const char *type = harness_text(harness_item(entries, i), "run_type");
        if (!type || !str_eq(type, "aggregate"))
            return true;
    }
    return false;
}

static int read_context(struct harness_results *r, const struct json_t *context, struct error *err)
{
    static const int schemas[] = {1, -1};
    const char *executable = harness_text(context, "executable");
    const char *slash = executable ? strrchr(executable, '/') : NULL;
    const char *date = harness_text(context, "date"), *host = harness_text(context, "host_name");
    double schema;
    harness_set(&r->suite, slash ? slash + 1 : executable);
    harness_set(&r->version, harness_text(context, "library_version"));
    harness_set(&r->machine, host);
    r->measured_at_ns = date ? harness_parse_time(date) : 0;
    if (!harness_number(context, "json_schema_version", &schema))
        return 0;
    CLEANUP(memory_freep) char *text = memory_printf("%g", schema);
    return harness_check_version("google-benchmark with JSON schema", text, schemas, err);
}

int google_benchmark_read(struct harness_results *r, const struct json_t *document,
                          struct error *err)
{
    const struct json_t *entries = harness_get(document, "benchmarks");
    bool only_aggregates = !has_repetitions(entries);
    int code = read_context(r, harness_get(document, "context"), err);
    for (size_t i = 0; i < harness_length(entries) && code == 0; i++)
        code = read_entry(r, harness_item(entries, i), only_aggregates, i, err);
    return code;
}

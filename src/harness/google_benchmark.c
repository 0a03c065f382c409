/* SPDX-License-Identifier: MIT */
/* google-benchmark's JSON: an entry in `benchmarks` for each repetition, and aggregates, which are
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
        harness_put_at(harness_metric(b, key, "", HARNESS_PLAIN), harness_repetitions(b) - 1,
                       number);
    return 0;
}

static void put_if(struct harness_benchmark *b, const struct json_t *entry, const char *key,
                   const char *unit, struct metric_facts facts)
{
    double value;
    if (harness_number(entry, key, &value))
        harness_put_at(harness_metric(b, key, unit, facts), harness_repetitions(b) - 1, value);
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

static bool is_aggregate(const struct json_t *entry)
{
    const char *type = harness_text(entry, "run_type");
    return type && str_eq(type, "aggregate");
}

/* Of the aggregates a median stands for a benchmark that has no repetitions of its own. */
static bool is_wanted(const struct json_t *entry)
{
    const char *aggregate = harness_text(entry, "aggregate_name");
    return !harness_is_true(entry, "skipped") &&
           (!is_aggregate(entry) || (aggregate && str_eq(aggregate, "median")));
}

/* The first `with_values` benchmarks have repetitions. */
static int read_entry(struct harness_results *r, const struct json_t *entry, size_t with_values,
                      size_t index, struct error *err)
{
    const char *name = harness_text(entry, "name"), *plain = harness_text(entry, "run_name");
    if (!name)
        return error_set(err, -EINVAL, "benchmarks[%zu] has no 'name'", index);
    if (!is_wanted(entry))
        return 0;
    struct harness_benchmark *b = harness_benchmark(r, plain ? plain : name);
    double threads, value;
    if (is_aggregate(entry) && (size_t)(b - r->benchmarks) < with_values)
        return 0;
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
    put_time(b, entry, "real_time", HARNESS_TIME); /* the repetition's first value */
    put_time(b, entry, "cpu_time", HARNESS_COST);
    put_if(b, entry, "items_per_second", "items/s", HARNESS_RATE);
    put_if(b, entry, "bytes_per_second", "bytes/s", HARNESS_RATE);
    harness_each(entry, put_counter, b);
    for (size_t i = 0; is_aggregate(entry) && i < b->metric_count; i++)
        b->metrics[i].is_summary = true;
    return 0;
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
    size_t with_values = 0;
    int code = read_context(r, harness_get(document, "context"), err);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < harness_length(entries) && code == 0; i++)
            if (is_aggregate(harness_item(entries, i)) == (pass == 1))
                code = read_entry(r, harness_item(entries, i), with_values, i, err);
        with_values = r->count;
    }
    return code;
}

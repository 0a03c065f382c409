/* SPDX-License-Identifier: MIT */
/* pytest-benchmark's JSON: with --benchmark-save-data every round, else what it computed of them.
 */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/json.h"

#include <errno.h>

bool pytest_is(const struct json_t *document)
{
    return harness_get(document, "machine_info") && harness_get(document, "benchmarks") &&
           harness_get(document, "commit_info");
}

static int put_extra(void *context, const char *key, const struct json_t *value)
{
    double number = harness_value(value);
    if (number == number)
        harness_summary(context, key, "", HARNESS_PLAIN, number);
    return 0;
}

static int read_benchmark(struct harness_results *r, const struct json_t *entry, size_t index,
                          struct error *err)
{
    const char *full = harness_text(entry, "fullname"), *name = harness_text(entry, "name");
    const struct json_t *stats = harness_get(entry, "stats"), *data = harness_get(stats, "data");
    double value;
    if (!full && !name)
        return error_set(err, -EINVAL, "benchmarks[%zu] has no 'fullname'", index);
    struct harness_benchmark *b = harness_add(r, full ? full : name);
    harness_params(b, harness_get(entry, "params"));
    struct harness_metric *wall = harness_metric(b, "wall", "s", HARNESS_TIME);
    for (size_t i = 0; i < harness_length(data); i++)
        harness_put(wall, harness_value(harness_item(data, i)));
    if (!wall->count && harness_number(stats, "median", &value))
        harness_summary(b, "wall", "s", HARNESS_TIME, value);
    harness_each(harness_get(entry, "extra_info"), put_extra, b);
    return 0;
}

static void read_machine(struct harness_results *r, const struct json_t *machine)
{
    const char *cpu = harness_text(harness_get(machine, "cpu"), "brand_raw");
    if (!cpu)
        cpu = harness_text(harness_get(machine, "cpu"), "brand");
    const char *node = harness_text(machine, "node");
    CLEANUP(memory_freep)
    char *text = memory_printf("%s%s%s", node ? node : "", node && cpu ? ", " : "", cpu ? cpu : "");
    harness_set(&r->machine, text);
}

int pytest_read(struct harness_results *r, const struct json_t *document, struct error *err)
{
    static const int known[] = {3, 4, 5, -1};
    const struct json_t *commit = harness_get(document, "commit_info");
    const struct json_t *entries = harness_get(document, "benchmarks");
    const char *id = harness_text(commit, "id"), *branch = harness_text(commit, "branch");
    const char *date = harness_text(document, "datetime");
    const char *version = harness_text(document, "version");
    harness_set(&r->version, version);
    harness_set(&r->suite, harness_text(commit, "project"));
    harness_set(&r->commit, id && !str_eq(id, "unversioned") && !str_eq(id, "unknown") ? id : "");
    harness_set(&r->branch, branch && *branch != '(' ? branch : "");
    r->is_dirty = harness_is_true(commit, "dirty");
    r->measured_at_ns = date ? harness_parse_time(date) : 0;
    read_machine(r, harness_get(document, "machine_info"));
    int code = version ? harness_check_version("pytest-benchmark", version, known, err) : 0;
    for (size_t i = 0; i < harness_length(entries) && code == 0; i++)
        code = read_benchmark(r, harness_item(entries, i), i, err);
    return code;
}

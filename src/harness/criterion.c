/* SPDX-License-Identifier: MIT */
/* criterion's directory: …/GROUP/FUNCTION/VALUE/new with benchmark.json and sample.json.  A value
 * is a sample's time over its iterations. */
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/json.h"
#include "harness/walk.h"

#include <errno.h>
#include <unistd.h>

static bool is_new(const char *directory)
{
    CLEANUP(memory_freep) char *sample = memory_printf("%s/new/sample.json", directory);
    return access(sample, F_OK) == 0;
}

bool criterion_is(const char *path)
{
    return walk_has(path, is_new);
}

static int load(const char *directory, const char *name, struct json_t **ret_document,
                struct error *err)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/new/%s", directory, name);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int code = file_read(path, &text, err);
    if (code == 0)
        code = harness_json_load(strbuf_text(&text), text.length, ret_document, err);
    return code < 0 ? error_wrap(err, code, "%s", path) : 0;
}

static void put_throughput(struct harness_benchmark *b, const struct json_t *benchmark)
{
    double bytes, elements;
    const struct json_t *throughput = harness_get(benchmark, "throughput");
    if (harness_number(throughput, "Bytes", &bytes))
        harness_param_number(b, "bytes", bytes);
    if (harness_number(throughput, "Elements", &elements))
        harness_param_number(b, "elements", elements);
}

static int read_benchmark(void *context, const char *directory, struct error *err)
{
    struct harness_results *r = context;
    if (!is_new(directory))
        return 0;
    CLEANUP(harness_json_freep) struct json_t *benchmark = NULL, *sample = NULL;
    int code = load(directory, "benchmark.json", &benchmark, err);
    if (code == 0)
        code = load(directory, "sample.json", &sample, err);
    if (code < 0)
        return code;
    const char *id = harness_text(benchmark, "full_id");
    const struct json_t *iters = harness_get(sample, "iters"),
                        *times = harness_get(sample, "times");
    if (!id || harness_length(iters) != harness_length(times))
        return error_set(err, -EINVAL,
                         "%s/new: %s; a version of criterion that assay does not know", directory,
                         id ? "'iters' and 'times' differ in length" : "there is no 'full_id'");
    struct harness_benchmark *b = harness_add(r, id);
    put_throughput(b, benchmark);
    struct harness_metric *time = harness_metric(b, "time", "ns", HARNESS_TIME);
    for (size_t i = 0; i < harness_length(times); i++)
        harness_put(time,
                    harness_value(harness_item(times, i)) / harness_value(harness_item(iters, i)));
    return 0;
}

int criterion_read(struct harness_results *r, const char *path, struct error *err)
{
    return walk(path, read_benchmark, r, err);
}

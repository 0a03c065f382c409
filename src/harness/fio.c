/* SPDX-License-Identifier: MIT */
/* fio's JSON: what it computed for each job and direction. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/json.h"

#include <errno.h>

bool fio_is(const struct json_t *document)
{
    return harness_text(document, "fio version") && harness_get(document, "jobs");
}

/* What fio says on standard output stands before the document, and the text of json,normal behind
 * it.  The document is laid out: its braces are lines of their own. */
static const char *document_of(const char *text)
{
    const char *open = *text == '{' ? text : strstr(text, "\n{\n");
    const char *name = open ? strstr(open, "\"fio version\"") : NULL;
    return name && !strstr(open + 1, "\n{\n") ? open + (*open == '\n') : NULL;
}

bool fio_text_is(const char *text)
{
    return document_of(text) != NULL;
}

int fio_text_read(struct harness_results *r, const char *text, struct error *err)
{
    CLEANUP(harness_json_freep) struct json_t *document = NULL;
    const char *start = document_of(text), *end = strstr(start, "\n}\n");
    size_t length = end ? (size_t)(end - start) + 3 : strlen(start);
    int code = harness_json_load(start, length, &document, err);
    if (code == 0 && !fio_is(document))
        code = error_set(err, -EINVAL, "this is not fio --output-format=json");
    return code < 0 ? code : fio_read(r, document, err);
}

static void put_if(struct harness_benchmark *b, const struct json_t *from, const char *key,
                   const char *direction, const char *name, const char *unit,
                   struct metric_facts facts)
{
    double value;
    if (!harness_number(from, key, &value))
        return;
    CLEANUP(memory_freep) char *full = memory_printf("%s.%s", direction, name);
    harness_summary(b, full, unit, facts, value);
}

static void put_direction(struct harness_benchmark *b, const struct json_t *job,
                          const char *direction)
{
    const struct json_t *part = harness_get(job, direction), *lat = harness_get(part, "lat_ns");
    bool is_sync = str_eq(direction, "sync");
    const struct json_t *percentiles =
        harness_get(is_sync ? lat : harness_get(part, "clat_ns"), "percentile");
    double total;
    if (!harness_number(part, "total_ios", &total) || total <= 0)
        return;
    put_if(b, part, "iops", direction, "iops", "ops/s", HARNESS_RATE);
    put_if(b, part, "bw_bytes", direction, "bandwidth", "bytes/s", HARNESS_RATE);
    put_if(b, lat, "mean", direction, "latency.mean", "ns", HARNESS_TIME);
    put_if(b, lat, "max", direction, "latency.max", "ns", HARNESS_TIME);
    put_if(b, percentiles, "50.000000", direction, "latency.p50", "ns", HARNESS_TIME);
    put_if(b, percentiles, "99.000000", direction, "latency.p99", "ns", HARNESS_TIME);
    put_if(b, percentiles, "99.900000", direction, "latency.p99.9", "ns", HARNESS_TIME);
}

static int put_option(void *context, const char *key, const struct json_t *value)
{
    if (str_eq(key, "rw") || str_eq(key, "bs") || str_eq(key, "iodepth") ||
        str_eq(key, "numjobs") || str_eq(key, "ioengine")) {
        CLEANUP(memory_freep) char *text = harness_as_text(value);
        harness_param(context, key, text);
    }
    return 0;
}

int fio_read(struct harness_results *r, const struct json_t *document, struct error *err)
{
    static const int known[] = {3, -1};
    const char *version = harness_text(document, "fio version");
    const struct json_t *jobs = harness_get(document, "jobs");
    double at_ms;
    version = str_has_prefix(version, "fio-") ? version + 4 : version;
    harness_set(&r->version, version);
    if (harness_number(document, "timestamp_ms", &at_ms) && at_ms > 0 && at_ms < 1e13)
        r->measured_at_ns = (uint64_t)at_ms * (NS_PER_S / 1000);
    int code = harness_check_version("fio", version, known, err);
    for (size_t i = 0; i < harness_length(jobs) && code == 0; i++) {
        const struct json_t *job = harness_item(jobs, i);
        const char *name = harness_text(job, "jobname");
        double number;
        if (!name)
            return error_set(err, -EINVAL, "jobs[%zu] has no 'jobname'", i);
        struct harness_benchmark *b = harness_add(r, name);
        harness_each(harness_get(document, "global options"), put_option, b);
        harness_each(harness_get(job, "job options"), put_option, b);
        if (harness_number(job, "error", &number) && number != 0) {
            CLEANUP(memory_freep) char *words = memory_printf("fio's error %g", number);
            harness_set(&b->failure, words);
            continue;
        }
        put_direction(b, job, "read");
        put_direction(b, job, "write");
        put_direction(b, job, "trim");
        put_direction(b, job, "sync");
        put_if(b, job, "usr_cpu", "cpu", "user", "%", HARNESS_COST);
        put_if(b, job, "sys_cpu", "cpu", "sys", "%", HARNESS_COST);
        put_if(b, job, "ctx", "cpu", "switches", "", HARNESS_COUNT);
    }
    return code;
}

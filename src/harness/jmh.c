/* SPDX-License-Identifier: MIT */
/* JMH's JSON: the iterations of every fork, and its secondary metrics. */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/json.h"

#include <errno.h>

bool jmh_is(const struct json_t *document)
{
    return harness_get(harness_item(document, 0), "primaryMetric") != NULL;
}

/* Rates are "ops/ms", times "ms/op". */
static struct metric_facts facts_of(const char *unit, const char *mode)
{
    if (str_has_prefix(unit, "ops/") || str_eq(mode, "thrpt"))
        return HARNESS_RATE;
    return str_has_suffix(unit, "/op") ? HARNESS_TIME : HARNESS_PLAIN;
}

struct metric_reading {
    struct harness_benchmark *b;
    const char *mode;
};

struct percentiles {
    struct harness_benchmark *b;
    const char *name, *unit;
};

static int put_percentile(void *context, const char *key, const struct json_t *value)
{
    const struct percentiles *p = context;
    double percent, number = harness_value(value);
    struct error ignored;
    if (parse_double(key, &percent, &ignored) == 0 && number == number) {
        CLEANUP(memory_freep) char *name = memory_printf("%s.p%g", p->name, percent);
        harness_summary(p->b, name, p->unit, HARNESS_TIME, number);
    }
    return 0;
}

/* Sampled times are not written one by one (mode "sample"); their percentiles are. */
static void put_percentiles(struct harness_benchmark *b, const char *name, const char *unit,
                            const struct json_t *metric)
{
    struct percentiles p = {b, name, unit};
    harness_each(harness_get(metric, "scorePercentiles"), put_percentile, &p);
}

static void put_metric(struct harness_benchmark *b, const char *name, const char *mode,
                       const struct json_t *metric)
{
    const char *unit = harness_text(metric, "scoreUnit");
    const struct json_t *forks = harness_get(metric, "rawData");
    double score;
    unit = unit ? unit : "";
    struct metric_facts facts = facts_of(unit, mode);
    struct harness_metric *m = harness_metric(b, name, unit, facts);
    for (size_t f = 0; f < harness_length(forks); f++)
        for (size_t i = 0; i < harness_length(harness_item(forks, f)); i++)
            harness_put(m, harness_value(harness_item(harness_item(forks, f), i)));
    if (!m->count && harness_number(metric, "score", &score))
        harness_summary(b, name, unit, facts, score);
    if (str_eq(mode, "sample"))
        put_percentiles(b, name, unit, metric);
}

static int put_secondary(void *context, const char *key, const struct json_t *value)
{
    const struct metric_reading *reading = context;
    put_metric(reading->b, key, "", value);
    return 0;
}

int jmh_read(struct harness_results *r, const struct json_t *document, struct error *err)
{
    static const int known[] = {1, -1};
    for (size_t i = 0; i < harness_length(document); i++) {
        const struct json_t *entry = harness_item(document, i);
        const char *name = harness_text(entry, "benchmark"), *mode = harness_text(entry, "mode");
        const char *version = harness_text(entry, "jmhVersion");
        double threads;
        if (!name)
            return error_set(err, -EINVAL, "[%zu] has no 'benchmark'", i);
        int code = version ? harness_check_version("JMH", version, known, err) : 0;
        if (code < 0)
            return code;
        harness_set(&r->version, version);
        harness_set(&r->machine, harness_text(entry, "vmName"));
        struct harness_benchmark *b = harness_add(r, name);
        harness_param(b, "mode", mode ? mode : "");
        if (harness_number(entry, "threads", &threads) && threads > 1)
            harness_param_number(b, "threads", threads);
        harness_params(b, harness_get(entry, "params"));
        put_metric(b, "score", mode ? mode : "", harness_get(entry, "primaryMetric"));
        struct metric_reading reading = {b, mode};
        harness_each(harness_get(entry, "secondaryMetrics"), put_secondary, &reading);
    }
    return 0;
}

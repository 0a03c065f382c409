/* SPDX-License-Identifier: MIT */
/* iperf3's JSON: its intervals are the repetitions, its end a summary. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/json.h"

#include <errno.h>

bool iperf3_is(const struct json_t *document)
{
    const char *version = harness_text(harness_get(document, "start"), "version");
    return version && str_has_prefix(version, "iperf ") && harness_get(document, "end");
}

static void put_intervals(struct harness_benchmark *b, const struct json_t *intervals)
{
    for (size_t i = 0; i < harness_length(intervals); i++) {
        const struct json_t *sum = harness_get(harness_item(intervals, i), "sum");
        const struct json_t *back = harness_get(harness_item(intervals, i), "sum_bidir_reverse");
        double value;
        if (harness_is_true(sum, "omitted"))
            continue;
        if (harness_number(sum, "bits_per_second", &value))
            harness_put(harness_metric(b, "throughput", "bit/s", HARNESS_RATE), value);
        if (harness_number(back, "bits_per_second", &value))
            harness_put(harness_metric(b, "throughput.reverse", "bit/s", HARNESS_RATE), value);
        if (harness_number(sum, "retransmits", &value))
            harness_put(harness_metric(b, "retransmits", "", HARNESS_COUNT), value);
    }
}

static void put_end(struct harness_benchmark *b, const struct json_t *end)
{
    static const struct {
        const char *part, *key, *name, *unit;
        struct metric_facts facts;
    } figures[] = {
        {"sum_sent",
         "bits_per_second",
         "sent",
         "bit/s",
         {.better = METRIC_HIGHER, .is_speed = true}},
        {"sum_received",
         "bits_per_second",
         "received",
         "bit/s",
         {.better = METRIC_HIGHER, .is_speed = true}},
        {"sum_sent_bidir_reverse",
         "bits_per_second",
         "sent.reverse",
         "bit/s",
         {.better = METRIC_HIGHER, .is_speed = true}},
        {"sum_received_bidir_reverse",
         "bits_per_second",
         "received.reverse",
         "bit/s",
         {.better = METRIC_HIGHER, .is_speed = true}},
        {"sum", "bits_per_second", "sent", "bit/s", {.better = METRIC_HIGHER, .is_speed = true}},
        {"sum", "jitter_ms", "jitter", "ms", {.better = METRIC_LOWER}},
        {"sum", "lost_percent", "lost", "%", {.better = METRIC_LOWER}},
        {"cpu_utilization_percent", "host_total", "cpu.host", "%", {.better = METRIC_LOWER}},
        {"cpu_utilization_percent", "remote_total", "cpu.remote", "%", {.better = METRIC_LOWER}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(figures); i++) {
        double value;
        /* UDP has "sum" for "sum_sent"; newer versions write both. */
        bool is_twice = str_eq(figures[i].part, "sum") && str_eq(figures[i].name, "sent") &&
                        harness_get(end, "sum_sent");
        if (!is_twice && harness_number(harness_get(end, figures[i].part), figures[i].key, &value))
            harness_summary(b, figures[i].name, figures[i].unit, figures[i].facts, value);
    }
}

int iperf3_read(struct harness_results *r, const struct json_t *document, struct error *err)
{
    static const int known[] = {3, -1};
    const struct json_t *start = harness_get(document, "start");
    const struct json_t *test = harness_get(start, "test_start");
    const char *protocol = harness_text(test, "protocol"), *error = harness_text(document, "error");
    double value;
    harness_set(&r->version, harness_text(start, "version") + strlen("iperf "));
    int code = harness_check_version("iperf", r->version, known, err);
    if (code < 0)
        return code;
    harness_set(&r->machine, harness_text(start, "system_info"));
    if (harness_number(harness_get(start, "timestamp"), "timesecs", &value) && value > 0 &&
        value < 1e10)
        r->measured_at_ns = (uint64_t)value * NS_PER_S;
    struct harness_benchmark *b = harness_add(r, protocol ? protocol : "iperf3");
    if (harness_number(test, "num_streams", &value))
        harness_param_number(b, "streams", value);
    if (harness_number(test, "blksize", &value))
        harness_param_number(b, "blksize", value);
    if (error) {
        harness_set(&b->failure, error);
        return 0;
    }
    put_intervals(b, harness_get(document, "intervals"));
    put_end(b, harness_get(document, "end"));
    return 0;
}

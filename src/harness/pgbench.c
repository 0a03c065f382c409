/* SPDX-License-Identifier: MIT */
/* What pgbench prints: its progress lines are the repetitions, its end a summary. */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/lines.h"

#include <errno.h>
#include <stdio.h>

bool pgbench_is(const char *text)
{
    return strstr(text, "number of transactions actually processed:") && strstr(text, "\ntps = ");
}

/* "progress: 1.0 s, 379.4 tps, lat 4.421 ms stddev 4.596, 0 failed" */
static void read_progress(struct harness_benchmark *b, const char *line)
{
    double tps, latency;
    const char *at = strchr(line, ','), *lat = strstr(line, " lat "), *rest;
    if (at && lines_number(at + 1 + strspn(at + 1, " "), &tps, &rest))
        harness_put(harness_metric(b, "interval.tps", "transactions/s", HARNESS_RATE), tps);
    if (lat && lines_number(lat + 5, &latency, &rest))
        harness_put(harness_metric(b, "interval.latency", "ms", HARNESS_TIME), latency);
}

static void read_line(struct harness_results *r, struct harness_benchmark *b, char *line)
{
    static const struct {
        const char *words, *name, *unit;
        struct metric_facts facts;
    } figures[] = {
        {"tps = ", "tps", "transactions/s", {.better = METRIC_HIGHER, .is_speed = true}},
        {"latency average = ", "latency.mean", "ms", {.better = METRIC_LOWER, .is_speed = true}},
        {"latency stddev = ", "latency.stddev", "ms", {.better = METRIC_LOWER}},
        {"initial connection time = ",
         "connection",
         "ms",
         {.better = METRIC_LOWER, .is_speed = true}},
        {"number of failed transactions: ",
         "failed",
         "",
         {.better = METRIC_LOWER, .is_count = true}},
    };
    static const char *const params[][2] = {{"scaling factor: ", "scale"},
                                            {"query mode: ", "mode"},
                                            {"number of clients: ", "clients"},
                                            {"number of threads: ", "threads"}};
    double value;
    const char *rest;
    for (size_t i = 0; i < ARRAY_COUNT(figures); i++)
        if (str_has_prefix(line, figures[i].words) &&
            lines_number(line + strlen(figures[i].words), &value, &rest) &&
            !strstr(rest, "including connections"))
            harness_summary(b, figures[i].name, figures[i].unit, figures[i].facts, value);
    for (size_t i = 0; i < ARRAY_COUNT(params); i++)
        if (str_has_prefix(line, params[i][0]))
            harness_param(b, params[i][1], line + strlen(params[i][0]));
    if (str_has_prefix(line, "transaction type: "))
        harness_set(&b->name, line + strlen("transaction type: "));
    char version[32];
    if (sscanf(line, "pgbench (%31[^ )]", version) == 1)
        harness_set(&r->version, version);
    if (str_has_prefix(line, "progress: "))
        read_progress(b, line);
}

int pgbench_read(struct harness_results *r, const char *text, struct error *err)
{
    static const int known[] = {9, 10, 11, 12, 13, 14, 15, 16, 17, 18, -1};
    struct lines l = {.at = text};
    struct harness_benchmark *b = harness_add(r, "pgbench");
    while (lines_next(&l)) {
        if (l.is_cut && str_has_prefix(l.line, "tps = ") && !strchr(l.line, ')'))
            return error_set(err, -EINVAL, "line %zu: the file ends within the figure", l.number);
        read_line(r, b, l.line);
    }
    harness_headline(b, "tps");
    harness_headline(b, "interval.tps");
    return *r->version ? harness_check_version("pgbench", r->version, known, err) : 0;
}

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

static const char *const params[][2] = {{"scaling factor: ", "scale"},
                                        {"query mode: ", "mode"},
                                        {"number of clients: ", "clients"},
                                        {"number of threads: ", "threads"}};
static const char title[] = "transaction type: ";

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
    char version[32];
    if (sscanf(line, "pgbench (%31[^ )]", version) == 1)
        harness_set(&r->version, version);
    if (str_has_prefix(line, "progress: "))
        read_progress(b, line);
}

static bool begins_run(const char *line)
{
    return str_has_prefix(line, "pgbench (") || str_has_prefix(line, "starting vacuum") ||
           str_has_prefix(line, "progress: ") || str_has_prefix(line, title);
}

static bool ends_run(const char *line)
{
    return str_has_prefix(line, "tps = ");
}

/* While the text is read a benchmark's name is its title and its parameters, each on a line: equal
 * runs are repetitions, others are not. */
static char *key_of(const char *run)
{
    CLEANUP(strbuf_done) struct strbuf name = {0}, rest = {0};
    struct lines l = {.at = run};
    while (lines_next(&l)) {
        if (str_has_prefix(l.line, title) && !name.length)
            strbuf_puts(&name, l.line + strlen(title));
        for (size_t i = 0; i < ARRAY_COUNT(params); i++)
            if (str_has_prefix(l.line, params[i][0]))
                strbuf_printf(&rest, "\n%s", l.line);
    }
    return memory_printf("%s%s", name.length ? strbuf_text(&name) : "pgbench", strbuf_text(&rest));
}

static int read_run(struct harness_results *r, const char *run, size_t *number, struct error *err)
{
    CLEANUP(memory_freep) char *key = key_of(run);
    struct harness_benchmark *b = harness_benchmark(r, key);
    struct lines l = {.at = run, .number = *number};
    while (lines_next(&l)) {
        if (l.is_cut && str_has_prefix(l.line, "tps = ") && !strchr(l.line, ')'))
            return error_set(err, -EINVAL, "line %zu: the file ends within the figure", l.number);
        read_line(r, b, l.line);
    }
    harness_headline(b, "tps");
    harness_headline(b, "interval.tps");
    *number = l.number;
    return 0;
}

int pgbench_read(struct harness_results *r, const char *text, struct error *err)
{
    static const int known[] = {9, 10, 11, 12, 13, 14, 15, 16, 17, 18, -1};
    size_t number = 0;
    int code = 0;
    while (*text && code == 0) {
        const char *end = lines_run_end(text, begins_run, ends_run);
        CLEANUP(memory_freep) char *run = memory_strndup(text, (size_t)(end - text));
        code = read_run(r, run, &number, err);
        text = end;
    }
    for (size_t i = 0; i < r->count; i++)
        r->benchmarks[i].name[strcspn(r->benchmarks[i].name, "\n")] = '\0';
    if (code == 0 && *r->version)
        code = harness_check_version("pgbench", r->version, known, err);
    return code;
}

/* SPDX-License-Identifier: MIT */
/* What sysbench prints at its end, and the lines of --report-interval as repetitions. */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/lines.h"

#include <errno.h>
#include <stdio.h>

bool sysbench_is(const char *text)
{
    return str_has_prefix(text, "sysbench ") && strstr(text, "\nGeneral statistics:");
}

/* Figures of the end, by the words in front of them. */
static const struct {
    const char *words, *name, *unit;
    struct metric_facts facts;
} figures[] = {
    {"events per second:", "events", "events/s", {.better = METRIC_HIGHER, .is_speed = true}},
    {"transactions:",
     "transactions",
     "transactions/s",
     {.better = METRIC_HIGHER, .is_speed = true}},
    {"queries:", "queries", "queries/s", {.better = METRIC_HIGHER, .is_speed = true}},
    {"reads/s:", "reads", "ops/s", {.better = METRIC_HIGHER, .is_speed = true}},
    {"writes/s:", "writes", "ops/s", {.better = METRIC_HIGHER, .is_speed = true}},
    {"fsyncs/s:", "fsyncs", "ops/s", {.better = METRIC_HIGHER, .is_speed = true}},
    {"read, MiB/s:", "read", "MiB/s", {.better = METRIC_HIGHER, .is_speed = true}},
    {"written, MiB/s:", "written", "MiB/s", {.better = METRIC_HIGHER, .is_speed = true}},
    {"min:", "latency.min", "ms", {.better = METRIC_LOWER, .is_speed = true}},
    {"avg:", "latency.mean", "ms", {.better = METRIC_LOWER, .is_speed = true}},
    {"max:", "latency.max", "ms", {.better = METRIC_LOWER, .is_speed = true}},
    {"Total operations:", "operations", "ops/s", {.better = METRIC_HIGHER, .is_speed = true}},
};

/* "12,  6.2 per sec.)" has the rate in parentheses; otherwise the number itself. */
static bool figure_value(const char *rest, double *ret_value)
{
    const char *rate = strchr(rest, '(');
    const char *number = rate && strstr(rate, "per sec") ? rate + 1 : rest + strspn(rest, " ");
    const char *unit;
    return lines_number(number, ret_value, &unit);
}

/* "95th percentile: 11.24", with the number of --percentile, and "8.00 MiB transferred (4.2
 * MiB/sec)", which have their number in front. */
static void read_numbered(struct harness_benchmark *b, const char *line)
{
    double number, value;
    const char *rest, *rate = strchr(line, '(');
    if (!lines_number(line, &number, &rest))
        return;
    if (str_has_prefix(rest, " MiB transferred") && rate && lines_number(rate + 1, &value, &rest))
        harness_summary(b, "transferred", "MiB/s", HARNESS_RATE, value);
    const char *colon = strstr(rest, " percentile:");
    CLEANUP(memory_freep) char *name = memory_printf("latency.p%g", number);
    if (colon && colon == rest + 2 && figure_value(colon + strlen(" percentile:"), &value))
        harness_summary(b, name, "ms", HARNESS_TIME, value);
}

static void read_figure(struct harness_benchmark *b, const char *line)
{
    line += strspn(line, " ");
    read_numbered(b, line);
    for (size_t i = 0; i < ARRAY_COUNT(figures); i++) {
        double value;
        if (str_has_prefix(line, figures[i].words) &&
            figure_value(line + strlen(figures[i].words), &value))
            harness_summary(b, figures[i].name, figures[i].unit, figures[i].facts, value);
    }
}

/* "[ 1s ] thds: 1 eps: 573.04 lat (ms,95%): 11.24", with "tps: 20.1" of a database, with
 * "reads: 2.5 MiB/s writes: …" of files, or with "5000.00 MiB/sec" of memory. */
static void read_interval(struct harness_benchmark *b, const char *line)
{
    static const char *const keys[][3] = {{"eps: ", "interval.events", "events/s"},
                                          {"tps: ", "interval.transactions", "transactions/s"},
                                          {"qps: ", "interval.queries", "queries/s"},
                                          {"reads: ", "interval.read", "MiB/s"},
                                          {"writes: ", "interval.written", "MiB/s"},
                                          {"s ] ", "interval.transferred", "MiB/s"}};
    double value;
    const char *rest, *latency = strstr(line, "): ");
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        const char *at = strstr(line, keys[i][0]);
        if (at && lines_number(at + strlen(keys[i][0]), &value, &rest))
            harness_put(harness_metric(b, keys[i][1], keys[i][2], HARNESS_RATE), value);
    }
    if (latency && (strstr(line, "lat (ms") || strstr(line, "latency (ms")) &&
        lines_number(latency + 3, &value, &rest))
        harness_put(harness_metric(b, "interval.latency", "ms", HARNESS_TIME), value);
}

/* What was run is told by the headings only; mutex and threads have none. */
static const char *test_of(const char *text)
{
    static const char *const signs[][2] = {{"CPU speed:", "cpu"},
                                           {"File operations:", "fileio"},
                                           {"SQL statistics:", "oltp"},
                                           {"MiB transferred", "memory"}};
    for (size_t i = 0; i < ARRAY_COUNT(signs); i++)
        if (strstr(text, signs[i][0]))
            return signs[i][1];
    return "sysbench";
}

static bool begins_run(const char *line)
{
    return str_has_prefix(line, "sysbench ");
}

/* While the text is read a benchmark's name is its test and the options that sysbench prints, each
 * on a line: equal runs are repetitions, others are not. */
static char *key_of(const char *run)
{
    CLEANUP(strbuf_done) struct strbuf key = {0};
    struct lines l = {.at = run};
    bool in_options = false;
    strbuf_puts(&key, test_of(run));
    while (lines_next(&l) && !str_has_prefix(l.line, "Initializing worker threads")) {
        if (in_options && *l.line && !str_has_prefix(l.line, "Initializing random"))
            strbuf_printf(&key, "\n%s", l.line);
        in_options |= str_has_prefix(l.line, "Running the test with");
    }
    return memory_strdup(strbuf_text(&key));
}

static int read_run(struct harness_results *r, const char *run, size_t *number, struct error *err)
{
    static const int known[] = {1, -1};
    char version[32] = "", threads[16];
    sscanf(run, "sysbench %31s", version);
    harness_set(&r->version, version);
    int code = harness_check_version("sysbench", version, known, err);
    if (code < 0)
        return code;
    CLEANUP(memory_freep) char *key = key_of(run);
    struct harness_benchmark *b = harness_benchmark(r, key);
    struct lines l = {.at = run, .number = *number};
    bool is_whole = false;
    while (lines_next(&l)) {
        is_whole |= strstr(l.line, "execution time (avg/stddev):") != NULL;
        if (sscanf(l.line, "Number of threads: %15[0-9]", threads) == 1)
            harness_param(b, "threads", threads);
        if (str_has_prefix(l.line, "FATAL:")) {
            harness_set(&b->failure, l.line);
            is_whole = true;
        }
        if (str_has_prefix(l.line, "[ "))
            read_interval(b, l.line);
        else
            read_figure(b, l.line);
    }
    if (!is_whole)
        return error_set(err, -EINVAL, "line %zu: the file ends before sysbench's last figures",
                         l.number);
    if (b->metric_count && str_eq(b->metrics[0].name, "latency.min"))
        harness_headline(b, "latency.mean"); /* mutex and threads print no rate */
    *number = l.number;
    return 0;
}

int sysbench_read(struct harness_results *r, const char *text, struct error *err)
{
    size_t number = 0;
    int code = 0;
    while (*text && code == 0) {
        const char *end = lines_run_end(text, begins_run, begins_run);
        CLEANUP(memory_freep) char *run = memory_strndup(text, (size_t)(end - text));
        code = read_run(r, run, &number, err);
        text = end;
    }
    for (size_t i = 0; i < r->count; i++)
        r->benchmarks[i].name[strcspn(r->benchmarks[i].name, "\n")] = '\0';
    return code;
}

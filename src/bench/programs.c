/* SPDX-License-Identifier: MIT */
/* See programs.h. */
#include "bench/programs.h"
#include "base/memory.h"
#include "base/strings.h"
#include "harness/harness.h"

#include <errno.h>
#include <math.h>

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Before 0.4 criterion takes whole seconds only. */
static const struct program_harness old_criterion = {
    .name = "criterion",
    .title = "Criterion.rs",
    .format = "criterion-text",
    .all = WORDS("--bench", "--noplot", "--warm-up-time", "1", "--measurement-time", "1",
                 "--sample-size", "10"),
    .one = WORDS("--bench", "--noplot", "--warm-up-time", "1", "--measurement-time", "1",
                 "--sample-size", "10", "^%s$"),
    .special = "\\^$.|?*+()[]{}",
    .home = "CRITERION_HOME"};

#define CATCH2_WORDS                                                             \
    "--reporter", "xml", "--benchmark-samples", "10", "--benchmark-no-analysis", \
        "--benchmark-warmup-time", "10"

/* Benchmarks that stand in tests like any other. */
static const struct program_harness untagged_catch2 = {
    .name = "catch2", .title = "Catch2", .format = "catch2", .all = WORDS(CATCH2_WORDS)};

/* By itself it measures each benchmark for a second. */
#define PYTEST_WORDS "--benchmark-only", "--benchmark-max-time=0.1", "-q"

/* Where the first python3 is another than pytest's. */
static const struct program_harness own_pytest = {.name = "pytest-benchmark",
                                                  .title = "pytest-benchmark",
                                                  .format = "pytest-benchmark",
                                                  .all = WORDS(PYTEST_WORDS),
                                                  .is_python = true,
                                                  .runner = "pytest"};

const struct program_harness program_harnesses[] = {
    {.name = "google-benchmark",
     .title = "Google Benchmark",
     .format = "google-benchmark",
     .marks = {"_ZN9benchmark", "benchmark_min_time"},
     .all = WORDS("--benchmark_format=json", "--benchmark_min_time=0.02"),
     .one =
         WORDS("--benchmark_format=json", "--benchmark_min_time=0.02", "--benchmark_filter=^%s$"),
     .special = "\\^$.|?*+()[]{}",
     .is_json = true},
    {.name = "catch2",
     .title = "Catch2",
     .format = "catch2",
     .marks = {"benchmark-samples"},
     .all = WORDS("[!benchmark]", CATCH2_WORDS),
     .instead = &untagged_catch2},
    {.name = "go",
     .title = "go test -bench",
     .format = "go",
     .marks = {"test.benchtime"},
     .all = WORDS("-test.run=^$", "-test.bench=.", "-test.benchtime=20ms"),
     .one = WORDS("-test.run=^$", "-test.bench=^Benchmark%s$", "-test.benchtime=20ms"),
     .special = "\\^$.|?*+()[]{}"},
    {.name = "criterion",
     .title = "Criterion.rs",
     .format = "criterion-text",
     .marks = {"CRITERION_HOME", "criterion::"},
     .all = WORDS("--bench", "--noplot", "--warm-up-time", "0.1", "--measurement-time", "0.2",
                  "--sample-size", "10"),
     .one = WORDS("--bench", "--noplot", "--warm-up-time", "0.1", "--measurement-time", "0.2",
                  "--sample-size", "10", "^%s$"),
     .special = "\\^$.|?*+()[]{}",
     .home = "CRITERION_HOME",
     .instead = &old_criterion},
    {.name = "divan",
     .title = "Divan",
     .format = "divan",
     .marks = {"DIVAN_SAMPLE_COUNT", "DIVAN_"},
     .all = WORDS("--bench", "--sample-count", "20", "--color", "never")},
    {.name = "nanobench",
     .title = "nanobench (a program that prints its JSON)",
     .format = "nanobench",
     .marks = {"ankerl9nanobench", "ankerl::nanobench"},
     .all = (const char *const[]){NULL},
     .is_json = true},
    {.name = "pytest-benchmark",
     .title = "pytest-benchmark",
     .format = "pytest-benchmark",
     .all = WORDS(PYTEST_WORDS),
     .is_python = true,
     .instead = &own_pytest},
    {.name = NULL},
};

const struct program_harness *program_harness_find(const char *name)
{
    for (const struct program_harness *h = program_harnesses; h->name; h++)
        if (str_eq(h->name, name))
            return h;
    return NULL;
}

const struct program_harness *program_harness_of(const void *bytes, size_t size)
{
    for (const struct program_harness *h = program_harnesses; h->name; h++)
        for (size_t i = 0; i < ARRAY_COUNT(h->marks) && h->marks[i]; i++)
            if (memmem(bytes, size, h->marks[i], strlen(h->marks[i])))
                return h;
    return NULL;
}

void program_results_done(struct program_results *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->items[i].name);
        free(r->items[i].ns);
        free(r->items[i].cpu_ns);
        free(r->items[i].failed);
    }
    free(r->items);
    *r = (struct program_results){0};
}

/* How many ns the unit of a time of one iteration has; 0 when it is none. */
static double ns_of(const char *unit)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"ns/op", 1}};
    for (size_t i = 0; i < ARRAY_COUNT(units); i++)
        if (str_eq(units[i].name, unit))
            return units[i].ns;
    return 0;
}

/* The first time that a benchmark has: harnesses put what they judge by in front. */
static const struct harness_metric *time_of(const struct harness_benchmark *b)
{
    for (size_t i = 0; i < b->metric_count; i++)
        if (ns_of(b->metrics[i].unit) > 0 && b->metrics[i].facts.is_speed)
            return &b->metrics[i];
    return NULL;
}

/* Google Benchmark's; NULL where there is none. */
static const struct harness_metric *cpu_time_of(const struct harness_benchmark *b)
{
    for (size_t i = 0; i < b->metric_count; i++)
        if (str_has_prefix(b->metrics[i].name, "cpu_time") && ns_of(b->metrics[i].unit) > 0)
            return &b->metrics[i];
    return NULL;
}

/* pytest names the file in front, and two versions are two files. */
static const char *name_of(const struct program_harness *h, const char *name)
{
    const char *colons = h->is_python ? strstr(name, "::") : NULL;
    return colons ? colons + 2 : name;
}

static void take(struct program_results *results, const struct program_harness *h,
                 const struct harness_benchmark *b)
{
    const struct harness_metric *time = time_of(b), *cpu = cpu_time_of(b);
    size_t count = time ? time->count : 0;
    struct program_result one = {.name = memory_strdup(name_of(h, b->name)),
                                 .ns = memory_zalloc(count + 1, sizeof(double)),
                                 .cpu_ns = memory_zalloc(count + 1, sizeof(double))};
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(time->values[i]) || time->values[i] < 0)
            continue;
        bool has_cpu = cpu && i < cpu->count && cpu->values[i] >= 0;
        one.cpu_ns[one.count] = has_cpu ? cpu->values[i] * ns_of(cpu->unit) : NAN;
        one.ns[one.count++] = time->values[i] * ns_of(time->unit);
    }
    if (!one.count)
        one.failed = memory_strdup(b->failure ? b->failure : "the program reported no time of it");
    ARRAY_PUSH(results->items, results->count, results->capacity) = one;
}

/* Benchmarks that the harness gives one name, such as those of Catch2's generators: from #2 on. */
static void number_equals(struct program_results *results)
{
    for (size_t i = results->count; i-- > 0;) {
        size_t before = 0;
        for (size_t k = 0; k < i; k++)
            before += str_eq(results->items[k].name, results->items[i].name);
        if (!before)
            continue;
        char *name = memory_printf("%s #%zu", results->items[i].name, before + 1);
        free(results->items[i].name);
        results->items[i].name = name;
    }
}

/* From the line that begins with a brace to the last brace. */
static void cut_json(const char **text, size_t *length)
{
    const char *end = *text + *length, *at = *text;
    while (at < end && *at != '{') {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        at = next ? next + 1 : end;
    }
    while (end > at && end[-1] != '}')
        end--;
    if (at < end) {
        *text = at;
        *length = (size_t)(end - at);
    }
}

int program_results_read(struct program_results *results, const struct program_harness *h,
                         const char *text, size_t length, const char *path, struct error *err)
{
    CLEANUP(harness_results_done) struct harness_results read = {0};
    if (h->is_json)
        cut_json(&text, &length);
    CLEANUP(memory_freep) char *cut = memory_strndup(text, length);
    int r = harness_read_text(&read, cut, length, path, h->format, err);
    if (r < 0)
        return error_wrap(err, r, "run as a program of %s", h->title);
    for (size_t i = 0; i < read.count; i++)
        take(results, h, &read.benchmarks[i]);
    number_equals(results);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* see printed.h. */
#include "bench/printed/printed.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>

enum { RESULTS_MAX = 100000, NAME_BYTES_MAX = 500 };

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

const struct printed_harness printed_harnesses[] = {
    {.name = "google-benchmark",
     .title = "Google Benchmark",
     .marks = {"_ZN9benchmark", "benchmark_min_time"},
     .all = WORDS("--benchmark_format=json", "--benchmark_min_time=0.02"),
     .one =
         WORDS("--benchmark_format=json", "--benchmark_min_time=0.02", "--benchmark_filter=^%s$"),
     .special = "\\^$.|?*+()[]{}",
     .parse = printed_google_parse},
    {.name = "catch2",
     .title = "Catch2",
     .marks = {"benchmark-samples"},
     .all = WORDS("[!benchmark]", "--reporter", "xml", "--benchmark-samples", "10",
                  "--benchmark-no-analysis", "--benchmark-warmup-time", "10"),
     .parse = printed_catch2_parse},
    {.name = "go",
     .title = "go test -bench",
     .marks = {"test.benchtime"},
     .all = WORDS("-test.run=^$", "-test.bench=.", "-test.benchtime=20ms"),
     .one = WORDS("-test.run=^$", "-test.bench=^%s$", "-test.benchtime=20ms"),
     .special = "\\^$.|?*+()[]{}",
     .parse = printed_go_parse},
    {.name = "criterion",
     .title = "Criterion.rs",
     .marks = {"CRITERION_HOME", "criterion::"},
     .all = WORDS("--bench", "--noplot", "--warm-up-time", "0.1", "--measurement-time", "0.2",
                  "--sample-size", "10"),
     .one = WORDS("--bench", "--noplot", "--warm-up-time", "0.1", "--measurement-time", "0.2",
                  "--sample-size", "10", "--exact", "%s"),
     .special = "",
     .parse = printed_criterion_parse},
    {.name = "divan",
     .title = "Divan",
     .marks = {"DIVAN_SAMPLE_COUNT", "DIVAN_"},
     .all = WORDS("--bench", "--sample-count", "20", "--color", "never"),
     .parse = printed_divan_parse},
    {.name = "nanobench",
     .title = "nanobench (a program that prints its JSON)",
     .marks = {"ankerl9nanobench", "ankerl::nanobench"},
     .all = (const char *const[]){NULL},
     .parse = printed_nanobench_parse},
    {.name = "pytest-benchmark",
     .title = "pytest-benchmark",
     .all = WORDS("--benchmark-only", "-q"),
     .parse = printed_pytest_parse,
     .is_python = true},
    {.name = NULL},
};

const struct printed_harness *printed_find(const char *name)
{
    for (const struct printed_harness *h = printed_harnesses; h->name; h++)
        if (str_eq(h->name, name))
            return h;
    return NULL;
}

const struct printed_harness *printed_of_program(const void *bytes, size_t size)
{
    for (const struct printed_harness *h = printed_harnesses; h->name; h++)
        for (size_t i = 0; i < ARRAY_COUNT(h->marks) && h->marks[i]; i++)
            if (memmem(bytes, size, h->marks[i], strlen(h->marks[i])))
                return h;
    return NULL;
}

void printed_results_done(struct printed_results *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->items[i].name);
        free(r->items[i].ns);
        free(r->items[i].failed);
    }
    free(r->items);
    *r = (struct printed_results){0};
}

struct printed_result *printed_results_get(struct printed_results *r, const char *name,
                                           size_t length)
{
    length = length > NAME_BYTES_MAX ? NAME_BYTES_MAX : length;
    for (size_t i = 0; i < r->count; i++)
        if (strlen(r->items[i].name) == length && memcmp(r->items[i].name, name, length) == 0)
            return &r->items[i];
    if (r->count == RESULTS_MAX)
        return &r->items[RESULTS_MAX - 1];
    struct printed_result new = {.name = memory_strndup(name, length)};
    ARRAY_PUSH(r->items, r->count, r->capacity) = new;
    return &r->items[r->count - 1];
}

int printed_add(struct printed_result *result, double ns, struct error *err)
{
    if (!isfinite(ns) || ns < 0)
        return error_set(err, -EINVAL, "the time of %s is not a number of 0 or more", result->name);
    ARRAY_PUSH(result->ns, result->count, result->capacity) = ns;
    return 0;
}

double printed_unit_ns(const char *unit, size_t length)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ps", 1e-3},
                 {"ns", 1},
                 {"us", 1e3},
                 {"µs", 1e3}, /* U+00B5 */
                 {"μs", 1e3} /* U+03BC */,
                 {"ms", 1e6},
                 {"s", 1e9}};
    for (size_t i = 0; i < ARRAY_COUNT(units); i++)
        if (strlen(units[i].name) == length && memcmp(units[i].name, unit, length) == 0)
            return units[i].ns;
    return 0;
}

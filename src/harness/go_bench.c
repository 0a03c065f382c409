/* SPDX-License-Identifier: MIT */
/* What `go test -bench` prints: a line a repetition, pairs of value and unit. */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/lines.h"

#include <ctype.h>
#include <errno.h>

/* "BenchmarkName-8", a number of iterations, a value and its unit. */
static bool is_result(char **words, size_t count)
{
    double number;
    return count >= 4 && str_has_prefix(words[0], "Benchmark") &&
           lines_number(words[1], &number, NULL) && lines_number(words[2], &number, NULL) &&
           strchr(words[3], '/');
}

bool go_bench_is(const char *text)
{
    struct lines l = {.at = text};
    char *words[LINES_WORDS_MAX];
    while (lines_next(&l))
        if (is_result(words, lines_words(l.line, words)))
            return true;
    return false;
}

static struct metric_facts facts_of(const char *unit)
{
    if (str_eq(unit, "ns/op"))
        return HARNESS_TIME;
    if (str_has_suffix(unit, "/s"))
        return HARNESS_RATE;
    if (str_eq(unit, "allocs/op"))
        return HARNESS_COUNT;
    return str_eq(unit, "B/op") ? HARNESS_COST : HARNESS_PLAIN;
}

static const char *name_of(const char *unit)
{
    static const char *const known[][2] = {{"ns/op", "time"},
                                           {"MB/s", "throughput"},
                                           {"B/op", "allocated"},
                                           {"allocs/op", "allocations"}};
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (str_eq(unit, known[i][0]))
            return known[i][1];
    return unit;
}

/* Go appends the number of processors where it is not 1. */
static void read_name(struct harness_results *r, char *word, struct harness_benchmark **ret)
{
    char *dash = strrchr(word, '-'), *digits = dash ? dash + 1 : NULL;
    bool is_number = digits && *digits;
    for (const char *at = digits; is_number && *at; at++)
        is_number = isdigit((unsigned char)*at);
    if (is_number)
        *dash = '\0';
    *ret = harness_benchmark(r, word + strlen("Benchmark"));
    if (is_number)
        harness_param(*ret, "procs", digits);
}

int go_bench_read(struct harness_results *r, const char *text, struct error *err)
{
    struct lines l = {.at = text};
    char *words[LINES_WORDS_MAX];
    while (lines_next(&l)) {
        if (str_has_prefix(l.line, "pkg: ") && !*r->suite)
            harness_set(&r->suite, l.line + 5);
        if (str_has_prefix(l.line, "cpu: "))
            harness_set(&r->machine, l.line + 5);
        size_t count = lines_words(l.line, words);
        if (!is_result(words, count))
            continue;
        struct harness_benchmark *b;
        read_name(r, words[0], &b);
        for (size_t i = 2; i + 1 < count; i += 2) {
            double value;
            if (!lines_number(words[i], &value, NULL))
                return error_set(err, -EINVAL, "line %zu: '%s' is not a number", l.number,
                                 words[i]);
            harness_put(
                harness_metric(b, name_of(words[i + 1]), words[i + 1], facts_of(words[i + 1])),
                value);
        }
    }
    return 0;
}

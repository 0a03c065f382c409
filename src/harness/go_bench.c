/* SPDX-License-Identifier: MIT */
/* What `go test -bench` prints: a line a repetition, pairs of value and unit.  A benchmark is told
 * by its package, its name and the number of processors (-cpu 1,2). */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/json.h"
#include "harness/lines.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

static bool is_figure(const char *word)
{
    double number;
    return lines_number(word, &number, NULL) || str_eq(word, "NaN") || str_has_suffix(word, "Inf");
}

/* "BenchmarkName-8", a number of iterations, a value and its unit.  A unit of the benchmark's own
 * may be any word; the line has nothing but pairs then. */
static bool is_result(char **words, size_t count)
{
    double number;
    if (count < 4 || !str_has_prefix(words[0], "Benchmark") ||
        !lines_number(words[1], &number, NULL) || !is_figure(words[2]))
        return false;
    if (strchr(words[3], '/'))
        return true;
    for (size_t i = 2; i < count; i++)
        if (is_figure(words[i]) != (i % 2 == 0))
            return false;
    return count % 2 == 0;
}

/* `go test -json` wraps what is printed in objects, one a line; a line of it may be in several. */
static bool is_wrapped(const char *text)
{
    return *text == '{' && strstr(text, "\"Action\":\"output\"") && strstr(text, "Benchmark");
}

static int unwrap(const char *text, struct strbuf *out, struct error *err)
{
    for (size_t number = 1; *text; number++) {
        size_t length = strcspn(text, "\n");
        CLEANUP(harness_json_freep) struct json_t *object = NULL;
        CLEANUP(memory_freep) char *line = memory_printf("%.*s", (int)length, text);
        int code = *line ? harness_json_load(line, length, &object, err) : 0;
        if (code < 0)
            return error_wrap(err, code, "line %zu", number);
        const char *output = harness_text(object, "Output");
        if (output)
            strbuf_puts(out, output);
        text += length + (text[length] == '\n');
    }
    return 0;
}

bool go_bench_is(const char *text)
{
    if (is_wrapped(text))
        return true;
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

/* While the text is read a benchmark's name is "PACKAGE\nNAME-PROCS". */
static struct harness_benchmark *benchmark_of(struct harness_results *r, const char *package,
                                              const char *word)
{
    CLEANUP(memory_freep)
    char *key = memory_printf("%s\n%s", package, word + strlen("Benchmark"));
    return harness_benchmark(r, key);
}

/* Go appends the number of processors where it is not 1. */
static void name_benchmark(struct harness_benchmark *b, bool with_package)
{
    CLEANUP(memory_freep) char *key = b->name;
    char *name = strchr(key, '\n'), *dash = strrchr(name, '-'), *digits = dash ? dash + 1 : NULL;
    bool is_number = digits && *digits;
    for (const char *at = digits; is_number && *at; at++)
        is_number = isdigit((unsigned char)*at);
    *name++ = '\0';
    if (is_number)
        *dash = '\0';
    b->name = memory_strdup(name);
    if (with_package)
        harness_param(b, "package", *key ? key : "-");
    if (is_number)
        harness_param(b, "procs", digits);
}

/* A benchmark's own metric may be missing in some repetitions, and may be "NaN" or "+Inf". */
static int put_line(struct harness_benchmark *b, char **words, size_t count, struct error *err)
{
    size_t repetition = harness_repetitions(b);
    for (size_t i = 2; i + 1 < count; i += 2) {
        const char *unit = words[i + 1];
        double value = NAN;
        if (!lines_number(words[i], &value, NULL) && !str_eq(words[i], "NaN") &&
            !str_has_suffix(words[i], "Inf"))
            return error_set(err, -EINVAL, "'%s' is not a number", words[i]);
        harness_put_at(harness_metric(b, name_of(unit), unit, facts_of(unit)), repetition, value);
    }
    return 0;
}

/* The last line may be cut within a figure or its unit. */
static bool is_cut(const struct harness_results *r, char **words, size_t count)
{
    const char *unit = words[count - 1];
    if (count % 2)
        return true;
    for (size_t b = 0; b < r->count; b++)
        for (size_t m = 0; m < r->benchmarks[b].metric_count; m++)
            if (str_eq(r->benchmarks[b].metrics[m].unit, unit))
                return false;
    return str_eq(name_of(unit), unit);
}

static int read_text(struct harness_results *r, const char *text, struct error *err)
{
    struct lines l = {.at = text};
    char *words[LINES_WORDS_MAX];
    CLEANUP(memory_freep) char *package = memory_strdup("");
    bool several = false;
    while (lines_next(&l)) {
        if (str_has_prefix(l.line, "pkg: ")) {
            several |= r->count && !str_eq(package, l.line + 5);
            harness_set(&package, l.line + 5);
            if (!*r->suite)
                harness_set(&r->suite, l.line + 5);
        }
        if (str_has_prefix(l.line, "cpu: "))
            harness_set(&r->machine, l.line + 5);
        size_t count = lines_words(l.line, words);
        bool is_whole = is_result(words, count);
        if (l.is_cut && count > 1 && str_has_prefix(words[0], "Benchmark") &&
            (!is_whole || is_cut(r, words, count)))
            return error_set(err, -EINVAL, "line %zu: the file ends within the line", l.number);
        if (!is_whole)
            continue;
        int code = put_line(benchmark_of(r, package, words[0]), words, count, err);
        if (code < 0)
            return error_wrap(err, code, "line %zu", l.number);
    }
    for (size_t i = 0; i < r->count; i++)
        name_benchmark(&r->benchmarks[i], several);
    return 0;
}

int go_bench_read(struct harness_results *r, const char *text, struct error *err)
{
    if (!is_wrapped(text))
        return read_text(r, text, err);
    CLEANUP(strbuf_done) struct strbuf out = {0};
    int code = unwrap(text, &out, err);
    return code < 0 ? code : read_text(r, strbuf_text(&out), err);
}

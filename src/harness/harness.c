/* SPDX-License-Identifier: MIT */
/* The model, the table of formats, and which of them a file is: see harness.h. */
#include "harness/harness.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "config.h"
#include "harness/formats.h"
#include "harness/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define JSON_FORMAT(name, title, of)                            \
    {                                                           \
        name, title, .is_json = of##_is, .read_json = of##_read \
    }
#define TEXT_FORMAT(name, title, of)                            \
    {                                                           \
        name, title, .is_text = of##_is, .read_text = of##_read \
    }

const struct harness_format harness_formats[] = {
    TEXT_FORMAT("catch2", "Catch2's XML (-r xml)", catch2),
    {"criterion", "criterion's directory (target/criterion)", .is_directory = criterion_is,
     .read_directory = criterion_read},
    TEXT_FORMAT("criterion-text", "what criterion prints", criterion_text),
    TEXT_FORMAT("divan", "divan's table", divan),
    {"fio", "fio --output-format=json", .is_json = fio_is, .read_json = fio_read,
     .is_text = fio_text_is, .read_text = fio_text_read},
    TEXT_FORMAT("go", "go test -bench", go_bench),
    JSON_FORMAT("google-benchmark", "google-benchmark --benchmark_format=json", google_benchmark),
    JSON_FORMAT("hyperfine", "hyperfine --export-json", hyperfine),
    JSON_FORMAT("iperf3", "iperf3 --json", iperf3),
    JSON_FORMAT("jmh", "JMH -rf json", jmh),
    {"lkp", "a result directory of LKP", .is_directory = lkp_is, .read_directory = lkp_read},
    JSON_FORMAT("lkp-json", "LKP's matrix.json or stats.json", lkp_json),
    JSON_FORMAT("nanobench", "nanobench's JSON", nanobench),
    TEXT_FORMAT("perf-csv", "perf stat -x SEP", perf_csv),
    TEXT_FORMAT("perf-json", "perf stat -j", perf_json),
    TEXT_FORMAT("pgbench", "pgbench's output", pgbench),
    JSON_FORMAT("pyperf", "pyperf's JSON", pyperf),
    JSON_FORMAT("pytest-benchmark", "pytest --benchmark-json", pytest),
    TEXT_FORMAT("redis-benchmark", "redis-benchmark --csv", redis),
    TEXT_FORMAT("stress-ng", "stress-ng --metrics --yaml", stress_ng),
    TEXT_FORMAT("sysbench", "sysbench's output", sysbench),
    {0},
};

/* ---- the model ---- */

static void benchmark_done(struct harness_benchmark *b)
{
    for (size_t i = 0; i < b->param_count; i++) {
        free(b->params[i].name);
        free(b->params[i].value);
    }
    for (size_t i = 0; i < b->metric_count; i++) {
        free(b->metrics[i].name);
        free(b->metrics[i].unit);
        free(b->metrics[i].values);
    }
    free(b->params);
    free(b->metrics);
    free(b->name);
    free(b->command);
    free(b->failure);
}

void harness_results_done(struct harness_results *r)
{
    for (size_t i = 0; i < r->count; i++)
        benchmark_done(&r->benchmarks[i]);
    free(r->benchmarks);
    free(r->slots);
    free(r->version);
    free(r->suite);
    free(r->machine);
    free(r->commit);
    free(r->branch);
    *r = (struct harness_results){0};
}

/* The slot of a name: that of a benchmark, or the free one where it belongs. */
static uint32_t *slot_of(const struct harness_results *r, const char *name)
{
    size_t at = hash_text(HASH_START, name) & r->slot_mask;
    while (r->slots[at] && !str_eq(r->benchmarks[r->slots[at] - 1].name, name))
        at = (at + 1) & r->slot_mask;
    return &r->slots[at];
}

static void grow_slots(struct harness_results *r)
{
    r->slot_mask = r->slot_mask ? 2 * r->slot_mask + 1 : 255;
    free(r->slots);
    r->slots = memory_zalloc(r->slot_mask + 1, sizeof(*r->slots));
    for (size_t i = 0; i < r->count; i++)
        *slot_of(r, r->benchmarks[i].name) = (uint32_t)i + 1;
}

struct harness_benchmark *harness_add(struct harness_results *r, const char *name)
{
    if (2 * (r->count + 1) > r->slot_mask)
        grow_slots(r);
    struct harness_benchmark *b = &ARRAY_PUSH(r->benchmarks, r->count, r->capacity);
    *b = (struct harness_benchmark){.name = memory_strdup(name), .command = memory_strdup("")};
    *slot_of(r, name) = (uint32_t)r->count;
    return b;
}

struct harness_benchmark *harness_benchmark(struct harness_results *r, const char *name)
{
    uint32_t number = r->slots ? *slot_of(r, name) : 0;
    return number ? &r->benchmarks[number - 1] : harness_add(r, name);
}

/* "benchmark" is the factor of the benchmark's name, and a factor has a name. */
void harness_param(struct harness_benchmark *b, const char *name, const char *value)
{
    name = !*name ? "parameter" : str_eq(name, "benchmark") ? "parameter benchmark" : name;
    for (size_t i = 0; i < b->param_count; i++)
        if (str_eq(b->params[i].name, name)) {
            harness_set(&b->params[i].value, value);
            return;
        }
    ARRAY_PUSH(b->params, b->param_count, b->param_capacity) =
        (struct harness_param){memory_strdup(name), memory_strdup(value)};
}

void harness_param_number(struct harness_benchmark *b, const char *name, double value)
{
    CLEANUP(memory_freep) char *text = memory_printf("%g", value);
    harness_param(b, name, text);
}

static int put_param(void *context, const char *key, const struct json_t *value)
{
    CLEANUP(memory_freep) char *text = harness_as_text(value);
    harness_param(context, key, text);
    return 0;
}

void harness_params(struct harness_benchmark *b, const struct json_t *object)
{
    harness_each(object, put_param, b);
}

struct harness_metric *harness_metric(struct harness_benchmark *b, const char *name,
                                      const char *unit, struct metric_facts facts)
{
    for (size_t i = 0; i < b->metric_count; i++)
        if (str_eq(b->metrics[i].name, name) && str_eq(b->metrics[i].unit, unit))
            return &b->metrics[i];
    struct harness_metric *m = &ARRAY_PUSH(b->metrics, b->metric_count, b->metric_capacity);
    *m = (struct harness_metric){
        .name = memory_strdup(name), .unit = memory_strdup(unit), .facts = facts};
    return m;
}

void harness_put(struct harness_metric *m, double value)
{
    ARRAY_PUSH(m->values, m->count, m->capacity) = isfinite(value) ? value : NAN;
}

size_t harness_repetitions(const struct harness_benchmark *b)
{
    size_t most = 0;
    for (size_t i = 0; i < b->metric_count; i++)
        if (b->metrics[i].count > most)
            most = b->metrics[i].count;
    return most;
}

void harness_put_at(struct harness_metric *m, size_t repetition, double value)
{
    while (m->count < repetition)
        harness_put(m, NAN);
    if (repetition < m->count)
        m->values[repetition] = isfinite(value) ? value : NAN;
    else
        harness_put(m, value);
}

void harness_headline(struct harness_benchmark *b, const char *name)
{
    for (size_t i = 1; i < b->metric_count; i++)
        if (str_eq(b->metrics[i].name, name)) {
            struct harness_metric first = b->metrics[i];
            memmove(b->metrics + 1, b->metrics, i * sizeof(first));
            b->metrics[0] = first;
            return;
        }
}

void harness_summary(struct harness_benchmark *b, const char *name, const char *unit,
                     struct metric_facts facts, double value)
{
    struct harness_metric *m = harness_metric(b, name, unit, facts);
    m->is_summary = true;
    harness_put(m, value);
}

void harness_set(char **text, const char *value)
{
    char *copy = memory_strdup(value ? value : "");
    free(*text);
    *text = copy;
}

/* ---- small readers that several formats need ---- */

/* "+02:00", "-0800", "Z" or nothing, in seconds. */
static long zone_of(const char *text)
{
    int hours = 0, minutes = 0;
    if ((*text != '+' && *text != '-') || sscanf(text + 1, "%2d:%2d", &hours, &minutes) < 1)
        return 0;
    if (hours > 99 || (hours < 24 && strlen(text) == 5 && text[3] != ':'))
        sscanf(text + 1, "%2d%2d", &hours, &minutes);
    long seconds = hours * 3600L + minutes * 60L;
    return *text == '-' ? -seconds : seconds;
}

uint64_t harness_parse_time(const char *text)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (!rest)
        rest = strptime(text, "%Y-%m-%d %H:%M:%S", &tm);
    if (!rest)
        return 0;
    time_t seconds = timegm(&tm);
    rest += *rest == '.' ? 1 + strspn(rest + 1, "0123456789") : 0;
    rest += strspn(rest, " ");
    seconds -= zone_of(rest);
    return seconds > 0 ? (uint64_t)seconds * NS_PER_S : 0;
}

int harness_check_version(const char *tool, const char *version, const int *majors,
                          struct error *err)
{
    char *end;
    int newest = 0;
    long major = strtol(version, &end, 10);
    for (size_t i = 0; majors[i] >= 0; i++) {
        if (end != version && major == majors[i])
            return 0;
        newest = majors[i];
    }
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, version, strlen(version), 40);
    return error_set(err, -EPROTO,
                     "this file is from %s %s, a version that assay does not know; known: %d to %d",
                     tool, strbuf_text(&safe), majors[0], newest);
}

/* ---- which format is it? ---- */

static int unknown_format(const char *name, struct error *err)
{
    const char *names[ARRAY_COUNT(harness_formats)];
    size_t count = 0;
    CLEANUP(strbuf_done) struct strbuf all = {0};
    for (; harness_formats[count].name; count++) {
        names[count] = harness_formats[count].name;
        strbuf_printf(&all, "%s%s", count ? ", " : "", names[count]);
    }
    CLEANUP(strbuf_done) struct strbuf near = {0};
    if (str_nearest(name, names, count, 3, &near))
        return error_set(err, -EINVAL, "unknown format '%s'; did you mean %s?", name,
                         strbuf_text(&near));
    return error_set(err, -EINVAL, "unknown format '%s'; there are: %s", name, strbuf_text(&all));
}

static int find_format(const char *name, const struct harness_format **ret_format,
                       struct error *err)
{
    *ret_format = NULL;
    for (const struct harness_format *f = harness_formats; name && f->name; f++)
        if (str_eq(f->name, name))
            *ret_format = f;
    return name && !*ret_format ? unknown_format(name, err) : 0;
}

static int not_this(const struct harness_format *format, struct error *err)
{
    if (format)
        return error_set(err, -EINVAL, "this is not %s", format->title);
    return error_set(err, -ENOMSG,
                     "assay does not know this format; 'assay import --list' lists those that it "
                     "reads");
}

/* Looks at what was read: a file without any value is a mistake, not a result. */
static int check_results(const struct harness_results *r, const char *path, struct error *err)
{
    const char *failure = NULL;
    for (size_t i = 0; i < r->count; i++) {
        for (size_t m = 0; m < r->benchmarks[i].metric_count; m++)
            for (size_t k = 0; k < r->benchmarks[i].metrics[m].count; k++)
                if (isfinite(r->benchmarks[i].metrics[m].values[k]))
                    return 0;
        failure = failure ? failure : r->benchmarks[i].failure;
    }
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    if (failure)
        strbuf_put_safe(&safe, failure, strlen(failure), 200);
    return error_set(err, -EINVAL, "%s: %s: there are no values in it%s%s", path, r->format->title,
                     failure ? "; all benchmarks failed: " : "", strbuf_text(&safe));
}

static void start(struct harness_results *r)
{
    *r = (struct harness_results){0};
    char **texts[] = {&r->version, &r->suite, &r->machine, &r->commit, &r->branch};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        harness_set(texts[i], "");
}

static int finish(struct harness_results *r, int code, const char *path,
                  struct harness_results *ret_results, struct error *err)
{
    code = code < 0 ? error_wrap(err, code, "%s", path) : check_results(r, path, err);
    if (code < 0)
        harness_results_done(r);
    else
        *ret_results = *r;
    return code;
}

/* Reads it in the first format that it is; 0 with `*ret_found` false for none. */
static int read_as(struct harness_results *r, const char *text, const struct json_t *document,
                   const struct harness_format *wanted, bool *ret_found, struct error *err)
{
    *ret_found = false;
    for (const struct harness_format *f = harness_formats; f->name; f++) {
        if (wanted && f != wanted)
            continue;
        bool is_json = f->is_json && document && f->is_json(document);
        bool is_text = f->is_text && f->is_text(text);
        if (!is_json && !is_text)
            continue;
        *ret_found = true;
        r->format = f;
        return is_json ? f->read_json(r, document, err) : f->read_text(r, text, err);
    }
    return 0;
}

/* JSON behind words that the tool wrote in front of it, as with "2>&1". */
static int read_behind_words(struct harness_results *r, const char *text, size_t length,
                             const struct harness_format *wanted, bool *ret_found,
                             struct error *err)
{
    CLEANUP(harness_json_freep) struct json_t *document = NULL;
    struct error ignored = {0};
    const char *object = strstr(text, "\n{"), *array = strstr(text, "\n[");
    const char *start = !object || (array && array < object) ? array : object;
    *ret_found = false;
    if (!start ||
        harness_json_load(start, length - (size_t)(start - text), &document, &ignored) < 0)
        return 0;
    return read_as(r, "", document, wanted, ret_found, err);
}

/* A document is JSON as a whole, or it is a text; several documents, one a line, are a text. */
static int read_document(struct harness_results *r, const char *text, size_t length,
                         const struct harness_format *wanted, struct error *err)
{
    CLEANUP(harness_json_freep) struct json_t *document = NULL;
    struct error bad = {0};
    size_t blank = strspn(text, " \t\r\n");
    bool like_json = text[blank] == '{' || text[blank] == '[', found;
    int parsed = harness_json_load(text, length, &document, &bad);
    int code = read_as(r, text, document, wanted, &found, err);
    if (!found && !like_json)
        code = read_behind_words(r, text, length, wanted, &found, err);
    if (found)
        return code;
    if (parsed < 0 && like_json && (!wanted || wanted->read_json)) {
        *err = bad;
        return parsed;
    }
    const char *own = harness_text(document, "format");
    if (own && str_has_prefix(own, "assay-") && !wanted &&
        strspn(own, "abcdefghijklmnopqrstuvwxyz-0123456789") == strlen(own))
        return error_set(
            err, -EINVAL,
            "this is assay's own JSON (%s), which cannot be imported; 'assay ab --save' "
            "and 'assay run' keep their results in the store",
            own);
    return not_this(wanted, err);
}

/* Says what is wrong with bytes that cannot be a text. */
static int check_bytes(const char *text, size_t length, const char *path, struct error *err)
{
    static const struct {
        const char *bytes, *name, *tool;
    } packed[] = {{"\x1f\x8b", "gzip", "gunzip"},
                  {"\x28\xb5\x2f\xfd", "zstd", "unzstd"},
                  {"\xfd\x37zXZ", "xz", "unxz"},
                  {"BZh", "bzip2", "bunzip2"}};
    if (!length)
        return error_set(err, -EINVAL, "%s: the file is empty", path);
    for (size_t i = 0; i < ARRAY_COUNT(packed); i++)
        if (str_has_prefix(text, packed[i].bytes))
            return error_set(err, -ENOMSG, "%s: the file is compressed (%s); unpack it with %s",
                             path, packed[i].name, packed[i].tool);
    if (str_has_prefix(text, "\xff\xfe") || str_has_prefix(text, "\xfe\xff"))
        return error_set(err, -EINVAL,
                         "%s: the text is UTF-16; convert it: iconv -f UTF-16 -t UTF-8", path);
    if (memchr(text, '\0', length))
        return error_set(err, -ENOMSG, "%s: this is a binary file, not a benchmark result", path);
    return 0;
}

int harness_read_text(struct harness_results *ret_results, const char *text, size_t length,
                      const char *path, const char *format, struct error *err)
{
    const struct harness_format *wanted;
    struct harness_results r;
    int code = find_format(format, &wanted, err);
    if (code == 0)
        code = check_bytes(text, length, path, err);
    if (code < 0)
        return code;
    size_t mark = str_has_prefix(text, "\xef\xbb\xbf") ? 3 : 0; /* of UTF-8, as Windows writes */
    start(&r);
    code = read_document(&r, text + mark, length - mark, wanted, err);
    return finish(&r, code, path, ret_results, err);
}

static int read_directory(struct harness_results *ret_results, const char *path,
                          const struct harness_format *wanted, struct error *err)
{
    for (const struct harness_format *f = harness_formats; f->name; f++) {
        if (!f->is_directory || (wanted && f != wanted) || !f->is_directory(path))
            continue;
        struct harness_results r;
        start(&r);
        r.format = f;
        return finish(&r, f->read_directory(&r, path, err), path, ret_results, err);
    }
    if (wanted && wanted->is_directory)
        return error_wrap(err, not_this(wanted, err), "%s", path);
    return error_set(err, -EISDIR,
                     "%s: this directory holds no results that assay knows (criterion's and LKP's)",
                     path);
}

static int read_stream(struct strbuf *text, struct error *err)
{
    char block[65536];
    size_t got;
    while ((got = fread(block, 1, sizeof(block), stdin)) > 0) {
        strbuf_append(text, block, got);
        if (text->length > (64U << 20))
            return error_set(err, -EFBIG, "standard input: more than 64 MiB");
    }
    return ferror(stdin) ? error_set(err, -EIO, "standard input: reading failed") : 0;
}

int harness_read(struct harness_results *ret_results, const char *path, const char *format,
                 struct error *err)
{
    const struct harness_format *wanted;
    struct stat status;
    bool is_stream = str_eq(path, "-");
    int code = find_format(format, &wanted, err);
    if (code == 0 && !is_stream && stat(path, &status) < 0)
        code = error_errno(err, -errno, "%s", path);
    if (code < 0)
        return code;
    if (!is_stream && S_ISDIR(status.st_mode))
        return read_directory(ret_results, path, wanted, err);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    code = is_stream ? read_stream(&text, err) : file_read(path, &text, err);
    if (code < 0)
        return code;
    return harness_read_text(ret_results, strbuf_text(&text), text.length,
                             is_stream ? "standard input" : path, format, err);
}

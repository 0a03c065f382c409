/* SPDX-License-Identifier: MIT */
/* See protocol.h. */
#include "bench/protocol.h"
#include "base/memory.h"
#include "base/strings.h"

#include <errno.h>
#include <math.h>

enum { KIND_LIST, KIND_RANGE, KIND_THREADS, THREADS_MAX = 256, NAME_MAX_BYTES = 200 };

static int bad_line(const char *line, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, line, strlen(line), 80);
    return error_set(err, -EPROTO,
                     "it says '%s', which is not understood; was it built with another version of "
                     "assay.h?",
                     strbuf_text(&safe));
}

static bool is_name(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == ',' || text[i] == '=' || text[i] == 127)
            return false;
    return length && length <= NAME_MAX_BYTES;
}

/* The name, up to a tab or the end. */
static int take_name(const char **at, const char *what, char **ret, struct error *err)
{
    size_t length = strcspn(*at, "\t");
    if (!is_name(*at, length)) {
        CLEANUP(strbuf_done) struct strbuf safe = {0};
        strbuf_put_safe(&safe, *at, length, 80);
        return error_set(err, -EINVAL,
                         "'%s' cannot be the name of a %s: 1 to %d bytes, without blanks, commas "
                         "and '='",
                         strbuf_text(&safe), what, NAME_MAX_BYTES);
    }
    *ret = memory_strndup(*at, length);
    *at += length + ((*at)[length] == '\t');
    return 0;
}

static bool take_u64(const char **at, uint64_t *ret)
{
    char *end;
    while (**at == ' ')
        (*at)++;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *ret = strtoull(*at, &end, 10);
    *at = end;
    return errno == 0 && (*end == ' ' || *end == '\0');
}

static bool take_i64(const char **at, int64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoll(*at, &end, 10);
    bool taken = end != *at && errno == 0 && (*end == ' ' || *end == '\0');
    *at = end;
    return taken;
}

static int take_entry(struct bench_entries *e, const char *line, struct error *err)
{
    const char *at = line + 1;
    struct bench_entry entry = {.index = e->count};
    if (e->count >= BENCH_ENTRIES_MAX)
        return error_set(err, -E2BIG, "it has more than %d benchmarks", BENCH_ENTRIES_MAX);
    if (!take_u64(&at, &entry.line) || *at++ != ' ')
        return bad_line(line, err);
    int r = take_name(&at, "benchmark", &entry.name, err);
    if (r < 0)
        return r;
    entry.file = memory_strdup(at);
    ARRAY_PUSH(e->items, e->count, e->capacity) = entry;
    return 0;
}

/* low, high, factor: the values that these give. */
static bool lay_out(struct bench_parameter *p)
{
    int64_t low = p->values[0], high = p->values[1], factor = p->values[2];
    if (p->count != 3 || low < 1 || high < low || factor < 2)
        return false;
    p->count = 0;
    for (int64_t v = low;; v *= factor) {
        p->values[p->count++] = v;
        if (v > high / factor || p->count == ARRAY_COUNT(p->values))
            break;
    }
    if (p->values[p->count - 1] != high && p->count < ARRAY_COUNT(p->values))
        p->values[p->count++] = high;
    return true;
}

static int take_parameter(struct bench_entries *e, const char *line, struct error *err)
{
    const char *at = line + 1;
    uint64_t kind;
    struct bench_entry *entry = e->count ? &e->items[e->count - 1] : NULL;
    if (!entry || entry->parameter_count == BENCH_PARAMETERS_MAX || !take_u64(&at, &kind) ||
        kind > KIND_THREADS || *at++ != ' ')
        return bad_line(line, err);
    struct bench_parameter p = {.is_threads = kind == KIND_THREADS};
    CLEANUP(memory_freep) char *name = NULL;
    int r = take_name(&at, "parameter", &name, err);
    if (r < 0)
        return error_wrap(err, r, "%s", entry->name);
    for (; *at; p.count++)
        if (p.count == BENCH_VALUES_MAX || !take_i64(&at, &p.values[p.count]))
            return bad_line(line, err);
    if (!p.count)
        return error_set(err, -EINVAL, "%s: its parameter '%s' has no values", entry->name, name);
    for (size_t i = 0; i < p.count && p.is_threads; i++)
        if (p.values[i] < 1 || p.values[i] > THREADS_MAX)
            return error_set(err, -EINVAL, "%s: ASSAY_THREADS takes numbers from 1 to %d, not %lld",
                             entry->name, THREADS_MAX, (long long)p.values[i]);
    if (kind == KIND_RANGE && !lay_out(&p))
        return error_set(err, -EINVAL,
                         "%s: ASSAY_RANGE needs 1 ≤ low ≤ high and a factor of 2 or more",
                         entry->name);
    p.name = memory_strdup(name);
    entry->parameters[entry->parameter_count++] = p;
    return 0;
}

int bench_entries_take(struct bench_entries *e, const char *line, struct error *err)
{
    if (line[0] == 'b' && line[1] == ' ')
        return take_entry(e, line, err);
    if (line[0] == 'p' && line[1] == ' ')
        return take_parameter(e, line, err);
    return bad_line(line, err);
}

static int by_source(const void *a, const void *b)
{
    const struct bench_entry *x = a, *y = b;
    int order = strcmp(x->file, y->file);
    if (order)
        return order;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

void bench_entries_sort(struct bench_entries *e)
{
    if (e->count)
        qsort(e->items, e->count, sizeof(*e->items), by_source);
}

void bench_entries_done(struct bench_entries *e)
{
    for (size_t i = 0; i < e->count; i++) {
        for (size_t p = 0; p < e->items[i].parameter_count; p++)
            free(e->items[i].parameters[p].name);
        free(e->items[i].name);
        free(e->items[i].file);
    }
    free(e->items);
    *e = (struct bench_entries){0};
}

int bench_sample_parse(const char *line, struct bench_sample *ret, struct error *err)
{
    uint64_t v[9];
    const char *at = line + 1;
    if (line[0] != 's' || line[1] != ' ')
        return bad_line(line, err);
    for (size_t i = 0; i < ARRAY_COUNT(v); i++)
        if (!take_u64(&at, &v[i]))
            return bad_line(line, err);
    struct bench_sample s = {.wall_ns = (double)v[0],
                             .cpu_ns = (double)v[1],
                             .minor_faults = v[2],
                             .major_faults = v[3],
                             .voluntary = v[4],
                             .involuntary = v[5],
                             .migrated = v[6] != v[7],
                             .pauses = v[8]};
    while (*at && s.counter_count < BENCH_COUNTERS_MAX) {
        uint64_t count;
        if (!take_u64(&at, &count))
            return bad_line(line, err);
        s.counters[s.counter_count++] = (double)count;
    }
    if (*at)
        return bad_line(line, err);
    *ret = s;
    return 0;
}

/* "X VALUE REST" */
static int take_number(const char *line, double *ret_value, const char **ret_rest,
                       struct error *err)
{
    char *end;
    double value = strlen(line) > 2 ? strtod(line + 2, &end) : NAN;
    if (strlen(line) <= 2 || end == line + 2 || *end != ' ')
        return bad_line(line, err);
    if (!isfinite(value)) {
        CLEANUP(strbuf_done) struct strbuf safe = {0};
        strbuf_put_safe(&safe, end + 1, strcspn(end + 1, "\t"), 80);
        return error_set(err, -EINVAL, "the number that it gives with '%s' is %g",
                         strbuf_text(&safe), value);
    }
    *ret_value = value;
    *ret_rest = end + 1;
    return 0;
}

int bench_figure_parse(const char *line, double *ret_value, char **ret_name, char **ret_unit,
                       struct error *err)
{
    const char *rest;
    double value;
    int r = take_number(line, &value, &rest, err);
    if (r < 0)
        return r;
    r = take_name(&rest, "counter", ret_name, err);
    if (r < 0)
        return r;
    *ret_value = value;
    *ret_unit = memory_strdup(rest);
    return 0;
}

int bench_law_parse(const char *line, double *ret_n, char **ret_law, struct error *err)
{
    const char *rest;
    double n;
    int r = take_number(line, &n, &rest, err);
    if (r < 0)
        return r;
    *ret_n = n;
    *ret_law = memory_strdup(rest);
    return 0;
}

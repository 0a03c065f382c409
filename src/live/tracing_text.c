/* SPDX-License-Identifier: MIT */
/* The end of a trace: what was left open, and the table of calls. */
#include "base/clock.h"
#include "base/memory.h"
#include "live/tracing.h"

#include <stdlib.h>

struct row {
    const char *name;
    const struct tracing_sum *sum;
};

static int by_time(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->sum->times.total_ns != y->sum->times.total_ns)
        return x->sum->times.total_ns > y->sum->times.total_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* A duration at the right of `columns`: the letter of microseconds is two bytes. */
static void put_time(struct strbuf *out, uint64_t ns, size_t columns)
{
    char text[32];
    size_t width = str_columns(format_duration((double)ns, text, sizeof(text)));
    strbuf_pad(out, ' ', width < columns ? columns - width : 0);
    strbuf_puts(out, text);
}

static void put_row(struct strbuf *out, double share, const struct row *r)
{
    const struct durations *d = &r->sum->times;
    strbuf_printf(out, "%6.2f", 100 * share);
    put_time(out, d->total_ns, 11);
    strbuf_printf(out, " %9llu %8llu", (unsigned long long)r->sum->count,
                  (unsigned long long)r->sum->errors);
    put_time(out, durations_quantile(d, 0.5), 10);
    put_time(out, durations_quantile(d, 0.99), 10);
    put_time(out, d->max_ns, 10);
    strbuf_printf(out, "  %s\n", r->name);
}

static void put_row_json(struct strbuf *out, const struct row *r)
{
    const struct durations *d = &r->sum->times;
    struct json j = {.out = out, .compact = true};
    json_object(&j, NULL);
    json_string(&j, "type", "summary");
    json_string(&j, "call", r->name);
    json_u64(&j, "count", r->sum->count);
    json_u64(&j, "errors", r->sum->errors);
    json_u64(&j, "total_ns", d->total_ns);
    json_u64(&j, "p50_ns", durations_quantile(d, 0.5));
    json_u64(&j, "p99_ns", durations_quantile(d, 0.99));
    json_u64(&j, "max_ns", d->max_ns);
    json_end(&j);
}

static void put_summary(struct tracing *t)
{
    struct row *rows = NULL;
    size_t count = 0, capacity = 0;
    uint64_t total_ns = 0, calls = 0, errors = 0;
    for (uint32_t i = 0; i < t->sum_capacity; i++) {
        if (!t->sums[i].count)
            continue;
        char room[32];
        const char *name = calls_name(t->names, i, room, sizeof(room));
        ARRAY_PUSH(rows, count, capacity) = (struct row){memory_strdup(name), &t->sums[i]};
        total_ns += t->sums[i].times.total_ns;
        calls += t->sums[i].count;
        errors += t->sums[i].errors;
    }
    if (count)
        qsort(rows, count, sizeof(*rows), by_time);
    if (!t->options.json)
        strbuf_puts(&t->text, "% time      total     calls   errors       p50       p99       max  "
                              "call\n");
    for (size_t i = 0; i < count; i++) {
        if (t->options.json)
            put_row_json(&t->text, &rows[i]);
        else
            put_row(&t->text, total_ns ? (double)rows[i].sum->times.total_ns / (double)total_ns : 0,
                    &rows[i]);
        free((char *)(uintptr_t)rows[i].name);
    }
    if (!t->options.json) {
        strbuf_puts(&t->text, "100.00");
        put_time(&t->text, total_ns, 11);
        strbuf_printf(&t->text, " %9llu %8llu%31s total\n", (unsigned long long)calls,
                      (unsigned long long)errors, "");
    }
    free(rows);
}

void tracing_finish(struct tracing *t, const struct follow *f)
{
    tracing_put_unfinished(t);
    if (t->options.summary)
        put_summary(t);
    if (t->options.json && f->trace.lost) {
        struct json j = {.out = &t->text, .compact = true};
        json_object(&j, NULL);
        json_string(&j, "type", "lost");
        json_u64(&j, "records", f->trace.lost);
        json_end(&j);
    }
    tracing_spill(t);
}

/* SPDX-License-Identifier: MIT */
/* What redis-benchmark --csv prints: a line a test; old versions have the rate only. */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/lines.h"

#include <errno.h>
#include <stdio.h>

static const char heading[] = "\"test\",\"rps\",";

bool redis_is(const char *text)
{
    return str_has_prefix(text, heading);
}

static void name_column(const char *title, char *name, size_t size)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    size_t length = strlen(title) - strlen("_latency_ms");
    strbuf_puts(&out, "latency.");
    if (strncmp(title, "avg", 3) == 0)
        strbuf_puts(&out, "mean");
    else
        strbuf_append(&out, title, length);
    snprintf(name, size, "%s", strbuf_text(&out));
}

int redis_read(struct harness_results *r, const char *text, struct error *err)
{
    struct lines l = {.at = text};
    char titles[LINES_LENGTH_MAX], *columns[LINES_WORDS_MAX], *fields[LINES_WORDS_MAX];
    lines_next(&l);
    memcpy(titles, l.line, sizeof(titles));
    size_t column_count = lines_fields(titles, ',', columns);
    while (lines_next(&l)) {
        if (!*l.line)
            continue;
        size_t count = lines_fields(l.line, ',', fields);
        if (count != column_count)
            return error_set(err, -EINVAL, "line %zu has %zu %s, its heading %zu", l.number, count,
                             plural(count, "field", "fields"), column_count);
        struct harness_benchmark *b = harness_benchmark(r, fields[0]);
        for (size_t i = 1; i < count; i++) {
            char name[64];
            double value;
            if (!lines_number(fields[i], &value, NULL))
                return error_set(err, -EINVAL, "line %zu, field %zu is not a number", l.number,
                                 i + 1);
            if (i == 1) {
                harness_summary(b, "rps", "requests/s", HARNESS_RATE, value);
            } else if (str_has_suffix(columns[i], "_latency_ms")) {
                name_column(columns[i], name, sizeof(name));
                harness_summary(b, name, "ms", HARNESS_TIME, value);
            }
        }
    }
    return 0;
}

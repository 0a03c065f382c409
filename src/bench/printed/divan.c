/* SPDX-License-Identifier: MIT */
/*
 * What Divan prints: a tree drawn with lines, whose leaves have the columns fastest, slowest,
 * median, mean, samples and iters:
 *
 *   sorting          fastest       │ slowest       │ median        │ mean          │ samples │
 * iters ├─ merge         1.2 µs        │ 3.4 µs        │ 1.3 µs        │ 1.4 µs        │ 100     │
 * 100 ╰─ quick                       │               │               │               │         │ ├─
 * 10         11 ns         │ …
 *
 * A leaf's name is the path to it.  The median is taken.
 */
#include "base/memory.h"
#include "bench/printed/printed.h"
#include "bench/printed/span.h"

#include <errno.h>

#define BAR "│"
enum { DEPTH_MAX = 16, COLUMN_MEDIAN = 2 };

struct path {
    char *names[DEPTH_MAX];
};

static void path_done(struct path *p)
{
    for (size_t i = 0; i < DEPTH_MAX; i++)
        free(p->names[i]);
}

/* Takes "├─ " or "╰─ " with what stands before it off; the depth, 3 columns each, or 0. */
static size_t take_branch(struct span *line)
{
    size_t depth = 0;
    while (depth < DEPTH_MAX) {
        if (span_starts(*line, "├─ ") || span_starts(*line, "╰─ ")) {
            line->at += strlen("├─ ");
            line->length -= strlen("├─ ");
            return depth + 1;
        }
        size_t skip = span_starts(*line, BAR "  ") ? strlen(BAR "  ")
                      : span_starts(*line, "   ")  ? 3
                                                   : 0;
        if (!skip)
            return 0;
        line->at += skip;
        line->length -= skip;
        depth++;
    }
    return 0;
}

/* The column of that number, counted from the first time; false where there is none. */
static bool time_in_column(struct span line, size_t number, double *ret_ns)
{
    for (size_t i = 0; i < number; i++) {
        const char *bar = span_find(line, BAR);
        if (!bar)
            return false;
        size_t used = (size_t)(bar - line.at) + strlen(BAR);
        line.at += used;
        line.length -= used;
    }
    struct span value, unit;
    double amount;
    if (!span_word(&line, &value) || !span_word(&line, &unit) || !span_number(&value, &amount) ||
        value.length)
        return false;
    *ret_ns = amount * printed_unit_ns(unit.at, unit.length);
    return *ret_ns > 0;
}

/* The name in front of two blanks, a bar or the end. */
static struct span take_name(struct span line)
{
    const char *gap = span_find(line, "  "), *bar = span_find(line, BAR);
    size_t length = gap ? (size_t)(gap - line.at) : line.length;
    if (bar && (size_t)(bar - line.at) < length)
        length = (size_t)(bar - line.at);
    return span_trim((struct span){line.at, length});
}

static void put_path(struct strbuf *out, const struct path *p, size_t depth)
{
    for (size_t i = 0; i < depth; i++)
        if (p->names[i])
            strbuf_printf(out, "%s%s", out->length ? "/" : "", p->names[i]);
}

int printed_divan_parse(struct printed_results *results, const char *text, size_t length,
                        struct error *err)
{
    CLEANUP(path_done) struct path path = {0};
    struct span rest = {text, length}, line;
    int r = 0;
    while (r == 0 && span_line(&rest, &line)) {
        CLEANUP(strbuf_done) struct strbuf full = {0};
        size_t depth = take_branch(&line);
        double ns;
        if (!depth)
            continue;
        struct span name = take_name(line);
        for (size_t i = depth - 1; i < DEPTH_MAX; i++) {
            free(path.names[i]);
            path.names[i] = NULL;
        }
        path.names[depth - 1] = memory_strndup(name.at, name.length);
        put_path(&full, &path, depth);
        if (full.length && time_in_column(line, COLUMN_MEDIAN, &ns))
            r = printed_add(printed_results_get(results, full.data, full.length), ns, err);
    }
    if (r == 0 && !results->count)
        return error_set(err, -ENODATA, "there is no table of Divan in it");
    return r;
}

/* SPDX-License-Identifier: MIT */
/*
 * Long names in narrow columns.
 *
 * A C++ name of 200 characters is mostly template arguments: `std::sort<…>` says as much to a
 * reader.  So the innermost brackets are emptied first, level by level, and only then is the
 * middle cut, since the beginning (namespace) and the end (the function) tell names apart.
 */
#include "base/memory.h"
#include "report/profile/profile_report.h"

#include <string.h>

#define DEPTH_MAX 64

/* Brackets of templates, not of operator<, operator<<, operator-> or ->. */
static int bracket(const char *name, size_t at)
{
    static const char word[] = "operator";
    size_t w = sizeof(word) - 1;
    if (name[at] != '<' && name[at] != '>')
        return 0;
    if (at > 0 && (name[at - 1] == '-' || name[at - 1] == '='))
        return 0;
    if (at >= w && memcmp(name + at - w, word, w) == 0)
        return 0;
    if (at > w && name[at] == name[at - 1] && memcmp(name + at - w - 1, word, w) == 0)
        return 0;
    return name[at] == '<' ? 1 : -1;
}

static unsigned deepest(const char *name, size_t length)
{
    unsigned depth = 0, most = 0;
    for (size_t i = 0; i < length; i++) {
        int b = bracket(name, i);
        if (b > 0 && ++depth > most)
            most = depth;
        else if (b < 0 && depth > 0)
            depth--;
    }
    return most;
}

/* Copies the name with what stands in brackets of at least this depth replaced by "…". */
static void put_emptied(struct strbuf *out, const char *name, size_t length, unsigned limit)
{
    unsigned depth = 0;
    for (size_t i = 0; i < length; i++) {
        int b = bracket(name, i);
        if (b < 0 && depth > 0)
            depth--;
        if (depth < limit)
            strbuf_putc(out, name[i]);
        if (b > 0 && ++depth == limit)
            strbuf_puts(out, "…");
    }
}

static void put_middle_cut(struct strbuf *out, const char *text, size_t columns)
{
    size_t have = str_columns(text);
    if (columns < 3 || have <= columns) {
        strbuf_append(out, text, str_column_bytes(text, columns));
        return;
    }
    size_t head = (columns - 1) * 2 / 3, tail = columns - 1 - head;
    strbuf_append(out, text, str_column_bytes(text, head));
    strbuf_puts(out, "…");
    strbuf_puts(out, text + str_column_bytes(text, have - tail));
}

void strbuf_put_short(struct strbuf *out, const char *name, size_t length, size_t columns)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0}, trial = {0};
    strbuf_put_safe(&safe, name, length, columns ? 64 * columns + 4096 : 65536);
    const char *text = strbuf_text(&safe);
    if (!columns || str_columns(text) <= columns) {
        strbuf_puts(out, text);
        return;
    }
    unsigned depth = deepest(text, safe.length);
    for (unsigned limit = depth < DEPTH_MAX ? depth : DEPTH_MAX; limit > 0; limit--) {
        strbuf_clear(&trial);
        put_emptied(&trial, text, safe.length, limit);
        if (str_columns(strbuf_text(&trial)) <= columns) {
            strbuf_puts(out, strbuf_text(&trial));
            return;
        }
    }
    put_middle_cut(out, depth ? strbuf_text(&trial) : text, columns);
}

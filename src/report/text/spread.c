/* SPDX-License-Identifier: MIT */
/* The pieces that the tables of `assay stat` share: see stat.h. */
#include "base/memory.h"
#include "report/text/stat.h"
#include "stats/summary.h"

#include <math.h>
#include <stdio.h>

#define NOTE_COLUMNS 96

struct spread spread_of(const double *values, size_t count)
{
    struct running r = {0};
    for (size_t i = 0; i < count; i++)
        running_add(&r, values[i]);
    return (struct spread){.count = count,
                           .mean = r.mean,
                           .stddev = count > 1 ? running_stddev(&r) : 0,
                           .min = r.min,
                           .max = r.max};
}

void strbuf_put_spread(struct strbuf *out, const struct spread *s, double divisor, int decimals)
{
    double share = s->mean != 0 ? 100 * s->stddev / fabs(s->mean) : 0;
    strbuf_printf(out, "  ±%6.2f%%  [", share);
    strbuf_put_grouped(out, s->min / divisor, decimals, 0);
    strbuf_puts(out, " … ");
    strbuf_put_grouped(out, s->max / divisor, decimals, 0);
    strbuf_puts(out, "]");
}

void strbuf_put_wrapped(struct strbuf *out, const char *text, size_t indent, size_t width)
{
    size_t column = indent;
    for (const char *word = text; *word;) {
        size_t length = strcspn(word, " ");
        CLEANUP(memory_freep) char *one = memory_strndup(word, length);
        size_t columns = str_columns(one);
        if (column > indent && column + 1 + columns > width) {
            strbuf_putc(out, '\n');
            strbuf_pad(out, ' ', indent);
            column = indent;
        } else if (column > indent) {
            strbuf_putc(out, ' ');
            column++;
        }
        strbuf_append(out, word, length);
        column += columns;
        word += length + (word[length] == ' ');
    }
}

/* Where the words of a line begin. */
static size_t hanging_indent(const char *line)
{
    enum { HEADING_MOST = 12 };
    size_t spaces = strspn(line, " "), heading = spaces + strcspn(line + spaces, " ");
    size_t words = heading + strspn(line + heading, " ");
    return words >= heading + 2 && words <= HEADING_MOST ? words : spaces;
}

void strbuf_fit_lines(struct strbuf *text, size_t columns)
{
    if (!columns)
        return;
    struct strbuf out = {0};
    for (const char *at = strbuf_text(text); *at;) {
        size_t length = strcspn(at, "\n");
        CLEANUP(memory_freep) char *line = memory_strndup(at, length);
        size_t indent = hanging_indent(line);
        if (str_columns(line) > columns && !strchr(line, '\033') && indent < columns / 2) {
            strbuf_append(&out, line, indent);
            strbuf_put_wrapped(&out, line + indent, indent, columns);
        } else {
            strbuf_puts(&out, line);
        }
        strbuf_puts(&out, at[length] ? "\n" : "");
        at += length + (at[length] == '\n');
    }
    strbuf_done(text);
    *text = out;
}

void strbuf_put_note(struct strbuf *out, const char *text, bool colour)
{
    strbuf_puts(out, colour ? "\033[33m" : "");
    strbuf_puts(out, "  * ");
    strbuf_put_wrapped(out, text, 4, NOTE_COLUMNS);
    strbuf_puts(out, colour ? "\033[0m\n" : "\n");
}

void strbuf_put_notes(struct strbuf *out, const struct doubt_list *doubts, bool colour)
{
    for (size_t i = 0; i < doubts->count; i++)
        strbuf_put_note(out, doubts->items[i].text, colour);
    if (doubts->count)
        strbuf_putc(out, '\n');
}

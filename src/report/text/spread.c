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

/* Bytes of a colour's control sequence, 0 if there is none. */
static size_t colour_bytes(const char *at)
{
    if (at[0] != '\033' || at[1] != '[')
        return 0;
    size_t length = 2 + strspn(at + 2, "0123456789;");
    return length + (at[length] != '\0');
}

/* The columns of a text that may have colours. */
static size_t shown_columns(const char *text)
{
    CLEANUP(strbuf_done) struct strbuf plain = {0};
    for (size_t colour; *text; text += colour ? colour : 1)
        if (!(colour = colour_bytes(text)))
            strbuf_putc(&plain, *text);
    return str_columns(strbuf_text(&plain));
}

void strbuf_put_wrapped(struct strbuf *out, const char *text, size_t indent, size_t width)
{
    size_t column = indent;
    for (const char *word = text; *word;) {
        size_t length = strcspn(word, " ");
        CLEANUP(memory_freep) char *one = memory_strndup(word, length);
        size_t columns = shown_columns(one);
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

/* Where the words of a line begin, in columns. */
static size_t hanging_indent(const char *line)
{
    enum { HEADING_MOST = 12 };
    size_t at[3] = {0}; /* where the spaces, the heading, and the spaces after it end */
    size_t column = 0, part = 0;
    for (size_t colour; *line && part < 3; line += colour ? colour : 1) {
        if ((colour = colour_bytes(line)))
            continue;
        while (part < 3 && (*line == ' ') == (part == 1))
            at[part++] = column;
        column++;
    }
    return part == 3 && at[2] >= at[1] + 2 && at[2] <= HEADING_MOST ? at[2] : at[0];
}

/* The bytes of the first columns of a line, which are ASCII. */
static size_t bytes_of_columns(const char *line, size_t columns)
{
    size_t bytes = 0;
    while (columns && line[bytes]) {
        size_t colour = colour_bytes(line + bytes);
        bytes += colour ? colour : 1;
        columns -= !colour;
    }
    return bytes;
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
        if (shown_columns(line) > columns && indent < columns / 2) {
            size_t bytes = bytes_of_columns(line, indent);
            strbuf_append(&out, line, bytes);
            strbuf_put_wrapped(&out, line + bytes, indent, columns);
        } else {
            strbuf_puts(&out, line);
        }
        strbuf_puts(&out, at[length] ? "\n" : "");
        at += length + (at[length] == '\n');
    }
    strbuf_done(text);
    *text = out;
}

void strbuf_put_note_within(struct strbuf *out, const char *text, bool colour, size_t columns)
{
    strbuf_puts(out, colour ? "\033[33m" : "");
    strbuf_puts(out, "  * ");
    strbuf_put_wrapped(out, text, 4, columns < NOTE_COLUMNS ? columns : NOTE_COLUMNS);
    strbuf_puts(out, colour ? "\033[0m\n" : "\n");
}

void strbuf_put_note(struct strbuf *out, const char *text, bool colour)
{
    strbuf_put_note_within(out, text, colour, NOTE_COLUMNS);
}

void strbuf_put_notes(struct strbuf *out, const struct doubt_list *doubts, bool colour)
{
    for (size_t i = 0; i < doubts->count; i++)
        strbuf_put_note(out, doubts->items[i].text, colour);
    if (doubts->count)
        strbuf_putc(out, '\n');
}

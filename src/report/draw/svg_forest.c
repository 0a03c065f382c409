/* SPDX-License-Identifier: MIT */
/* A forest plot: each variant's ratio to one base with its interval, on a logarithmic axis. */
#include "base/memory.h"
#include "report/draw/svg.h"

#include <math.h>
#include <stdio.h>

enum {
    TOP = 30,
    FOOT = 26,
    LINE_BELOW = 27, /* of a row on a narrow screen: below its name */
};

/* Beside each other on a wide screen: name, line, words.  Below each other on a narrow one. */
struct layout {
    int width, left, right; /* of the axis */
    int row, words;         /* the height of a row; where words stand */
    size_t name_columns, word_columns;
    bool is_narrow;
};

static const struct layout wide = {.width = 640,
                                   .left = 158,
                                   .right = 404,
                                   .row = 28,
                                   .words = 418,
                                   .name_columns = 19,
                                   .word_columns = 29};
static const struct layout narrow = {.width = 350,
                                     .left = 22,
                                     .right = 328,
                                     .row = 64,
                                     .words = 8,
                                     .name_columns = 44,
                                     .word_columns = 44,
                                     .is_narrow = true};

static void put_short(struct strbuf *out, const char *text, size_t columns)
{
    CLEANUP(strbuf_done) struct strbuf word = {0};
    svg_put_word(&word, text, columns);
    strbuf_put_markup(out, strbuf_text(&word));
}

/* Wide letters need more room than others. */
static size_t fitting_columns(const char *text, size_t columns, double room)
{
    for (; columns > 4; columns--) {
        CLEANUP(strbuf_done) struct strbuf word = {0};
        svg_put_word(&word, text, columns);
        if (svg_text_width(strbuf_text(&word)) <= room)
            break;
    }
    return columns;
}

static void put_text(struct strbuf *out, double x, double y, const char *attributes,
                     const char *text, size_t columns)
{
    strbuf_puts(out, "<text x=\"");
    svg_put_number(out, x);
    strbuf_puts(out, "\" y=\"");
    svg_put_number(out, y);
    strbuf_printf(out, "\"%s>", attributes);
    put_short(out, text, columns);
    strbuf_puts(out, "</text>");
}

static void take(struct svg_scale *s, double value)
{
    if (!isfinite(value) || value <= 0)
        return;
    s->low = fmin(s->low, value);
    s->high = fmax(s->high, value);
}

static struct svg_scale find_scale(const struct forest *f, const struct layout *l)
{
    struct svg_scale s = {.low = 1, .high = 1, .from = l->left, .to = l->right, .log = true};
    for (size_t i = 0; i < f->count; i++) {
        take(&s, f->rows[i].estimate);
        take(&s, f->rows[i].low);
        take(&s, f->rows[i].high);
    }
    double room = fmax(pow(s.high / s.low, 0.06), 1.002);
    s.low /= room;
    s.high *= room;
    return s;
}

static double place(const struct svg_scale *s, double value)
{
    double x = svg_place(s, value);
    return x < s->from ? s->from : x > s->to ? s->to : x;
}

/* A line of the grid; on a narrow screen only where no words stand. */
static void put_upright(struct strbuf *out, const struct forest *f, const struct layout *l,
                        double x)
{
    for (size_t i = 0; i < (l->is_narrow ? f->count : 1); i++) {
        strbuf_puts(out, "M");
        svg_put_number(out, x);
        if (l->is_narrow)
            strbuf_printf(out, " %dv14", TOP + l->row * (int)i + LINE_BELOW - 8);
        else
            strbuf_printf(out, " %dV%d", TOP, TOP + l->row * (int)f->count);
    }
}

static void put_axis(struct strbuf *out, const struct forest *f, const struct layout *l,
                     const struct svg_scale *s)
{
    double ticks[SVG_TICKS_MAX], bottom = TOP + l->row * (double)f->count, last = -1000;
    size_t count = svg_ticks(s, 5, ticks);
    strbuf_puts(out, "<path class=\"g\" d=\"");
    for (size_t i = 0; i < count; i++)
        put_upright(out, f, l, place(s, ticks[i]));
    strbuf_puts(out, "\"/><path class=\"m\" d=\"");
    put_upright(out, f, l, place(s, 1));
    strbuf_puts(out, "\"/><g text-anchor=\"middle\">");
    for (size_t i = 0; i < count; i++) {
        char text[32];
        double x = place(s, ticks[i]);
        if (x - last < 46)
            continue;
        last = x;
        snprintf(text, sizeof(text), "%.4g×", ticks[i]);
        double half = 3.6 * (double)str_columns(text);
        x = x - half < 1 ? half + 1 : x + half > l->width - 1 ? l->width - 1 - half : x;
        put_text(out, x, bottom + 17, "", text, 12);
    }
    strbuf_puts(out, "</g>");
    CLEANUP(memory_freep) char *same = memory_printf("same as %s", f->base);
    double x = place(s, 1), half = 3.4 * fmin((double)str_columns(same), 44);
    x = x - half < 2 ? half + 2 : x + half > l->width - 2 ? l->width - 2 - half : x;
    put_text(out, x, TOP - 12, " text-anchor=\"middle\" class=\"soft\"", same, 44);
}

/* The shape says the same as the colour. */
static const char *shape_of(const char *kind)
{
    return str_eq(kind, "better")      ? "m0-5.5l5.5 9.5h-11z"
           : str_eq(kind, "worse")     ? "m0 5.5l5.5-9.5h-11z"
           : str_eq(kind, "different") ? "m0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z"
           : str_eq(kind, "same")      ? "m-4-4h8v8h-8z"
                                       : "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0";
}

/* What fits of the words, at a blank; the rest goes to the second line, before the note. */
static char *split_words(const struct forest_row *r, size_t columns, struct strbuf *second)
{
    size_t length = strlen(r->words);
    if (str_columns(r->words) > columns) {
        length = str_column_bytes(r->words, columns);
        while (length > 0 && r->words[length] != ' ')
            length--;
        strbuf_puts(second, length ? r->words + length + 1 : "");
        length = length ? length : strlen(r->words);
    }
    const char *more[] = {r->caveat, r->note};
    for (size_t i = 0; i < ARRAY_COUNT(more); i++)
        if (*more[i])
            strbuf_printf(second, "%s%s", second->length ? "; " : "", more[i]);
    return memory_strndup(r->words, length);
}

static void put_row(struct strbuf *out, const struct forest_row *r, const struct layout *l,
                    const struct svg_scale *s, size_t index)
{
    double y = TOP + l->row * (double)index + (l->is_narrow ? LINE_BELOW : l->row / 2.0);
    CLEANUP(strbuf_done) struct strbuf second = {0};
    CLEANUP(memory_freep) char *first = split_words(r, l->word_columns, &second);
    double words = l->is_narrow ? y + 18 : second.length ? y - 1 : y + 4;
    strbuf_printf(out, "<g class=\"k %s\"><title>", r->kind);
    strbuf_put_markup(out, r->name);
    strbuf_puts(out, ": ");
    strbuf_put_markup(out, r->words);
    const char *more[] = {r->caveat, r->note};
    for (size_t i = 0; i < ARRAY_COUNT(more); i++)
        if (*more[i]) {
            strbuf_puts(out, "; ");
            strbuf_put_markup(out, more[i]);
        }
    strbuf_puts(out, "</title>");
    if (l->is_narrow)
        put_text(out, l->words, y - 11, "", r->name, l->name_columns);
    else
        put_text(out, l->left - 12, y + 4, " text-anchor=\"end\"", r->name,
                 fitting_columns(r->name, l->name_columns, l->left - 14));
    if (isfinite(r->low) && isfinite(r->high) && isfinite(r->estimate)) {
        strbuf_puts(out, "<path class=\"i\" d=\"M");
        svg_put_number(out, place(s, r->low));
        strbuf_putc(out, ' ');
        svg_put_number(out, y - 4);
        strbuf_puts(out, "v8m0-4H");
        svg_put_number(out, place(s, r->high));
        strbuf_puts(out, "m0-4v8\"/>");
    }
    if (isfinite(r->estimate) && r->estimate > 0) {
        strbuf_puts(out, "<path class=\"e\" d=\"M");
        svg_put_number(out, place(s, r->estimate));
        strbuf_putc(out, ' ');
        svg_put_number(out, y);
        strbuf_printf(out, "%s\"/>", shape_of(r->kind));
    }
    put_text(out, l->words, words, " class=\"w\"", first, l->word_columns);
    if (second.length)
        put_text(out, l->words, words + 12, " class=\"n\"", strbuf_text(&second),
                 l->word_columns + 7);
    strbuf_puts(out, "</g>");
}

void forest_put_svg(const struct forest *f, enum plot_size size, struct strbuf *out)
{
    const struct layout *l = size == PLOT_NARROW ? &narrow : &wide;
    struct svg_scale s = find_scale(f, l);
    int height = TOP + l->row * (int)f->count + FOOT;
    const char *suffix = l->is_narrow ? "-n" : "";
    strbuf_printf(out,
                  "<svg class=\"plot forest%s\" viewBox=\"0 0 %d %d\" role=\"img\" "
                  "aria-labelledby=\"%s-t%s\"><title id=\"%s-t%s\">",
                  svg_size_class(size), l->width, height, f->id, suffix, f->id, suffix);
    strbuf_put_markup(out, f->title);
    for (size_t i = 0; i < f->count; i++) {
        strbuf_puts(out, "; ");
        strbuf_put_markup(out, f->rows[i].name);
        strbuf_puts(out, ": ");
        strbuf_put_markup(out, f->rows[i].words);
    }
    strbuf_puts(out, "</title>");
    put_axis(out, f, l, &s);
    for (size_t i = 0; i < f->count; i++)
        put_row(out, &f->rows[i], l, &s, i);
    strbuf_puts(out, "</svg>");
}

/* SPDX-License-Identifier: MIT */
/* A forest plot: each variant's ratio to one base with its interval, on a logarithmic axis. */
#include "base/memory.h"
#include "report/draw/svg.h"

#include <math.h>
#include <stdio.h>

enum {
    WIDTH = 640,
    LEFT = 158,  /* of the axis */
    RIGHT = 420, /* of the axis; the words stand behind it */
    WORDS = 436,
    TOP = 30,
    ROW = 28,
    FOOT = 26,
    NAME_COLUMNS = 21,
    WORDS_COLUMNS = 31,
};

static void put_short(struct strbuf *out, const char *text, size_t columns)
{
    if (str_columns(text) <= columns) {
        strbuf_put_markup(out, text);
        return;
    }
    strbuf_put_markup_n(out, text, str_column_bytes(text, columns - 1));
    strbuf_puts(out, "…");
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

static struct svg_scale find_scale(const struct forest *f)
{
    struct svg_scale s = {.low = 1, .high = 1, .from = LEFT, .to = RIGHT, .log = true};
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
    return x < LEFT ? LEFT : x > RIGHT ? RIGHT : x;
}

static void put_axis(struct strbuf *out, const struct forest *f, const struct svg_scale *s)
{
    double ticks[SVG_TICKS_MAX], bottom = TOP + ROW * (double)f->count, last = -1000;
    size_t count = svg_ticks(s, 5, ticks);
    strbuf_puts(out, "<path class=\"g\" d=\"");
    for (size_t i = 0; i < count; i++) {
        strbuf_puts(out, "M");
        svg_put_number(out, place(s, ticks[i]));
        strbuf_printf(out, " %dV", TOP);
        svg_put_number(out, bottom);
    }
    strbuf_puts(out, "\"/><path class=\"m\" d=\"M");
    svg_put_number(out, place(s, 1));
    strbuf_printf(out, " %dV", TOP - 4);
    svg_put_number(out, bottom);
    strbuf_puts(out, "\"/><g text-anchor=\"middle\">");
    for (size_t i = 0; i < count; i++) {
        char text[32];
        double x = place(s, ticks[i]);
        if (x - last < 46)
            continue;
        last = x;
        snprintf(text, sizeof(text), "%.4g×", ticks[i]);
        put_text(out, x, bottom + 17, "", text, 12);
    }
    strbuf_puts(out, "</g>");
    CLEANUP(memory_freep) char *same = memory_printf("same as %s", f->base);
    double x = place(s, 1), half = 3.4 * fmin((double)str_columns(same), 44);
    x = x - half < 2 ? half + 2 : x + half > WIDTH - 2 ? WIDTH - 2 - half : x;
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

static void put_row(struct strbuf *out, const struct forest_row *r, const struct svg_scale *s,
                    size_t index)
{
    double y = TOP + ROW * ((double)index + 0.5);
    strbuf_printf(out, "<g class=\"k %s\"><title>", r->kind);
    strbuf_put_markup(out, r->name);
    strbuf_puts(out, ": ");
    strbuf_put_markup(out, r->words);
    if (*r->note) {
        strbuf_puts(out, " (");
        strbuf_put_markup(out, r->note);
        strbuf_puts(out, ")");
    }
    strbuf_puts(out, "</title>");
    put_text(out, LEFT - 12, y + 4, " text-anchor=\"end\"", r->name, NAME_COLUMNS);
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
    put_text(out, WORDS, *r->note ? y - 1 : y + 4, " class=\"w\"", r->words, WORDS_COLUMNS);
    if (*r->note)
        put_text(out, WORDS, y + 11, " class=\"n\"", r->note, WORDS_COLUMNS + 4);
    strbuf_puts(out, "</g>");
}

void forest_put_svg(const struct forest *f, struct strbuf *out)
{
    struct svg_scale s = find_scale(f);
    int height = TOP + ROW * (int)f->count + FOOT;
    strbuf_printf(out,
                  "<svg class=\"plot forest\" viewBox=\"0 0 %d %d\" role=\"img\" "
                  "aria-labelledby=\"%s-t\"><title id=\"%s-t\">",
                  WIDTH, height, f->id, f->id);
    strbuf_put_markup(out, f->title);
    for (size_t i = 0; i < f->count; i++) {
        strbuf_puts(out, "; ");
        strbuf_put_markup(out, f->rows[i].name);
        strbuf_puts(out, ": ");
        strbuf_put_markup(out, f->rows[i].words);
    }
    strbuf_puts(out, "</title>");
    put_axis(out, f, &s);
    for (size_t i = 0; i < f->count; i++)
        put_row(out, &f->rows[i], &s, i);
    strbuf_puts(out, "</svg>");
}

/* SPDX-License-Identifier: MIT */
/* A plot: axes, bands, lines, marks, names at the ends of the lines, and a legend below for what
 * has no end. */
#include "base/memory.h"
#include "report/draw/svg_frame.h"
#include "report/text/experiment.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const dashes[LOOKS] = {"",     "6 3", "2 3", "9 3 2 3",
                                          "12 4", "4 2", "1 2", "8 2 2 2"};

void plot_done(struct plot *p)
{
    for (size_t i = 0; i < p->series_count; i++)
        free(p->series[i].points);
    free(p->series);
    free(p->marks);
    arena_done(&p->arena);
    *p = (struct plot){0};
}

const char *plot_text(struct plot *p, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return arena_strdup(&p->arena, text);
}

struct plot_series *plot_add_series(struct plot *p, const char *name, unsigned style, size_t look)
{
    struct plot_series *s = &ARRAY_PUSH(p->series, p->series_count, p->series_capacity);
    *s = (struct plot_series){
        .name = name ? arena_strdup(&p->arena, name) : NULL, .style = style, .look = look % LOOKS};
    return s;
}

void plot_add_point(struct plot_series *s, double x, double y, double low, double high)
{
    if (isfinite(x) && isfinite(y))
        ARRAY_PUSH(s->points, s->count, s->capacity) = (struct plot_point){x, y, low, high};
}

void plot_add_mark(struct plot *p, bool vertical, double at, double low, double high,
                   const char *label)
{
    ARRAY_PUSH(p->marks, p->mark_count, p->mark_capacity) =
        (struct plot_mark){.vertical = vertical,
                           .at = at,
                           .low = low,
                           .high = high,
                           .label = label ? arena_strdup(&p->arena, label) : NULL};
}

bool plot_has_points(const struct plot *p)
{
    for (size_t i = 0; i < p->series_count; i++)
        if (p->series[i].count && !(p->series[i].style & PLOT_GUIDE))
            return true;
    return false;
}

static void widen(struct svg_scale *s, double value)
{
    if (!isfinite(value) || (s->log && value <= 0))
        return;
    if (!(s->low <= value))
        s->low = value;
    if (!(s->high >= value))
        s->high = value;
}

/* A logarithmic axis needs positive values. */
static bool can_be_log(const struct plot *p, bool is_x)
{
    for (size_t i = 0; i < p->series_count; i++)
        for (size_t k = 0; k < p->series[i].count; k++) {
            const struct plot_point *point = &p->series[i].points[k];
            if ((is_x ? point->x : point->y) <= 0)
                return false;
        }
    return true;
}

static void find_scales(struct frame *f)
{
    const struct plot *p = f->p;
    f->x = (struct svg_scale){.low = NAN, .high = NAN, .to = f->width - f->right};
    f->y =
        (struct svg_scale){.low = NAN, .high = NAN, .from = f->top + f->plot_height, .to = f->top};
    f->x.log = p->x.log && can_be_log(p, true);
    f->y.log = p->y.log && can_be_log(p, false);
    for (size_t i = 0; i < p->series_count; i++)
        for (size_t k = 0; k < p->series[i].count; k++) {
            const struct plot_point *point = &p->series[i].points[k];
            widen(&f->x, point->x);
            widen(&f->y, point->y);
            if (p->series[i].style & (PLOT_BAND | PLOT_BARS)) {
                widen(&f->y, point->low);
                widen(&f->y, point->high);
            }
        }
    if (p->y.low < p->y.high) {
        widen(&f->y, p->y.low);
        widen(&f->y, p->y.high);
    }
    for (size_t i = 0; i < p->mark_count; i++)
        widen(p->marks[i].vertical ? &f->x : &f->y, p->marks[i].at);
    if (p->x.words) {
        f->x.low = -0.5;
        f->x.high = (double)p->x.word_count - 0.5;
    } else if (f->x.log) {
        svg_scale_round(&f->x, false);
    } else if (!(f->x.high > f->x.low)) {
        svg_scale_round(&f->x, p->x.from_zero);
    }
    svg_scale_round(&f->y, p->y.from_zero);
    svg_frame_left(f);
    f->x.from = f->left;
}

static double clamp(const struct svg_scale *s, double place)
{
    double low = s->from < s->to ? s->from : s->to, high = s->from < s->to ? s->to : s->from;
    return place < low ? low : place > high ? high : place;
}

static double at_x(const struct frame *f, double value)
{
    return clamp(&f->x, f->x.log && value <= 0 ? f->x.from : svg_place(&f->x, value));
}

double svg_frame_y(const struct frame *f, double value)
{
    return clamp(&f->y, f->y.log && value <= 0 ? f->y.from : svg_place(&f->y, value));
}

static void put_pair(struct frame *f, const char *head, double x, double y)
{
    strbuf_puts(f->out, head);
    svg_put_number(f->out, x);
    strbuf_putc(f->out, ' ');
    svg_put_number(f->out, y);
}

void svg_frame_label(struct frame *f, double x, double y, const char *anchor, const char *text)
{
    strbuf_puts(f->out, "<text x=\"");
    svg_put_number(f->out, x);
    strbuf_puts(f->out, "\" y=\"");
    svg_put_number(f->out, y);
    strbuf_printf(f->out, "\"%s%s%s>", *anchor ? " text-anchor=\"" : "", anchor,
                  *anchor ? "\"" : "");
    strbuf_put_markup(f->out, text);
    strbuf_puts(f->out, "</text>");
}

static void put_line(struct frame *f, const char *class, double x1, double y1, double x2, double y2)
{
    strbuf_printf(f->out, "<path class=\"%s\" d=\"", class);
    put_pair(f, "M", x1, y1);
    put_pair(f, "L", x2, y2);
    strbuf_puts(f->out, "\"/>");
}

/* The text stands below its line, or as near as the border lets it. */
void svg_frame_x_tick(struct frame *f, double x, const char *text)
{
    double half = svg_text_width(text) / 2;
    struct strbuf *out = f->out;
    f->out = &f->grid;
    put_pair(f, "M", x, f->top);
    strbuf_printf(&f->grid, "v%d", f->plot_height);
    f->out = out;
    if (*text)
        svg_frame_label(f, fmin(x, f->width - half), f->top + f->plot_height + 16, "", text);
}

/* The values that were measured are the ticks, as far as they have room. */
static size_t ticks_at_values(const struct frame *f, double *ticks)
{
    size_t count = 0;
    for (size_t i = 0; i < f->p->series_count; i++) {
        const struct plot_series *s = &f->p->series[i];
        for (size_t k = 0; k < s->count && !(s->style & PLOT_GUIDE); k++) {
            size_t at = 0;
            while (at < count && ticks[at] != s->points[k].x)
                at++;
            if (at == count && count == SVG_TICKS_MAX)
                return svg_ticks(&f->x, 7, ticks);
            if (at == count)
                ticks[count++] = s->points[k].x;
        }
    }
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && ticks[k - 1] > ticks[k]; k--) {
            double swap = ticks[k];
            ticks[k] = ticks[k - 1];
            ticks[k - 1] = swap;
        }
    return count;
}

static void put_x_axis(struct frame *f)
{
    strbuf_puts(f->out, "<g text-anchor=\"middle\">");
    const struct plot_axis *axis = &f->p->x;
    double last = -1000, ticks[SVG_TICKS_MAX];
    if (axis->words) {
        svg_frame_words(f);
    } else {
        size_t most = f->width < WIDTH ? 5 : 7;
        size_t count = axis->at_values ? ticks_at_values(f, ticks) : svg_ticks(&f->x, most, ticks);
        int digits = svg_tick_digits(ticks, count);
        for (size_t k = 0; k < count; k++) {
            CLEANUP(strbuf_done) struct strbuf text = {0};
            double x = svg_place(&f->x, ticks[k]);
            svg_tick_text(axis, ticks[k], digits, &text);
            double half = svg_text_width(strbuf_text(&text)) / 2;
            if (fmin(x, f->width - half) - half < last + 6)
                continue;
            svg_frame_x_tick(f, x, strbuf_text(&text));
            last = x + half;
        }
    }
    CLEANUP(strbuf_done) struct strbuf label = {0};
    svg_put_word(&label, axis->label, (size_t)((f->width - f->left - f->right) / 6.8));
    svg_frame_label(f, (f->left + f->width - f->right) / 2.0, f->top + f->plot_height + f->foot - 8,
                    "", strbuf_text(&label));
    strbuf_puts(f->out, "</g>");
}

static void put_y_axis(struct frame *f)
{
    double ticks[SVG_TICKS_MAX], last = 1e9;
    strbuf_puts(f->out, "<g text-anchor=\"end\">");
    size_t count = svg_ticks(&f->y, 5, ticks);
    int digits = svg_tick_digits(ticks, count);
    for (size_t k = 0; k < count; k++) {
        CLEANUP(strbuf_done) struct strbuf text = {0};
        double y = svg_place(&f->y, ticks[k]);
        if (last - y < 16)
            continue;
        svg_tick_text(&f->p->y, ticks[k], digits, &text);
        struct strbuf *out = f->out;
        f->out = &f->grid;
        put_pair(f, "M", f->left, y);
        strbuf_printf(&f->grid, "h%d", f->width - f->right - f->left);
        f->out = out;
        svg_frame_label(f, f->left - 6, y + 4, "", strbuf_text(&text));
        last = y;
    }
    strbuf_puts(f->out, "</g>");
    strbuf_printf(f->out,
                  "<text text-anchor=\"middle\" transform=\"translate(13 %d) rotate(-90)\">",
                  f->top + f->plot_height / 2);
    CLEANUP(strbuf_done) struct strbuf label = {0};
    svg_put_word(&label, f->p->y.label, (size_t)(f->plot_height / 6.8));
    strbuf_put_markup(f->out, strbuf_text(&label));
    strbuf_puts(f->out, "</text>");
}

/* Beside the line, and as far to the other side of it as the words need. */
static void put_mark_name(struct frame *f, double x, double y, const char *label)
{
    enum { EDGE = 4 };
    CLEANUP(strbuf_done) struct strbuf name = {0};
    svg_put_word(&name, label, (size_t)((f->width - 2 * EDGE) / 6.6));
    double width = svg_text_width(strbuf_text(&name));
    bool left = x > (f->left + f->width) / 2.0;
    double at = left ? fmax(x, EDGE + width) : fmin(x, f->width - EDGE - width);
    svg_frame_label(f, at, y, left ? "end" : "", strbuf_text(&name));
}

static void put_mark_lines(struct frame *f)
{
    size_t line = 0;
    for (size_t i = 0; i < f->p->mark_count; i++) {
        const struct plot_mark *m = &f->p->marks[i];
        if (isfinite(m->low) && isfinite(m->high)) {
            double a = m->vertical ? at_x(f, m->low) : svg_frame_y(f, m->high);
            double b = m->vertical ? at_x(f, m->high) : svg_frame_y(f, m->low);
            strbuf_puts(f->out, "<path class=\"mb\" d=\"");
            put_pair(f, "M", m->vertical ? a : f->left, m->vertical ? f->top : a);
            put_pair(f, "L", m->vertical ? b : f->width - f->right, m->vertical ? f->top : a);
            put_pair(f, "L", m->vertical ? b : f->width - f->right,
                     m->vertical ? f->top + f->plot_height : b);
            put_pair(f, "L", m->vertical ? a : f->left, m->vertical ? f->top + f->plot_height : b);
            strbuf_puts(f->out, "Z\"/>");
        }
        if (m->vertical) {
            double x = at_x(f, m->at);
            put_line(f, "m", x, f->top, x, f->top + f->plot_height);
            if (m->label && line < MARKS_NAMED)
                put_mark_name(f, x, 12 + LABEL_GAP * (double)line++, m->label);
        } else {
            double y = svg_frame_y(f, m->at);
            put_line(f, "m", f->left, y, f->width - f->right, y);
        }
    }
}

/* The outline of a mark around (0, 0). */
static const char *const shapes[LOOKS] = {
    "h0",
    "m-3-3h6v6h-6z",
    "m0-4.4l4.4 4.4l-4.4 4.4l-4.4-4.4z",
    "m0-4l4 7h-8z",
    "m0 4l4-7h-8z",
    "m-3.5-3.5l7 7m0-7l-7 7",
    "m-4 0h8m-4-4v8",
    "m-4 0h8m-6.5-3.5l5 7m0-7l-5 7",
};

/* There are many: whole pixels, each relative to the one before. */
static void put_dots(struct frame *f, const struct plot_series *s)
{
    long last_x = 0, last_y = 0;
    strbuf_printf(f->out, "<path class=\"d s%zu\" d=\"", s->look);
    for (size_t k = 0; k < s->count; k++) {
        long x = lround(at_x(f, s->points[k].x)), y = lround(svg_frame_y(f, s->points[k].y));
        strbuf_printf(f->out, y < last_y ? "m%ld%ldh0" : "m%ld %ldh0", x - last_x, y - last_y);
        last_x = x;
        last_y = y;
    }
    strbuf_puts(f->out, "\"/>");
}

/* "size 1024: " */
static void put_x_words(const struct frame *f, double x, struct strbuf *out)
{
    const struct plot_axis *axis = &f->p->x;
    if (axis->words)
        return;
    strbuf_printf(out, "%s ", axis->label);
    strbuf_put_measured(out, x, axis->unit);
    strbuf_puts(out, ": ");
}

static void put_marks(struct frame *f, const struct plot_series *s)
{
    if (s->style & PLOT_DOTS) {
        put_dots(f, s);
        return;
    }
    strbuf_printf(f->out, "<g class=\"p s%zu%s\"", s->look, s->look ? "" : " c");
    if (s->name) {
        strbuf_puts(f->out, " data-name=\"");
        strbuf_put_markup(f->out, s->name);
        strbuf_putc(f->out, '"');
    }
    strbuf_putc(f->out, '>');
    const char *bare = measured_scales(f->p->y.unit) ? f->p->y.unit : "";
    for (size_t k = 0; k < s->count; k++) {
        const struct plot_point *p = &s->points[k];
        CLEANUP(strbuf_done) struct strbuf text = {0};
        strbuf_puts(f->out, "<path d=\"");
        put_pair(f, "M", at_x(f, p->x), svg_frame_y(f, p->y));
        strbuf_puts(f->out, shapes[s->look]);
        strbuf_puts(f->out, "\"><title>");
        put_x_words(f, p->x, &text);
        strbuf_put_measured(&text, p->y, f->p->y.unit);
        if (isfinite(p->low) && isfinite(p->high)) {
            strbuf_puts(&text, " [");
            strbuf_put_measured(&text, p->low, bare);
            strbuf_puts(&text, ", ");
            strbuf_put_measured(&text, p->high, bare);
            strbuf_puts(&text, "]");
        }
        strbuf_put_markup(f->out, strbuf_text(&text));
        strbuf_puts(f->out, "</title></path>");
    }
    strbuf_puts(f->out, "</g>");
}

static void put_band(struct frame *f, const struct plot_series *s)
{
    size_t drawn = 0;
    CLEANUP(strbuf_done) struct strbuf keep = {0};
    struct frame back = *f;
    back.out = &keep;
    for (size_t k = 0; k < s->count; k++)
        if (isfinite(s->points[k].high) && isfinite(s->points[k].low))
            put_pair(&back, drawn++ ? "L" : "M", at_x(f, s->points[k].x),
                     svg_frame_y(f, s->points[k].high));
    for (size_t k = s->count; k-- > 0;)
        if (isfinite(s->points[k].high) && isfinite(s->points[k].low))
            put_pair(&back, "L", at_x(f, s->points[k].x), svg_frame_y(f, s->points[k].low));
    if (drawn > 1)
        strbuf_printf(f->out, "<path class=\"b s%zu\" d=\"%sZ\"/>", s->look, strbuf_text(&keep));
}

static void put_bars(struct frame *f, const struct plot_series *s)
{
    bool open = false;
    for (size_t k = 0; k < s->count; k++) {
        const struct plot_point *p = &s->points[k];
        if (!isfinite(p->low) || !isfinite(p->high))
            continue;
        if (!open)
            strbuf_printf(f->out, "<path class=\"l s%zu\" d=\"", s->look);
        open = true;
        double x = at_x(f, p->x);
        put_pair(f, "M", x - 3, svg_frame_y(f, p->low));
        put_pair(f, "h6M", x, svg_frame_y(f, p->low));
        put_pair(f, "L", x, svg_frame_y(f, p->high));
        put_pair(f, "M", x - 3, svg_frame_y(f, p->high));
        strbuf_puts(f->out, "h6");
    }
    if (open)
        strbuf_puts(f->out, "\"/>");
}

static void put_series_line(struct frame *f, const struct plot_series *s)
{
    if (s->count < 2)
        return;
    if (s->style & PLOT_GUIDE)
        strbuf_puts(f->out, "<path class=\"m\" d=\"");
    else
        strbuf_printf(f->out, "<path class=\"l s%zu\"%s%s%s d=\"", s->look,
                      *dashes[s->look] ? " stroke-dasharray=\"" : "", dashes[s->look],
                      *dashes[s->look] ? "\"" : "");
    for (size_t k = 0; k < s->count; k++) {
        double x = at_x(f, s->points[k].x), y = svg_frame_y(f, s->points[k].y);
        if (k && s->style & PLOT_STEPS)
            put_pair(f, "L", x, svg_frame_y(f, s->points[k - 1].y));
        put_pair(f, k ? "L" : "M", x, y);
    }
    strbuf_puts(f->out, "\"/>");
}

static void put_all_series(struct frame *f)
{
    for (size_t i = 0; i < f->p->series_count; i++)
        if (f->p->series[i].style & PLOT_BAND)
            put_band(f, &f->p->series[i]);
    for (size_t i = 0; i < f->p->series_count; i++) {
        const struct plot_series *s = &f->p->series[i];
        if (s->style & PLOT_BARS)
            put_bars(f, s);
        if (s->style & (PLOT_LINE | PLOT_STEPS | PLOT_GUIDE))
            put_series_line(f, s);
        if (s->style & (PLOT_MARKS | PLOT_DOTS))
            put_marks(f, s);
    }
}

/* Draws the legend, or only counts its rows. */
static int legend(struct frame *f, bool draw)
{
    double x = f->left;
    int row = 0;
    for (size_t i = 0; i < f->p->series_count; i++) {
        const struct plot_series *s = &f->p->series[i];
        if (!s->name || !s->count || (svg_names_ends(f->p) && svg_has_end(s)))
            continue;
        CLEANUP(strbuf_done) struct strbuf name = {0};
        svg_put_word(&name, s->name, (size_t)((f->width - f->left - f->right - 34) / 7.2));
        double width = 34 + svg_text_width(strbuf_text(&name));
        if (x > f->left && x + width > f->width - f->right) {
            x = f->left;
            row++;
        }
        double y = f->top + f->plot_height + f->foot + LEGEND_LINE * row + 8;
        if (draw) {
            struct plot_series sample = *s;
            struct strbuf *out = f->out;
            if (sample.style & (PLOT_LINE | PLOT_STEPS | PLOT_GUIDE)) {
                bool guide = sample.style & PLOT_GUIDE;
                strbuf_printf(out, "<path class=\"%s s%zu\"", guide ? "m" : "l", s->look);
                if (!guide && *dashes[s->look])
                    strbuf_printf(out, " stroke-dasharray=\"%s\"", dashes[s->look]);
                strbuf_puts(out, " d=\"");
                put_pair(f, "M", x, y);
                strbuf_puts(out, "h22\"/>");
            }
            if (sample.style & (PLOT_MARKS | PLOT_DOTS)) {
                strbuf_printf(out, "<path class=\"p s%zu%s\" d=\"", s->look, s->look ? "" : " c");
                put_pair(f, "M", x + 11, y);
                strbuf_printf(out, "%s\"/>", shapes[s->look]);
            }
            svg_frame_label(f, x + 27, y + 4, "", strbuf_text(&name));
        }
        x += width + 12;
    }
    return x > f->left ? row + 1 : row;
}

void svg_put_alone_head(struct strbuf *out, int width, int height, const char *title)
{
    strbuf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                  "height=\"%d\" class=\"plot\" role=\"img\">\n<title>",
                  width, height, width, height);
    strbuf_put_markup(out, title);
    strbuf_puts(
        out,
        "</title>\n<style>svg{font:12px 'DejaVu Sans',sans-serif;fill:#1b1f24}"
        ".g{stroke:#e3e6ea;fill:none}.m{stroke:#57606a;fill:none;stroke-dasharray:3 3}"
        ".mb{fill:#57606a;opacity:.16}.l{fill:none;stroke-width:1.6}.b{opacity:.16;stroke:none}"
        ".p{stroke-width:1.4}.c{stroke-width:7;stroke-linecap:round}.d{stroke-width:4.4;stroke-"
        "linecap:round;opacity:.6;fill:none}"
        ".s0{stroke:#0b63c5}.s1{stroke:#b04a00}.s2{stroke:#00766c}.s3{stroke:#a02060}"
        ".s4{stroke:#5b45c9}.s5{stroke:#6b5d00}.s6{stroke:#2f6d1f}.s7{stroke:#454b54}"
        ".p.s0,.b.s0{fill:#0b63c5}.p.s1,.b.s1{fill:#b04a00}.p.s2,.b.s2{fill:#00766c}"
        ".p.s3,.b.s3{fill:#a02060}.p.s4,.b.s4{fill:#5b45c9}.p.s5,.b.s5{fill:#6b5d00}"
        ".p.s6,.b.s6{fill:#2f6d1f}.p.s7,.b.s7{fill:#454b54}"
        ".t{stroke:none}.t.s0{fill:#0b63c5}.t.s1{fill:#b04a00}.t.s2{fill:#00766c}.t.s3{fill:#"
        "a02060}"
        ".t.s4{fill:#5b45c9}.t.s5{fill:#6b5d00}.t.s6{fill:#2f6d1f}.t.s7{fill:#454b54}"
        ".fr{stroke:#fff;stroke-width:.6}.f0{fill:#f0b27a}.f1{fill:#f5cba7}.f2{fill:#edbb99}"
        ".fk{fill:#d3c7ea}.fn{fill:#d5d8dc}.fu1{fill:#f5b7b1}.fu2{fill:#e6766b}"
        ".fd1{fill:#b5e2c4}.fd2{fill:#6cc78d}</style>\n");
    strbuf_printf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height);
}

static struct frame frame_of(const struct plot *p, enum plot_size size, struct strbuf *out)
{
    struct frame f = {.p = p, .out = out, .width = WIDTH, .plot_height = PLOT_HEIGHT};
    f.label_columns = LABEL_COLUMNS;
    if (size == PLOT_PAGE || size == PLOT_NARROW) {
        bool small = p->group && size == PLOT_PAGE;
        f.width = small ? SMALL_WIDTH : size == PLOT_PAGE ? PAGE_WIDTH : NARROW_WIDTH;
        f.plot_height = small ? SMALL_HEIGHT : PAGE_HEIGHT;
        f.label_columns = small || size == PLOT_NARROW ? SMALL_COLUMNS : PAGE_COLUMNS;
    }
    svg_frame_margins(&f);
    find_scales(&f);
    f.foot = FOOT + (p->x.outer || svg_frame_staggers(&f) ? OUTER_LINE : 0);
    f.legend_rows = legend(&f, false);
    f.height = f.top + f.plot_height + f.foot + LEGEND_LINE * f.legend_rows +
               (size == PLOT_ALONE ? 28 : 2);
    return f;
}

static void put_head(struct frame *f, enum plot_size size)
{
    const struct plot *p = f->p;
    struct strbuf *out = f->out;
    if (size == PLOT_ALONE) {
        svg_put_alone_head(out, f->width, f->height, p->title);
        strbuf_puts(out, "<g transform=\"translate(0 26)\">");
        svg_frame_label(f, f->width / 2.0, -8, "middle", p->title);
        return;
    }
    const char *suffix = size == PLOT_NARROW ? "-n" : "";
    strbuf_printf(out,
                  "<svg class=\"plot%s\" viewBox=\"0 0 %d %d\" role=\"img\" "
                  "aria-labelledby=\"%s-t%s %s-d%s\"><title id=\"%s-t%s\">",
                  svg_size_class(size), f->width, f->height, p->id, suffix, p->id, suffix, p->id,
                  suffix);
    strbuf_put_markup(out, p->title);
    strbuf_printf(out, "</title><desc id=\"%s-d%s\">", p->id, suffix);
    strbuf_put_markup(out, p->description ? p->description : p->title);
    strbuf_puts(out, "</desc>");
}

void plot_put_svg(const struct plot *p, enum plot_size size, struct strbuf *out)
{
    struct frame f = frame_of(p, size, out);
    put_head(&f, size);
    put_x_axis(&f);
    put_y_axis(&f);
    strbuf_printf(out, "<path class=\"g\" d=\"%s\"/>", strbuf_text(&f.grid));
    strbuf_done(&f.grid);
    put_mark_lines(&f);
    put_all_series(&f);
    svg_frame_ends(&f);
    legend(&f, true);
    strbuf_puts(out, size == PLOT_ALONE ? "</g></svg>\n" : "</svg>");
}
